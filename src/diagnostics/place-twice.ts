import type { Pool } from 'pg';
import { classifyError } from '../core/domain/classify-error.ts';
import { GiveUp, TryAgain } from '../core/domain/errors.ts';
import { OrderRef, type KitchenOrder } from '../core/domain/order.ts';
import type { Why } from '../core/domain/placement-cause.ts';
import type { PosContext } from '../core/domain/provider.ts';
import type { Location } from '../core/locations/locations.ts';
import type { TestClaim } from '../core/placements/test-order.ts';
import { beginAttempt, endAttempt, type AttemptEnd } from '../core/placements/record-attempt.ts';
import { storeOrderRef } from '../core/placements/placement-outcomes.ts';
import { callWatched, type Exchange, type WatchedCall } from './call-watched.ts';
import { failed, ok, skipped, type Check } from './check.ts';
import { pageFor, type PlaceDeps } from './test-run.ts';

/** `ids` are all that the POS named, also in an answer that counts as lost. */
type PlacedTwice = { ids: readonly string[]; lastExchange: string | undefined } | { why: Why };

type Call = WatchedCall<OrderRef | undefined>;

const FIRST = 'takes the order';
const OTHER = 'at once';
const AGAIN = 'takes it once';
const NOBODY_CAN_TELL = 'no id in the answer, so nobody can tell';
const TAKEN_ONCE = 'one ticket for an order, however often it is sent: the answer to the first request may be lost';

/**
 * Sends an order, takes the answer for lost, and does what the service does then: sends it again, or asks for it. What
 * the first answers said is used for comparison alone. A POS that is built for us gets the first two at the same moment.
 */
export async function placeTwice(
  deps: PlaceDeps,
  location: Location,
  order: KitchenOrder,
  about: { claim: TestClaim; answerMs: number; report: (check: Check) => void },
): Promise<PlacedTwice> {
  const { provider, integration } = location;
  const { claim, answerMs, report } = about;
  const { serviceOrderId } = order;
  const send = async (context: PosContext<unknown>): Promise<OrderRef> =>
    OrderRef.parse(await provider.createOrder(order, context));
  const find = async (context: PosContext<unknown>): Promise<OrderRef | undefined> =>
    OrderRef.optional().parse(await provider.findOrder?.(serviceOrderId, context));
  const begin = (name: 'createOrder' | 'findOrder'): Promise<number> => beginCall(deps.pool, claim, name, location);

  // Both rows before either request: the two have to meet.
  const begun = [await begin('createOrder')];
  if (provider.deduplicates && provider.builtForUs !== undefined) begun.push(await begin('createOrder'));
  const calls = await Promise.all(begun.map(() => callWatched(deps, location, answerMs, send)));
  for (const [nth, attempt] of begun.entries()) {
    const each = calls[nth];
    if (each !== undefined) await endAttempt(deps.pool, claim.serviceOrderId, endOf(attempt, each));
  }
  // One of two may be told to come later, or that the order is there.
  const taken = calls.find((each) => idsOf(each).length > 0) ?? calls.find((each) => 'given' in each);
  const first = taken ?? calls[0];
  if (first === undefined) throw new Error('nothing was sent');
  if ('error' in first) {
    const why = classifyError(first.error);
    const reason = first.error instanceof GiveUp ? `: ${first.error.reason}` : '';
    const expected = `an answer within ${answerMs / 1000} s that it is taken`;
    const toDo = remedyOfAnswer(first.exchange, location);
    report(failed(FIRST, `${why.problem}${reason}`, toDo, { request: first.exchange?.line, expected }));
    return { why };
  }
  report(judgeFirst(first, location));
  for (const other of calls.filter((each) => each !== first)) report(judgeOther(first, other));

  if (!provider.deduplicates && provider.findOrder === undefined) {
    const found = 'this POS cannot recognise a repeat: a person decides what becomes of an order whose answer was lost';
    report(skipped(AGAIN, found));
    await storeOrderRef(deps.pool, serviceOrderId, integration, first.given);
    return { ids: idsOf(first), lastExchange: first.exchange?.line };
  }
  const attempt = await begin(provider.deduplicates ? 'createOrder' : 'findOrder');
  const again: Call = await callWatched(deps, location, answerMs, provider.deduplicates ? send : find);
  const before = calls.flatMap(idsOf);
  report(judgeAgain(before, again, provider.deduplicates));
  const ref = 'error' in again ? first.given : again.given;
  await storeOrderRef(deps.pool, serviceOrderId, integration, ref ?? {}, endOf(attempt, again));
  return { ids: [...new Set([...before, ...idsOf(again)])], lastExchange: again.exchange?.line };
}

function idsOf(call: Call): string[] {
  return 'given' in call && call.given?.providerOrderId !== undefined ? [call.given.providerOrderId] : [];
}

function judgeFirst(first: Call, location: Location): Check {
  const [id] = idsOf(first);
  const { line: request, idKind } = first.exchange ?? {};
  // Only an answer in our own words has that field.
  if (id === undefined && idKind !== undefined) {
    return failed(
      FIRST,
      `its answer names the ticket as providerOrderId, which is ${idKind} and no id: the order is there without it`,
      `write the id as a string, with quotation marks: ${pageFor(location, 'orders')}`,
      { request, expected: 'providerOrderId is a string of 1 to 255 characters, such as {"providerOrderId": "T-17"}' },
    );
  }
  const named = id === undefined ? 'without an id of the ticket' : `as "${id}"`;
  return ok(FIRST, `taken in ${first.milliseconds} ms, ${named}`, { request });
}

/** @param other of two that were sent at the same moment; it may be told to come later */
function judgeOther(first: Call, other: Call): Check {
  const details = { request: other.exchange?.line, expected: TAKEN_ONCE };
  const { request } = details;
  if ('error' in other) {
    const { problem } = classifyError(other.error);
    if (other.error instanceof TryAgain) {
      return ok(OTHER, `of two at the same moment the other would be sent again: ${problem}`, { request });
    }
    const found = `of two at the same moment the other was not taken: ${problem}. It would not be sent again`;
    return failed(OTHER, found, 'answer both with the same ticket, or one of them with 409 or 503', details);
  }
  const [[firstId], [id]] = [idsOf(first), idsOf(other)];
  if (firstId !== undefined && id !== undefined && id !== firstId) {
    const found = `two requests at the same moment made two tickets: "${firstId}" and "${id}"`;
    const toDo =
      'insert our order id first, into a column with a unique index, and make the ticket only if that was new';
    return failed(OTHER, found, toDo, details);
  }
  if (other.exchange?.status === 409) return ok(OTHER, 'of two at the same moment the other was known', { request });
  if (id === undefined) return skipped(OTHER, NOBODY_CAN_TELL, { request });
  return ok(OTHER, `of two at the same moment, both were answered with "${id}"`, { request });
}

/**
 * @param before the ids that were answered
 * @param doesRepeat whether it was sent again, and not only asked for
 */
function judgeAgain(before: readonly string[], again: Call, doesRepeat: boolean): Check {
  const details = { request: again.exchange?.line, expected: TAKEN_ONCE };
  const { request } = details;
  if ('error' in again) {
    const { problem } = classifyError(again.error);
    const found = `the same order again was not taken: ${problem}. Its lost answer would become a person's work`;
    return failed(AGAIN, found, 'answer a repeat as you answered the first request, by the id of the order', details);
  }
  const [id] = idsOf(again);
  if (again.given === undefined) {
    const toDo = 'let it be found by our id at once: otherwise it would be ordered a second time';
    const expected = 'the ticket that it has just made';
    return failed(AGAIN, 'asked for the order by our id, the POS does not know it', toDo, { request, expected });
  }
  if (before[0] !== undefined && id !== undefined && !before.includes(id)) {
    const found = `the same order again made another ticket: "${before[0]}", then "${id}"`;
    const toDo = 'store the id of each order with its ticket, in one transaction, and answer a repeat with that ticket';
    return failed(AGAIN, found, toDo, details);
  }
  if (!doesRepeat) return ok(AGAIN, 'asked for after a lost answer, it was found', { request });
  const isKnown = again.exchange?.status === 409;
  if (!isKnown && (id === undefined || before.length === 0)) return skipped(AGAIN, NOBODY_CAN_TELL, { request });
  return ok(AGAIN, `sent again after a lost answer, it was ${isKnown ? 'known' : 'the same'}`, { request });
}

/** Says what to do about an answer that does not take an order. Of a POS that is built for us, more can be said. */
function remedyOfAnswer(exchange: Exchange | undefined, location: Location): string {
  const page = pageFor(location, 'orders');
  if (location.provider.builtForUs === undefined || exchange === undefined)
    return `see what each answer means: ${page}`;
  const { status } = exchange;
  if (status === undefined) return `answer first, print then: ${page}`;
  if (status === 401 || status === 403) {
    return (
      'your check of our signature refused it: the key is the base64 behind whsec_, decoded; sign the raw bytes: ' +
      pageFor(location, 'the-signature')
    );
  }
  if (status === 404 || status === 405) {
    return `see the path of ordersUrl, which is --orders-url of npm run certify: ${page}`;
  }
  if (status >= 500) return `your bridge broke on this order: see its log. ${page}`;
  return `see what each answer means: ${page}`;
}

/** Writes the row of a call, before it, as the service does. @returns its number */
async function beginCall(
  pool: Pool,
  claim: TestClaim,
  name: 'createOrder' | 'findOrder',
  location: Location,
): Promise<number> {
  const attempt = await beginAttempt(pool, claim, name, location);
  if (attempt === undefined) throw new Error('the test order is no longer ours to send: has it ended meanwhile?');
  return attempt;
}

function endOf(attempt: number, call: Call): AttemptEnd {
  const { milliseconds } = call;
  if ('given' in call) return { attempt, outcome: call.given === undefined ? 'absent' : 'placed', milliseconds };
  const { error } = call;
  const { httpStatus } = error as { httpStatus?: number };
  const outcome = error instanceof Error ? error.name : 'unknown';
  return { attempt, outcome, milliseconds, httpStatus, error: classifyError(error).problem };
}
