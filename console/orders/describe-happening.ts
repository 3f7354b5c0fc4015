import { printable } from '../../src/observe/terminal-text.ts';
import { TEST_ORDER } from '../../src/core/domain/test-order-id.ts';
import { clockTime } from '../parts/clock-time.ts';
import { duration } from '../parts/duration.ts';
import { locationName, NAMED, vendorName } from '../parts/names.ts';
import { explainFailure, inPlainWords, saysOf } from '../../src/core/domain/explain-failure.ts';
import { pathInWords } from '../../src/core/domain/path-in-words.ts';
import { describeAction } from '../../src/core/domain/describe-action.ts';
import { REASONS } from '../set-up/about-draft.ts';
import { OUTCOME_TONES, words, type Tone } from '../parts/tones.ts';
import type { WebhookOutcome, Happening, ShownOrder } from '../wire.ts';

/** One line of an order's timeline, in words. */
export type StoryLine = {
  sentence: string;
  tone: Tone;
  /** Details, shown smaller. */
  more: string[];
  /** Codes, for a technician. */
  details?: string;
  /** The webhook or replay that caused it. */
  webhookId?: string;
  /** True if it has no new information, or changed nothing. */
  isKnown?: true;
  /** True if it contradicts what we know, so a person has to check it. */
  isConflict?: true;
  /** Identifies how a call ended: two calls with the same result have the same text. */
  ending?: string;
};

type Call = ShownOrder['attempts'][number];
type Webhook = ShownOrder['webhooks'][number];
type Recorded = ShownOrder['history'][number];
type Cancellation = NonNullable<ShownOrder['cancellation']>;
type Message = ShownOrder['live'][number];
type Action = ShownOrder['actions'][number];
type Notice = ShownOrder['notices'][number];

export function describeHappening({ at, what, details }: Happening, story: ShownOrder): StoryLine {
  switch (what) {
    case 'signalled':
      return signalled(at, story);
    case 'action':
      return acted({ ...(details as Action), at });
    case 'fetched':
      return fetched(details, story);
    case 'changed':
      return changed(details as ShownOrder['changes'][number]);
    case 'refresh failed':
      return notRefreshed(details as NonNullable<ShownOrder['refreshFailure']>);
    case 'cancel requested':
      return cancelAsked(details as Cancellation, story);
    case 'call began':
      return callBegan(details as Call, story);
    case 'call ended':
      return callEnded(details as Call);
    case 'webhook':
    case 'replay':
      return delivered(details as Webhook);
    case 'status':
      return reported({ ...(details as Recorded), recordedAt: at }, story);
    case 'notified':
      return notified(details as Message, story);
    case 'published':
      return published(details as Message, at, story);
    case 'restaurant notified':
      return restaurantNotified(details as Notice);
    case 'restaurant answered':
      return restaurantAnswered({ ...(details as Notice), answeredAt: at }, story);
    case 'placement finished':
      return finished(details as ShownOrder['placement'], story);
    case 'cancel finished':
      return cancelFinished(details as Cancellation, story);
    case 'ended':
      return {
        sentence: 'The order has ended',
        tone: 'plain',
        more: [],
        ...(hasFinalStatus(story) && { isKnown: true }),
      };
    case 'erased':
      return { sentence: 'The data of the member was erased', tone: 'plain', more: [] };
    default:
      return { sentence: what satisfies never, tone: 'plain', more: [] };
  }
}

const isTest = ({ serviceOrderId }: ShownOrder): boolean => TEST_ORDER.test(serviceOrderId);

function signalled(at: string, story: ShownOrder): StoryLine {
  const by = isTest(story) ? 'An operator placed the test order' : 'The platform signalled the order';
  return { sentence: isAgain(at, story) ? 'The order was started again' : by, tone: 'plain', more: [] };
}

/**
 * True if the order had ended before: an operator retried it, or its member was notified already. The time of the first
 * signal is then not stored any more.
 */
export function isAgain(at: string, { actions, live }: ShownOrder): boolean {
  const signalled = Date.parse(at);
  return (
    live.some(({ appliedAt }) => Date.parse(appliedAt) < signalled) ||
    actions.some(
      ({ action, before, outcome, at: began }) =>
        action === 'retry' &&
        outcome === 'done' &&
        ['failed', 'withdrawn'].includes(before ?? '') &&
        Date.parse(began) <= signalled,
    )
  );
}

const BY: Record<Notice['via'], string> = { email: 'by e-mail', webhook: 'by your gateway' };

function restaurantNotified({ contact, via, reason, outcome, problem }: Notice): StoryLine {
  const who = `The restaurant${contact === null ? '' : ` (${contact})`}`;
  const how = `notified ${BY[via]} of ${REASONS[reason]}`;
  if (outcome === 'sent') return { sentence: `${who} was ${how}`, tone: 'plain', more: [] };
  const why = becauseOf(problem);
  return outcome === 'gave_up'
    ? { sentence: `${who} could not be ${how}: call it`, tone: 'bad', ...why }
    : { sentence: `${who} is being ${how}`, tone: problem === null ? 'busy' : 'warn', ...why };
}

function restaurantAnswered({ contact, answer, answeredAt }: Notice, { actions }: ShownOrder): StoryLine {
  // The line of the action says the same.
  const isTold = actions.some(
    ({ by, outcome, after, endedAt }) =>
      by.id === 'answer link' && outcome === 'done' && after === answer && near(endedAt, answeredAt),
  );
  const sentence = `${contact ?? 'The restaurant'} answered: ${words(answer ?? '')}`;
  return { sentence, tone: 'good', more: [], ...(isTold && { isKnown: true }) };
}

/** Why something failed. */
function becauseOf(problem: string | null): Pick<StoryLine, 'more' | 'details'> {
  if (problem === null) return { more: [] };
  const { details } = explainFailure(problem);
  return { more: [saysOf(problem) ?? ''], ...(details !== null && { details }) };
}

const near = (one: string | null, other: string | null): boolean =>
  Math.abs(Date.parse(one ?? '') - Date.parse(other ?? '')) < 60_000;

const hasFinalStatus = ({ order }: ShownOrder): boolean =>
  ['completed', 'cancelled', 'failed'].includes(order?.status ?? '');

function acted(action: Action): StoryLine {
  const { isChange, details, ...line } = describeAction(action, NAMED);
  return {
    ...line,
    ...(details !== null && { details }),
    ...(action.webhookId !== null && { webhookId: action.webhookId }),
    ...(!isChange && { isKnown: true }),
  };
}

function fetched(order: Partial<NonNullable<ShownOrder['order']>>, story: ShownOrder): StoryLine {
  const { fulfillment, locationId, leftOut = [] } = order;
  const about = [fulfillment, locationId && `for ${locationName(locationId)}`].filter((part) => part !== undefined);
  const without = leftOut.map(({ code, path }) => `without ${pathInWords(path)}: ${words(code)}`);
  return {
    sentence: isTest(story) ? 'The test order was made' : 'The order was fetched from the platform',
    tone: without.length === 0 ? 'plain' : 'warn',
    more: [...about, ...without],
  };
}

function changed({ paths }: { paths: string[] }): StoryLine {
  if (paths.length === 0)
    return { sentence: 'The platform changed the order back to what was sent', tone: 'plain', more: [] };
  return { sentence: 'The platform changed the order after it was sent', tone: 'warn', more: paths.map(pathInWords) };
}

function notRefreshed({ problem, nextAttemptAt }: NonNullable<ShownOrder['refreshFailure']>): StoryLine {
  const { more: why, ...details } = becauseOf(problem);
  return {
    sentence: 'The order cannot be fetched again: a change or cancel may be missing',
    tone: 'warn',
    ...details,
    more: [...why, `next try at ${clockTime(nextAttemptAt)}`],
  };
}

function cancelAsked({ requestedBy }: Cancellation, { actions }: ShownOrder): StoryLine {
  if (requestedBy === 'platform') return { sentence: 'Cancellation requested by the member', tone: 'warn', more: [] };
  if (requestedBy === 'expediter') {
    const sentence = 'Expediter calls the order off: the POS may have it, and nobody waits for it';
    return { sentence, tone: 'warn', more: [] };
  }
  // The line of the action has the name of the operator.
  const isNamed = actions.some(({ action, outcome }) => action === 'cancel' && outcome === 'done');
  return {
    sentence: 'Cancellation requested by an operator',
    tone: 'warn',
    more: [],
    ...(isNamed && { isKnown: true }),
  };
}

const CALLS: Record<Call['call'], string> = {
  createOrder: 'The order is sent to the POS',
  findOrder: 'The POS is queried for the order',
  cancelOrder: 'The POS is asked to cancel the order',
};

function callBegan(
  { attempt, call, extraMinutes }: Partial<Call> & Pick<Call, 'attempt' | 'call'>,
  { attempts, placement }: ShownOrder,
): StoryLine {
  const isOpen = attempts.some((each) => each.attempt === attempt && each.endedAt === null);
  const silence = placement.underWay ? 'no answer yet' : 'no answer was recorded: the process may have died';
  return {
    sentence: CALLS[call],
    tone: isOpen ? 'busy' : 'plain',
    more: [
      `attempt ${attempt}`,
      ...(extraMinutes ? [`The kitchen was busy: ${extraMinutes} minutes were added`] : []),
      ...(isOpen ? [silence] : []),
    ],
  };
}

type Answered = { sentence: string; tone: Tone };

/** Sentences by the outcome of a call: the name of the provider's error, `placed`, `absent` or `unknown`. */
const ANSWERS = new Map(
  Object.entries<Answered>({
    placed: { sentence: 'The POS has the order', tone: 'good' },
    absent: { sentence: 'The POS does not have the order', tone: 'plain' },
    not_sent: { sentence: 'No request was made', tone: 'plain' },
    // The POS may have taken the order although we got no usable answer.
    TryAgain: { sentence: 'There was no usable answer', tone: 'warn' },
    NeedsOperator: { sentence: 'The call to the POS did not work: something has to be fixed first', tone: 'warn' },
    GiveUp: { sentence: 'The POS refused the order', tone: 'bad' },
    unknown: { sentence: 'The answer of the POS is unknown', tone: 'bad' },
  }),
);

/** Sentences that differ for a cancellation. */
const CANCEL_ANSWERS = new Map(
  Object.entries<Answered>({
    cancelled: { sentence: 'The POS cancelled the order', tone: 'good' },
    requested: { sentence: 'The POS will report whether it cancels the order', tone: 'good' },
    not_asked: { sentence: 'The order cannot be cancelled through this POS', tone: 'warn' },
    GiveUp: { sentence: 'The POS refused to cancel the order', tone: 'warn' },
  }),
);

function callEnded({ call, attempt, outcome, httpStatus, milliseconds, error, reasonCode }: Call): StoryLine {
  const { more: why, details } = becauseOf(error);
  const answered = (call === 'cancelOrder' && CANCEL_ANSWERS.get(outcome)) || ANSWERS.get(outcome);
  return {
    ...(answered ?? { sentence: 'The call failed unexpectedly', tone: 'bad' }),
    details: [!answered && outcome, (httpStatus ?? 0) >= 300 && `HTTP ${httpStatus}`, details]
      .filter(Boolean)
      .join(': '),
    more: [
      `attempt ${attempt}`,
      ...(milliseconds === null || outcome === 'not_asked' ? [] : [`took ${duration(milliseconds)}`]),
      ...reasonOf({ reasonCode, itemIds: null }),
      ...why,
    ],
    ending: [call, outcome, httpStatus, error].join(' '),
  };
}

const BECAME: Record<WebhookOutcome, string> = {
  applied: 'updated the order',
  parked: 'arrived before its POS id was known',
  duplicate: 'repeated a known status',
  stale: 'reported an earlier status',
  unmatched: 'matched no order',
  ignored: 'contained no order status',
  dropped: 'was dropped',
};

function delivered({ webhookId, integration, outcome, events, reason, replayOf, polled }: Webhook): StoryLine {
  const what = polled ? 'The answer of the POS to status polling' : 'A webhook';
  return {
    sentence: `${replayOf === null ? what : 'The replay of a webhook'} ${BECAME[outcome]}`,
    tone: OUTCOME_TONES[outcome],
    // The reason is written by us and has no member data.
    more: [
      vendorName(integration),
      outcome,
      ...(events > 1 ? [`${events} events in it`] : []),
      ...(reason === null ? [] : [inPlainWords(reason)]),
    ],
    webhookId,
  };
}

function reported(event: Recorded, { posIds, placement }: ShownOrder): StoryLine {
  const { status, nativeStatus, outcome, conflict, sequence, providerOrderId, webhookId } = event;
  const native = printable(nativeStatus);
  const said = inPlainWords(native);
  // The end of the placement has a line with more facts.
  const isOurWithdrawal = webhookId === null && status === 'cancelled' && placement.state === 'withdrawn';
  const who = webhookId === null ? 'Expediter set the status' : 'The POS reported';
  return {
    sentence: `${who}: ${words(status)}${consequence(outcome)}`,
    tone: conflict ? 'bad' : outcome === 'applied' ? toneOf(status) : OUTCOME_TONES[outcome],
    more: [
      ...(conflict ? ['it contradicts what we know, so a person has to check it'] : []),
      ...reasonOf(event),
      ...timesOf(event),
      ...(webhookId === null || nativeStatus.toLowerCase() === status ? [] : [`POS status “${said}”`]),
      // A single POS id is shown in the facts of the order already.
      ...(providerOrderId === null || posIds.length < 2 ? [] : [`POS id ${printable(providerOrderId)}`]),
      ...(sequence === null ? [] : [`message ${sequence}`]),
      ...happenedBefore(event),
    ],
    ...(native !== said && { details: `POS status “${native}”` }),
    ...(conflict && { isConflict: true }),
    ...((outcome === 'duplicate' || isOurWithdrawal) && !conflict && { isKnown: true }),
  };
}

function reasonOf({ reasonCode, itemIds }: Pick<Recorded, 'reasonCode' | 'itemIds'>): string[] {
  return [
    ...(reasonCode === 'technical' ? ['reason: a technical problem'] : []),
    ...(reasonCode && !['technical', 'other'].includes(reasonCode) ? [`reason: ${words(reasonCode)}`] : []),
    ...(itemIds ? [`${itemIds.length === 1 ? 'item' : 'items'} ${itemIds.join(', ')}`] : []),
  ];
}

function timesOf({ estimatedReadyAt: ready, estimatedDeliveryAt: delivery }: Recorded): string[] {
  return [
    ...(ready ? [`ready at ${clockTime(ready)}`] : []),
    ...(delivery ? [`delivered at ${clockTime(delivery)}`] : []),
  ];
}

function consequence(outcome: WebhookOutcome): string {
  if (outcome === 'applied') return '';
  if (outcome === 'duplicate') return ' (already known)';
  if (outcome === 'stale') return ' (earlier than the current status)';
  return ` (${outcome})`;
}

function toneOf(status: string): Tone {
  if (status === 'failed') return 'bad';
  return status === 'cancelled' ? 'warn' : 'good';
}

/** Smaller differences are not shown, because clocks differ and most POS systems report whole seconds. */
const LATE_MS = 2_000;

function happenedBefore({ occurredAt, recordedAt }: Recorded): string[] {
  if (occurredAt === null) return [];
  const ms = Date.parse(recordedAt) - Date.parse(occurredAt);
  if (Math.abs(ms) < LATE_MS) return [];
  return [`${duration(ms)} ${ms > 0 ? 'earlier' : 'later'} by the POS's clock`];
}

function notified({ sequence, memberState }: Message, story: ShownOrder): StoryLine {
  const who = isTest(story) ? 'Platform' : 'Member';
  const message = story.live.find((each) => each.sequence === sequence);
  const isWaiting = message !== undefined && message.publishedAt === null;
  // Such as of an estimate, a requested cancel, or a change of the ticket.
  const isSame = story.live.findLast((each) => each.sequence < sequence)?.memberState === memberState;
  return {
    sentence: isSame
      ? `${who} updated, the status stays “${words(memberState)}”`
      : `${who} notified: ${words(memberState)}`,
    tone: isWaiting && (message.attempts ?? 0) > 0 ? 'warn' : toneOf(memberState),
    more: [
      `message ${sequence}`,
      ...(isWaiting ? [`not published yet${message.attempts ? `, after ${message.attempts} tries` : ''}`] : []),
    ],
  };
}

function published({ sequence }: Message, at: string, { live }: ShownOrder): StoryLine {
  const appliedAt = live.find((each) => each.sequence === sequence)?.appliedAt;
  const after = appliedAt === undefined ? [] : [`${duration(Date.parse(at) - Date.parse(appliedAt))} after the change`];
  return {
    sentence: 'The update was published to the platform',
    tone: 'plain',
    more: [`message ${sequence}`, ...after],
  };
}

function finished({ state, problem, cause }: ShownOrder['placement'], { order }: ShownOrder): StoryLine {
  if (state === 'sent') return { sentence: 'The ticket is at the POS', tone: 'good', more: [] };
  const why = becauseOf(problem);
  if (state === 'withdrawn') {
    const sentence =
      cause?.code === 'order_skipped' ? 'The order is not for us' : 'Cancelled before it reached the POS';
    return { sentence, tone: 'warn', ...why };
  }
  const sentence = order === null ? 'The order failed, but can be retried' : 'The order failed, which is final';
  return { sentence, tone: 'bad', ...why };
}

function cancelFinished({ state, problem }: Cancellation, { order, placement }: ShownOrder): StoryLine {
  if (state === 'cancelled') {
    const isTold = order?.status === 'cancelled' || placement.state === 'withdrawn';
    return { sentence: 'The order is cancelled', tone: 'warn', more: [], ...(isTold && { isKnown: true }) };
  }
  return { sentence: 'The order was not cancelled and continues', tone: 'warn', ...becauseOf(problem) };
}
