import { classifyError } from '../core/domain/classify-error.ts';
import { GiveUp, TryAgain } from '../core/domain/errors.ts';
import type { KitchenOrder } from '../core/domain/order.ts';
import type { Problem } from '../core/domain/placement-cause.ts';
import type { Location } from '../core/locations/locations.ts';
import type { TestClaim } from '../core/test-orders/test-order.ts';
import { endAttempt } from '../core/transitions/record-attempt.ts';
import { storeOrderRef } from '../core/transitions/placement-outcomes.ts';
import { failed, ok, skipped, type Check } from './check.ts';
import { beginSending, type Exchange, type SentOrder } from './send-test-order.ts';
import { pageFor, type PlaceDeps } from './test-run.ts';

/** `ids` are all ticket ids that the POS named, also in the answers that we treat as lost. */
type PlacedTwice = { ids: readonly string[]; lastExchange: string | undefined } | { problem: Problem };

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
  const begin = (name?: 'findOrder'): Promise<() => Promise<SentOrder>> =>
    beginSending(deps, location, { claim, order }, answerMs, name);

  // Both attempt rows are written before the first request starts, so that the two requests overlap.
  const begun = [await begin()];
  if (provider.deduplicates && provider.builtForUs !== undefined) begun.push(await begin());
  const calls = await Promise.all(begun.map((send) => send()));
  for (const { attempt } of calls) await endAttempt(deps.pool, serviceOrderId, attempt);
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
    await storeOrderRef(deps.pool, serviceOrderId, integration, first.given ?? {});
    return { ids: idsOf(first), lastExchange: first.exchange?.line };
  }
  const repeat = await begin(provider.deduplicates ? undefined : 'findOrder');
  const again = await repeat();
  const before = calls.flatMap(idsOf);
  report(judgeAgain(before, again, provider.deduplicates));
  const ref = 'error' in again ? first.given : again.given;
  await storeOrderRef(deps.pool, serviceOrderId, integration, ref ?? {}, again.attempt);
  return { ids: [...new Set([...before, ...idsOf(again)])], lastExchange: again.exchange?.line };
}

function idsOf(call: SentOrder): string[] {
  return 'given' in call && call.given?.providerOrderId !== undefined ? [call.given.providerOrderId] : [];
}

/** Suggests a fix to the developers of a POS that does not take the order. If it is built for us, it is more specific. */
function fixForAnswer(exchange: Exchange | undefined, location: Location): string {
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

function judgeFirst(first: SentOrder, location: Location): Check {
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
function judgeOther(first: SentOrder, other: SentOrder): Check {
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
function judgeAgain(before: readonly string[], again: SentOrder, doesRepeat: boolean): Check {
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
