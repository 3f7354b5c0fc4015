import type { Happening, ShownOrder } from '../wire.ts';
import { describeHappening, type StoryLine } from './describe-happening.ts';

export type Line = StoryLine & {
  /** Stays the same when the timeline is loaded again. */
  key: string;
  at: string;
  what: Happening['what'];
  /** Its index in the full timeline. */
  nth: number;
  /** The sequence of the live message that the line describes or caused. */
  sequence: number | undefined;
  /** Time since the previous line. Undefined for the first line, and below a millisecond. */
  waitMs: number | undefined;
};

/** The lines of an order's timeline, oldest first. */
export function storyLines(story: ShownOrder): Line[] {
  const seen = new Map<string, number>();
  return story.timeline.map((happening, i) => {
    const { at, what } = happening;
    const before = story.timeline[i - 1];
    const waitMs = before === undefined ? 0 : Date.parse(at) - Date.parse(before.at);
    const name = `${what} ${at}`;
    const again = seen.get(name) ?? 0;
    seen.set(name, again + 1);
    return {
      ...describeHappening(happening, story),
      key: `${name} ${again}`,
      nth: i,
      at,
      what,
      sequence: happening.details['sequence'] as number | undefined,
      waitMs: waitMs < 1 ? undefined : waitMs,
    };
  });
}
