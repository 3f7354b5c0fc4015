import { LATE_MS } from '../board/ticket-of.ts';
import { duration } from '../parts/duration.ts';
import { vendorName } from '../parts/names.ts';
import { isClosed } from '../../src/core/domain/settled-case.ts';
import { TEST_ORDER } from '../../src/core/domain/test-order-id.ts';
import { words, type Tone } from '../parts/tones.ts';
import type { Step } from '../../src/core/domain/remedy.ts';
import type { ShownOrder } from '../wire.ts';
import { saysOf } from '../../src/core/domain/explain-failure.ts';
import { helpWith, PAUSES } from '../../src/core/domain/explain-cause.ts';

/** The state of an order at its POS, and what an operator can do. */
export type Standing = {
  tone: Tone;
  sentence: string;
  /** The reason, as the service states it. */
  problem: string | null;
  /** True if the reason helps nobody to act: it then comes last, and small. */
  isProblemLast?: true;
  toDo: readonly Step[];
  /** The consequence, or why no action is possible. */
  advice: string;
  /** When the next try is. Undefined if there is none. */
  nextAt?: string;
  /** When the order will fail if it is not at the POS by then. */
  failsAt?: string;
  canRetry: boolean;
  canResolve: boolean;
  /** True if the order continues when its location is resumed. Until then a retry changes nothing. */
  isPaused?: true;
};

/** @returns undefined if nothing is wrong */
export function whatToDo(story: ShownOrder, now = Date.now()): Standing | undefined {
  const { serviceOrderId, placement, order, notified } = story;
  const { state, problem, cause, underWay, nextAttemptAt } = placement;
  if (state === 'held' && PAUSES.includes(cause?.code ?? '')) return paused(placement);
  const isOpen = placement.finishedAt === null && !underWay;
  // The order was never fetched, so no ticket can exist.
  const canRestart = state === 'failed' && order === null;
  const canTryAgain = isOpen && nextAttemptAt !== null;
  const about = {
    problem,
    toDo: helpWith(cause, { locationId: placement.locationId, integration: order?.integration ?? null, vendorName }),
    canRetry: canTryAgain || canRestart,
    canResolve: isOpen && state === 'in_doubt',
    ...(canTryAgain && { nextAt: nextAttemptAt }),
    // An order in doubt never fails at its deadline, because it may be at the POS.
    ...(canTryAgain && state !== 'in_doubt' && { failsAt: placement.deadlineAt }),
  };
  if (state === 'sent') return late(story, now);
  if (state === 'withdrawn') return undefined;
  if (state === 'failed' && TEST_ORDER.test(serviceOrderId)) {
    return { ...about, tone: 'bad', sentence: 'The test order failed', advice: 'No member waits for it.' };
  }
  if (state === 'failed') {
    const sentence = canRestart ? 'The order failed before it could be read' : 'The order failed, which is final';
    const next = canRestart
      ? 'It starts again when you retry it, or when the platform signals it.'
      : 'To order again, the platform must place a new order.';
    return { ...about, tone: isCaseClosed(story) ? 'plain' : 'bad', sentence, advice: `${notified} ${next}` };
  }
  if (state === 'in_doubt' && underWay) {
    const advice = 'A call to the POS is running. When it ends, usually within 30 seconds, you can answer.';
    return { ...about, tone: 'busy', sentence: 'The POS may have the order', advice };
  }
  if (state === 'in_doubt' && nextAttemptAt === null) {
    const sentence = `Is ${order?.callOutCode ?? 'the order'} at the POS?`;
    const advice = 'We do not send it again by ourselves.';
    return { ...about, tone: 'bad', sentence, toDo: [], advice, isProblemLast: true };
  }
  if (state === 'in_doubt') {
    const sentence = 'The POS may have the order. It is tried again, without a second ticket';
    return { ...about, tone: 'warn', sentence, advice: 'If you can look at the POS, you can answer sooner.' };
  }
  if (underWay) return { ...about, tone: 'busy', sentence: 'The order is being sent', advice: '' };
  if (state === 'held') {
    return { ...about, tone: 'warn', sentence: 'On hold: something has to be fixed.', advice: '' };
  }
  const sentence =
    problem === null ? 'The order is on its way to the POS' : 'The last try failed. The order is retried';
  return { ...about, tone: problem === null ? 'busy' : 'warn', sentence, advice: '' };
}

/** An order at its POS that needs a call, as on the board. */
function late({ order }: ShownOrder, now: number): Standing | undefined {
  if (order === null || order.endedAt !== null || order.memberState === 'ready_for_pickup') return undefined;
  const { fulfillment, estimatedReadyAt, estimatedDeliveryAt, requestedAt, callOutCode } = order;
  const dueAt = Date.parse((fulfillment === 'delivery' ? estimatedDeliveryAt : estimatedReadyAt) ?? requestedAt ?? '');
  if (!(now - dueAt >= LATE_MS)) return undefined;
  return {
    tone: 'warn',
    sentence: `${callOutCode} is late by ${duration(now - dueAt)}`,
    problem: null,
    toDo: [],
    advice: 'Ask the restaurant when it is ready.',
    canRetry: false,
    canResolve: false,
  };
}

function paused({ problem, cause }: ShownOrder['placement']): Standing {
  const byPos = cause?.code === 'location_paused_by_pos';
  return {
    tone: 'warn',
    sentence: byPos ? 'The POS has paused the location. The order waits.' : 'The location is paused. The order waits.',
    problem: byPos ? problem : null,
    toDo: [],
    advice: 'It continues when the location takes orders again. The time of the pause does not count.',
    canRetry: false,
    canResolve: false,
    isPaused: true,
  };
}

/** The reports that a person has to check, until the case is closed. */
export function conflictsOf(story: ShownOrder): ShownOrder['history'] {
  return story.history.filter((event) => event.conflict && !isClosed(story, Date.parse(event.recordedAt)));
}

/** Whether the case is closed, and no problem came later that closing it settles. */
export function isCaseClosed(story: ShownOrder): boolean {
  const { placement, change } = story;
  const problems = [placement.state === 'failed' && placement.finishedAt, change?.waits && change.since];
  return (
    isClosed(story, 0) &&
    problems.every((at) => !at || isClosed(story, Date.parse(at))) &&
    conflictsOf(story).length === 0
  );
}

/** What the newest conflict is about. The member may have been told both, so both may say the same now. */
export function conflictSays({ order, history, posIds }: ShownOrder): string {
  const reports = history.filter(({ webhookId, conflict }) => webhookId !== null || conflict);
  const { status = '', providerOrderId: id = null } = reports.findLast(({ conflict }) => conflict) ?? {};
  const told = words(order?.memberState ?? '');
  if (id !== null && posIds.length > 0 && !posIds.some(({ providerOrderId }) => providerOrderId === id))
    return 'The POS gave this order the id of another order.';
  if (reports.at(-1)?.status !== order?.status)
    return `The POS reported “${words(status)}”, but the member was told “${told}”.`;
  const other = reports.findLast((event) => event.status !== order?.status);
  return `The POS reported “${words(other?.status ?? '')}” and “${words(order?.status ?? '')}”. The member was last told “${told}”.`;
}

/** What the member sees of an order with a conflict, and what a person can do. */
export function conflictHelp({ order }: ShownOrder): string {
  const sees = `The member sees “${words(order?.memberState ?? '')}” now`;
  const isFinal = ['completed', 'failed', 'cancelled'].includes(order?.status ?? '');
  return isFinal
    ? `${sees}. Check the order at the POS. If the member sees what is wrong, agree with the restaurant what becomes of the order, and tell the member by the platform. Then close the case.`
    : `${sees}. A later status from the POS corrects it: check the order there. Then close the case.`;
}

/**
 * Explains a retry, sentence by sentence.
 * @param now milliseconds since the epoch
 */
export function retryMeans({ placement, order }: ShownOrder, now: number): string[] {
  const { state, problem } = placement;
  if (state === 'failed') {
    return ['The order starts again with a new deadline: it is fetched from the platform, then sent to the POS.'];
  }
  if (state === 'in_doubt') {
    const how = 'the POS recognises a repeat by its key, or is first asked for the order.';
    return [`The order is tried again now instead of later, without a second ticket: ${how}`];
  }
  if (Date.parse(placement.deadlineAt) < now) {
    return [
      `The deadline has passed: the order is not sent any more. It fails at once${order === null ? '' : ', which is final'}, and the member is notified.`,
      ...(state === 'held' ? ['While the location is paused, it stays held.'] : []),
    ];
  }
  const final = 'If the POS refuses the order, it fails, which is final. The platform would have to place a new order.';
  if (state === 'held') {
    return [
      `The order is retried now. If the cause is not fixed (${saysOf(problem) ?? 'see above'}), it is held again.`,
      ...(order === null ? [] : [final]),
    ];
  }
  if (order === null)
    return ['The order is fetched from the platform now instead of later, then sent to the POS.', final];
  return [
    'The order is sent to the POS now instead of later. If the POS cannot be reached, it waits as before.',
    final,
  ];
}

/**
 * Explains the consequence of each answer.
 * @param now milliseconds since the epoch
 */
export function answersMean(
  { placement, order, cancellation }: ShownOrder,
  now: number,
): { there: string; notThere: string } {
  if (order !== null && order.endedAt !== null)
    return {
      there: 'The order counts as sent.',
      notThere: `The order has ended in the meantime: it is not sent. ${FAILS}`,
    };
  const there = 'The order continues as sent, and the member is notified. If you are wrong, nobody cooks it.';
  if (cancellation !== null)
    return { there, notThere: 'A cancellation was requested: the order is withdrawn, and the member is notified.' };
  const isLate = Date.parse(placement.deadlineAt) < now;
  return {
    there,
    notThere: isLate
      ? `The deadline has passed: the order is not sent any more. ${FAILS}`
      : 'The order is sent again at once, without asking the POS. If you are wrong, the kitchen may get a second ticket and cook it twice.',
  };
}

const FAILS = 'It fails at once, which is final, and the member is notified.';
const UNFINISHED_MS = 3_000;
const UNPUBLISHED_MS = 1_000;
const OPEN_MS = 15_000;
const ENDED_MS = 60_000;

/** Time until the next reload. Not every change sends a live message: tries and holds do not. */
export function refreshAfterMs(story: ShownOrder | undefined): number {
  if (story === undefined) return OPEN_MS;
  if (story.live.some((message) => message.publishedAt === null)) return UNPUBLISHED_MS;
  const { placement, cancellation } = story;
  if (placement.finishedAt === null || cancellation?.finishedAt === null) return UNFINISHED_MS;
  return story.order === null || story.order.endedAt !== null ? ENDED_MS : OPEN_MS;
}
