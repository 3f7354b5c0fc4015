import type { ShownOrder } from '../wire.ts';
import { words } from '../parts/tones.ts';
import { howCancelStands } from './how-cancel-stands.ts';
import { conflictsOf, isCaseClosed, whatToDo, type Standing } from './what-to-do.ts';

export type ChangeStanding = Pick<Standing, 'tone' | 'sentence' | 'problem' | 'toDo' | 'advice'> & {
  /** True if an operator may enter the restaurant's answer. */
  canAnswer: boolean;
};

/** @returns undefined if the platform changed nothing for the kitchen or the driver, or if the order has ended */
export function howChangeStands(story: ShownOrder): ChangeStanding | undefined {
  const { change, order } = story;
  // A process of the previous version does not send it.
  if (!change || order === null || order.endedAt !== null) return undefined;
  const { state, waits, changes } = change;
  const about = { problem: changes.join('; ') || null, toDo: [], canAnswer: waits };
  if (waits) {
    const sentence = `The platform changed ${order.callOutCode} after it was sent`;
    return {
      ...about,
      tone: isCaseClosed(story) ? 'plain' : 'bad',
      sentence,
      advice: 'The ticket is unchanged. Tell the restaurant.',
    };
  }
  const sentence = `The platform's change after it was sent: ${words(state)}`;
  return { ...about, tone: state === 'applied' ? 'good' : 'warn', sentence, advice: '' };
}

/** Whether something is wrong, so that somebody may have to take care of it. */
export function isWrong(story: ShownOrder): boolean {
  const placed = whatToDo(story);
  const tones = [placed, howCancelStands(story), howChangeStands(story)].map((each) => each?.tone);
  return (
    conflictsOf(story).length > 0 || (!placed?.isPaused && tones.some((tone) => tone === 'bad' || tone === 'warn'))
  );
}
