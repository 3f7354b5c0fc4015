import type { Tone } from '../parts/tones.ts';
import type { Step } from '../webhooks/explanation.ts';
import type { ShownOrder } from '../wire.ts';
import { helpWith } from './help-with.ts';

/** The state of an order at its POS, and what a person can do about it. */
export type Standing = {
  tone: Tone;
  /** A headline. */
  sentence: string;
  /** The reason, in the service's words. */
  problem: string | null;
  /** Steps against the problem. */
  toDo: readonly Step[];
  /** The consequence, or why nothing can be done here. */
  advice: string;
  /** When the next try is; undefined if there is none. */
  nextAt?: string;
  /** When it fails if it is not at the POS by then. */
  failsAt?: string;
  canRetry: boolean;
  canResolve: boolean;
};

/** @returns undefined if all is well and nothing is left to do */
export function whatToDo({ placement, order, told }: ShownOrder): Standing | undefined {
  const { state, problem, cause, underWay, nextAttemptAt } = placement;
  const isOpen = placement.finishedAt === null && !underWay;
  /** It was never read, so no ticket can exist. */
  const canBeginAgain = state === 'failed' && order === null;
  const canTryAgain = isOpen && nextAttemptAt !== null;
  const about = {
    problem,
    toDo: helpWith(cause, { locationId: placement.locationId, integration: order?.integration ?? null }),
    canRetry: canTryAgain || canBeginAgain,
    canResolve: isOpen && state === 'in_doubt',
    ...(canTryAgain && { nextAt: nextAttemptAt }),
    // An order in doubt never fails by its deadline, since it may be at the POS.
    ...(canTryAgain && state !== 'in_doubt' && { failsAt: placement.deadlineAt }),
  };
  if (state === 'sent' || state === 'withdrawn') return undefined;
  if (state === 'failed') {
    const sentence = canBeginAgain ? 'It failed before it could be read' : 'It failed, which is final';
    const next = canBeginAgain
      ? 'It begins again when you retry it, or the platform signals it.'
      : 'The platform places a new order.';
    return { ...about, tone: 'bad', sentence, advice: `${told} ${next}` };
  }
  if (state === 'in_doubt' && underWay) {
    const advice =
      'A call about it is under way. When that is over, mostly within half a minute, you can say what you saw.';
    return { ...about, tone: 'busy', sentence: IN_DOUBT, advice };
  }
  if (state === 'in_doubt' && nextAttemptAt === null) {
    const advice =
      'It is not repeated blindly, so nothing more happens by itself. Look at the POS, and say what you saw.';
    return { ...about, tone: 'bad', sentence: 'It needs you: the POS may have the order', advice };
  }
  if (state === 'in_doubt') {
    const advice = 'The POS is asked again by itself. If you can look there, you can settle it sooner.';
    return { ...about, tone: 'warn', sentence: IN_DOUBT, advice };
  }
  if (underWay) return { ...about, tone: 'busy', sentence: 'It is being tried this moment', advice: '' };
  if (state === 'held') {
    const advice = 'Until that is mended, nothing works; it is tried again by itself now and then.';
    return { ...about, tone: 'warn', sentence: 'Held: one of us has to mend something', advice };
  }
  const sentence = problem === null ? 'It is on its way to the POS' : 'It did not work yet, and is tried again';
  return { ...about, tone: problem === null ? 'busy' : 'warn', sentence, advice: '' };
}

const IN_DOUBT = 'In doubt: the POS may have the order';

/** Counts the POS's contradictions. */
export function conflictsOf({ history }: ShownOrder): number {
  return history.filter((event) => event.conflict).length;
}

/**
 * Explains a retry, sentence by sentence.
 * @param now milliseconds since the epoch
 */
export function retryMeans({ placement, order }: ShownOrder, now: number): string[] {
  const { state, problem } = placement;
  if (state === 'failed') {
    return [
      'It begins again, with its whole time before it: it is fetched from the platform, and then sent to its POS.',
    ];
  }
  if (state === 'in_doubt') {
    return [
      'The POS is asked now instead of later. It makes no second ticket: it knows a repeat by its key, or is asked first ' +
        'whether it has the order.',
    ];
  }
  if (Date.parse(placement.deadlineAt) < now) {
    return [
      `Its deadline has passed: it is not sent any more. It fails at once${order === null ? '' : ', for good'}, and its member is told.`,
      ...(state === 'held' ? ['Only while its location is paused it stays held.'] : []),
    ];
  }
  const final = 'If the POS refuses it, it has failed, and one that failed is final: the platform places a new order.';
  if (state === 'held') {
    return [
      `It is tried now. Unless that is mended (${problem ?? 'see above'}), it is held again.`,
      ...(order === null ? [] : [final]),
    ];
  }
  if (order === null) return ['It is fetched from the platform now instead of later, and then sent to its POS.', final];
  return ['It is sent to the POS now instead of later. If the POS cannot be reached, it waits as before.', final];
}

/**
 * Explains the consequence of each answer.
 * @param now milliseconds since the epoch
 */
export function answersMean(
  { placement, order, cancellation }: ShownOrder,
  now: number,
): { there: string; notThere: string } {
  const there =
    'The order goes on as if the POS had answered: its member is told that it was sent. If you are wrong, nobody cooks it.';
  if (order !== null && order.endedAt !== null) {
    return {
      there: 'It counts as sent.',
      notThere: 'The order has ended meanwhile: it is not sent. It fails at once, for good, and its member is told.',
    };
  }
  if (cancellation !== null)
    return { there, notThere: 'It is to be cancelled: it is withdrawn, and its member is told.' };
  if (Date.parse(placement.deadlineAt) < now) {
    return {
      there,
      notThere: 'Its deadline has passed: it is not sent any more. It fails at once, for good, and its member is told.',
    };
  }
  return {
    there,
    notThere: 'It is sent again at once. If you are wrong, the kitchen gets a second ticket and cooks it twice.',
  };
}

const UNFINISHED_MS = 3_000;
const UNPUBLISHED_MS = 1_000;
const OPEN_MS = 15_000;
const ENDED_MS = 60_000;

/** Time until the next reload: tries, holds and webhooks that move nothing send no live message. */
export function refreshAfterMs(story: ShownOrder | undefined): number {
  if (story === undefined) return OPEN_MS;
  if (story.live.some((message) => message.publishedAt === null)) return UNPUBLISHED_MS;
  const { placement, cancellation } = story;
  if (placement.finishedAt === null || cancellation?.finishedAt === null) return UNFINISHED_MS;
  return story.order === null || story.order.endedAt !== null ? ENDED_MS : OPEN_MS;
}
