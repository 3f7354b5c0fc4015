import type { Pool } from 'pg';
import { classifyError } from '../core/domain/classify-error.ts';
import { GiveUp, TryAgain } from '../core/domain/errors.ts';
import { OrderRef, type KitchenOrder } from '../core/domain/order.ts';
import type { Problem } from '../core/domain/placement-cause.ts';
import type { PosContext } from '../core/domain/provider.ts';
import type { Location } from '../core/locations/locations.ts';
import type { TestClaim } from '../core/placements/test-order.ts';
import { beginAttempt, endAttempt, type AttemptEnd } from '../core/placements/record-attempt.ts';
import { storeOrderRef } from '../core/placements/placement-outcomes.ts';
import { callWatched, type Exchange, type WatchedCall } from './call-watched.ts';
import { failed, ok, skipped, type Check } from './check.ts';
import { pageFor, type PlaceDeps } from './test-run.ts';

/** `ids` are all ticket ids that the POS named, also in the answers that we treat as lost. */
type PlacedTwice = { ids: readonly string[]; lastExchange: string | undefined } | { problem: Problem };

type Call = WatchedCall<OrderRef | undefined>;

const FIRST = 'takes the order';
const OTHER = 'at once';
const AGAIN = 'takes it once';
const UNKNOWN = 'the answer has no id, so it is unknown whether the POS made a second ticket';
const TAKEN_ONCE = 'one ticket for an order, even if it is sent several times, because an answer may be lost';

/**
 * Sends an order, treats the answer as lost, and then does what the service does: it sends the order again or searches
 * for it. A lost answer is only compared with the last one. A POS built for us first gets two requests simultaneously.
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

  // Both attempt rows are written before the first request starts, so that the two requests overlap.
  const begun = [await begin('createOrder')];
  if (provider.deduplicates && provider.builtForUs !== undefined) begun.push(await begin('createOrder'));
  const calls = await Promise.all(begun.map(() => callWatched(deps, location, answerMs, send)));
  for (const [nth, attempt] of begun.entries()) {
    const each = calls[nth];
    if (each !== undefined) await endAttempt(deps.pool, claim.serviceOrderId, endOf(attempt, each));
  }
  // The POS may answer one of the two requests with "try later" or "already known".
  const taken = calls.find((each) => idsOf(each).length > 0) ?? calls.find((each) => 'given' in each);
  const first = taken ?? calls[0];
  if (first === undefined) throw new Error('nothing was sent');
  if ('error' in first) {
    const problem = classifyError(first.error);
    const reason = first.error instanceof GiveUp ? `: ${first.error.reason}` : '';
    const expected = `an answer within ${answerMs / 1000} s that accepts it`;
    const toDo = fixForAnswer(first.exchange, location);
    report(failed(FIRST, `${problem.problem}${reason}`, toDo, { request: first.exchange?.line, expected }));
    return { problem };
  }
  report(judgeFirst(first, location));
  for (const other of calls.filter((each) => each !== first)) report(judgeOther(first, other));

  if (!provider.deduplicates && provider.findOrder === undefined) {
    const found = 'this POS does not detect repeats: after a lost answer a person decides about the order';
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
  // The answer has the field of our own format, but its value is not a usable id.
  if (id === undefined && idKind !== undefined) {
    return failed(
      FIRST,
      `its answer names the ticket as providerOrderId, which is ${idKind}, not an id: the order is stored without it`,
      `write the id as a string, with quotation marks: ${pageFor(location, 'orders')}`,
      { request, expected: 'providerOrderId is a string of 1 to 255 characters, such as {"providerOrderId": "T-17"}' },
    );
  }
  const named = id === undefined ? 'without an id of the ticket' : `as "${id}"`;
  return ok(FIRST, `accepted in ${first.milliseconds} ms, ${named}`, { request });
}

/** Judges `other`, the second of two simultaneous requests. The POS may ask us to send this request again later. */
function judgeOther(first: Call, other: Call): Check {
  const details = { request: other.exchange?.line, expected: TAKEN_ONCE };
  const { request } = details;
  if ('error' in other) {
    const { problem } = classifyError(other.error);
    if (other.error instanceof TryAgain) {
      return ok(OTHER, `of two requests at the same time, one would be sent again: ${problem}`, { request });
    }
    const found = `of two requests at the same time, one was refused: ${problem}. It would not be sent again`;
    return failed(OTHER, found, 'answer both with the same ticket, or one of them with 409 or 503', details);
  }
  const [[firstId], [id]] = [idsOf(first), idsOf(other)];
  if (firstId !== undefined && id !== undefined && id !== firstId) {
    const found = `two requests at the same time made two tickets: "${firstId}" and "${id}"`;
    const toDo =
      'insert our order id first, into a column with a unique index, and make the ticket only if the id was new';
    return failed(OTHER, found, toDo, details);
  }
  if (other.exchange?.status === 409)
    return ok(OTHER, 'of two requests at the same time, one was recognized as a repeat (409)', { request });
  if (id === undefined) return skipped(OTHER, UNKNOWN, { request });
  return ok(OTHER, `two requests at the same time were both answered with "${id}"`, { request });
}

/**
 * @param before the ticket ids in the answers that were treated as lost
 * @param doesRepeat whether the order was sent again; otherwise we searched for it
 */
function judgeAgain(before: readonly string[], again: Call, doesRepeat: boolean): Check {
  const details = { request: again.exchange?.line, expected: TAKEN_ONCE };
  const { request } = details;
  if ('error' in again) {
    const { problem } = classifyError(again.error);
    const found = `the same order, sent again, was refused: ${problem}. After a lost answer a person would have to decide`;
    return failed(AGAIN, found, 'answer a repeat like the first request, by the id of the order', details);
  }
  const [id] = idsOf(again);
  if (again.given === undefined) {
    const toDo = 'make each order findable by our id immediately, because otherwise it would be ordered a second time';
    const expected = 'the ticket that it just made';
    return failed(AGAIN, 'the POS does not find the order by our id', toDo, { request, expected });
  }
  if (before[0] !== undefined && id !== undefined && !before.includes(id)) {
    const found = `the same order, sent again, made another ticket: "${before[0]}", then "${id}"`;
    const toDo = 'store the id of each order with its ticket, in one transaction, and answer a repeat with that ticket';
    return failed(AGAIN, found, toDo, details);
  }
  if (!doesRepeat) return ok(AGAIN, 'after a lost answer, the POS found the order by our id', { request });
  const isKnown = again.exchange?.status === 409;
  if (!isKnown && (id === undefined || before.length === 0)) return skipped(AGAIN, UNKNOWN, { request });
  return ok(AGAIN, `sent again after a lost answer, it was ${isKnown ? 'known' : 'the same ticket'}`, { request });
}

/** Suggests a fix if the POS does not accept the order. For a POS that is built for us the fix is more specific. */
export function fixForAnswer(exchange: Exchange | undefined, location: Location): string {
  const page = pageFor(location, 'orders');
  if (location.provider.builtForUs === undefined || exchange === undefined)
    return `see what each answer means: ${page}`;
  const { status } = exchange;
  if (status === undefined)
    return `check that ordersUrl leads to the POS. If it does, answer first, then print: ${page}`;
  if (status === 401 || status === 403) {
    return (
      'your check of our signature refused it: the key is the base64 behind whsec_, decoded; sign the raw bytes: ' +
      pageFor(location, 'the-signature')
    );
  }
  if (status === 404 || status === 405) {
    return `check the path of ordersUrl, which is --orders-url of npm run certify: ${page}`;
  }
  if (status >= 500) return `your bridge failed on this order: check its log. ${page}`;
  return `see what each answer means: ${page}`;
}

/** Writes the `started` row of an attempt before the call, like the service. @returns the attempt's number */
export async function beginCall(
  pool: Pool,
  claim: TestClaim,
  name: 'createOrder' | 'findOrder',
  location: Location,
): Promise<number> {
  const attempt = await beginAttempt(pool, claim, name, location);
  if (attempt === undefined) throw new Error('the test order cannot be sent any more: it may have ended');
  return attempt;
}

export function endOf(attempt: number, call: Call): AttemptEnd {
  const { milliseconds } = call;
  if ('given' in call) return { attempt, outcome: call.given === undefined ? 'absent' : 'placed', milliseconds };
  const { error } = call;
  const { httpStatus } = error as { httpStatus?: number };
  const outcome = error instanceof Error ? error.name : 'unknown';
  return { attempt, outcome, milliseconds, httpStatus, error: classifyError(error).problem };
}
