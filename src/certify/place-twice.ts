import type { Pool } from 'pg';
import { classifyError } from '../core/domain/classify-error.ts';
import { GiveUp, TryAgain } from '../core/domain/errors.ts';
import { OrderRef, type KitchenOrder } from '../core/domain/order.ts';
import type { Why } from '../core/domain/placement-cause.ts';
import type { PosContext } from '../core/domain/provider.ts';
import { askPos, type PosDeps } from '../core/locations/ask-pos.ts';
import type { Location } from '../core/locations/locations.ts';
import type { TestClaim } from '../core/placements/begin-test-order.ts';
import { beginAttempt, endAttempt, type AttemptEnd } from '../core/placements/record-attempt.ts';
import { storeOrderRef } from '../core/placements/store-order-ref.ts';
import type { Certified } from './certified.ts';
import { pageFor } from './page-for.ts';
import { remedyOfAnswer } from './remedy-of-answer.ts';
import { watchFetch, type Exchange } from './watch-fetch.ts';

export type PlaceDeps = PosDeps & { pool: Pool };

/** `ids` are all that the POS named, also in an answer that counts as lost. */
export type PlacedTwice = { ids: readonly string[]; lastExchange: string | undefined } | { why: Why };

type CallEnd = { milliseconds: number; end: AttemptEnd; exchange: Exchange | undefined } & (
  | { ref: OrderRef | undefined }
  | { error: unknown }
);

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
  about: { claim: TestClaim; answerMs: number; report: (certified: Certified) => void },
): Promise<PlacedTwice> {
  const { provider, integration } = location;
  const { claim, answerMs, report } = about;
  const send = (context: PosContext<unknown>): Promise<OrderRef> => provider.createOrder(order, context);
  const begin = (name: 'createOrder' | 'findOrder'): Promise<number> => beginCall(deps.pool, claim, name, location);

  // Both rows before either request: the two have to meet.
  const begun = [await begin('createOrder')];
  if (provider.deduplicates && provider.builtForUs !== undefined) begun.push(await begin('createOrder'));
  const calls = await Promise.all(begun.map((attempt) => call(deps, location, attempt, answerMs, send)));
  for (const { end } of calls) await endAttempt(deps.pool, claim.serviceOrderId, end);
  // One of two may be told to come later, or that the order is there.
  const taken = calls.find((each) => idsOf(each).length > 0) ?? calls.find((each) => 'ref' in each);
  const first = taken ?? calls[0];
  if (first === undefined) throw new Error('nothing was sent');
  if ('error' in first) {
    const why = classifyError(first.error);
    const reason = first.error instanceof GiveUp ? `: ${first.error.reason}` : '';
    report({
      ...asked('takes the order', first),
      state: 'failed',
      found: `${why.problem}${reason}`,
      expected: `an answer within ${answerMs / 1000} s that it is taken`,
      toDo: remedyOfAnswer(first, location),
    });
    return { why };
  }
  report({ ...asked('takes the order', first), ...judgeFirst(first, location) });
  const others = calls.filter((each) => each !== first);
  for (const other of others) report({ ...asked('at once', other), ...judgeOther(first, other) });

  if (!provider.deduplicates && provider.findOrder === undefined) {
    const found = 'this POS cannot recognise a repeat: a person decides what becomes of an order whose answer was lost';
    report({ check: 'takes it once', state: 'skipped', found });
    await storeOrderRef(deps.pool, order.serviceOrderId, integration, first.ref ?? {});
    return { ids: idsOf(first), lastExchange: first.exchange?.line };
  }
  const again = provider.deduplicates
    ? await call(deps, location, await begin('createOrder'), answerMs, send)
    : await call(deps, location, await begin('findOrder'), answerMs, (context) =>
        provider.findOrder === undefined
          ? Promise.resolve(undefined)
          : provider.findOrder(order.serviceOrderId, context),
      );
  const before = calls.flatMap(idsOf);
  report({ ...asked('takes it once', again), ...judgeAgain(before, again, provider.deduplicates) });
  const ref = 'error' in again ? first.ref : again.ref;
  await storeOrderRef(deps.pool, order.serviceOrderId, integration, ref ?? {}, again.end);
  return { ids: [...new Set([...before, ...idsOf(again)])], lastExchange: again.exchange?.line };
}

function idsOf(call: CallEnd): string[] {
  return 'ref' in call && call.ref?.providerOrderId !== undefined ? [call.ref.providerOrderId] : [];
}

function asked(check: string, { exchange }: CallEnd): Pick<Certified, 'check' | 'request'> {
  return { check, ...(exchange !== undefined && { request: exchange.line }) };
}

type Judged = Omit<Certified, 'check' | 'request'>;

function judgeFirst(first: CallEnd, location: Location): Judged {
  const [id] = idsOf(first);
  const { idKind } = first.exchange ?? {};
  // Only an answer in our own words has that field.
  if (id === undefined && idKind !== undefined) {
    return {
      state: 'failed',
      found: `its answer names the ticket as providerOrderId, which is ${idKind} and no id: the order is there without it`,
      expected: 'providerOrderId is a string of 1 to 255 characters, such as {"providerOrderId": "T-17"}',
      toDo: `write the id as a string, with quotation marks: ${pageFor(location, 'orders')}`,
    };
  }
  const named = id === undefined ? 'without an id of the ticket' : `as "${id}"`;
  return { state: 'ok', found: `taken in ${first.milliseconds} ms, ${named}` };
}

/** @param other of two that were sent at the same moment; it may be told to come later */
function judgeOther(first: CallEnd, other: CallEnd): Judged {
  if ('error' in other) {
    const { problem } = classifyError(other.error);
    if (other.error instanceof TryAgain) {
      return { state: 'ok', found: `of two at the same moment the other would be sent again: ${problem}` };
    }
    return {
      state: 'failed',
      found: `of two at the same moment the other was not taken: ${problem}. It would not be sent again`,
      expected: TAKEN_ONCE,
      toDo: 'answer both with the same ticket, or one of them with 409 or 503',
    };
  }
  const [[firstId], [id]] = [idsOf(first), idsOf(other)];
  if (firstId !== undefined && id !== undefined && id !== firstId) {
    return {
      state: 'failed',
      found: `two requests at the same moment made two tickets: "${firstId}" and "${id}"`,
      expected: TAKEN_ONCE,
      toDo: 'insert our order id first, into a column with a unique index, and make the ticket only if that was new',
    };
  }
  if (other.exchange?.status === 409) return { state: 'ok', found: 'of two at the same moment the other was known' };
  if (id === undefined) return { state: 'skipped', found: NOBODY_CAN_TELL };
  return { state: 'ok', found: `of two at the same moment, both were answered with "${id}"` };
}

/**
 * @param before the ids that were answered
 * @param doesRepeat whether it was sent again, and not only asked for
 */
function judgeAgain(before: readonly string[], again: CallEnd, doesRepeat: boolean): Judged {
  if ('error' in again) {
    const { problem } = classifyError(again.error);
    return {
      state: 'failed',
      found: `the same order again was not taken: ${problem}. Its lost answer would become a person's work`,
      expected: TAKEN_ONCE,
      toDo: 'answer a repeat as you answered the first request, by the id of the order',
    };
  }
  const [id] = idsOf(again);
  if (again.ref === undefined) {
    return {
      state: 'failed',
      found: 'asked for the order by our id, the POS does not know it',
      expected: 'the ticket that it has just made',
      toDo: 'let it be found by our id at once: otherwise it would be ordered a second time',
    };
  }
  if (before[0] !== undefined && id !== undefined && !before.includes(id)) {
    return {
      state: 'failed',
      found: `the same order again made another ticket: "${before[0]}", then "${id}"`,
      expected: TAKEN_ONCE,
      toDo: 'store the id of each order with its ticket, in one transaction, and answer a repeat with that ticket',
    };
  }
  if (!doesRepeat) return { state: 'ok', found: 'asked for after a lost answer, it was found' };
  const isKnown = again.exchange?.status === 409;
  if (!isKnown && (id === undefined || before.length === 0)) return { state: 'skipped', found: NOBODY_CAN_TELL };
  return { state: 'ok', found: `sent again after a lost answer, it was ${isKnown ? 'known' : 'the same'}` };
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

/** Makes one call to the POS. */
async function call(
  deps: PlaceDeps,
  location: Location,
  attempt: number,
  answerMs: number,
  ask: (context: PosContext<unknown>) => Promise<OrderRef | undefined>,
): Promise<CallEnd> {
  const { fetch, lastExchange } = watchFetch(deps.posFetch);
  const began = performance.now();
  const since = (): number => Math.round(performance.now() - began);
  try {
    const limit = { seconds: answerMs / 1000, sent: true };
    const given = await askPos({ ...deps, posFetch: fetch }, location, limit, ask);
    const ref = given && OrderRef.parse(given);
    const milliseconds = since();
    const end = { attempt, outcome: ref === undefined ? 'absent' : 'placed', milliseconds };
    return { ref, milliseconds, end, exchange: await lastExchange() };
  } catch (error) {
    const milliseconds = since();
    const { httpStatus } = error as { httpStatus?: number };
    const outcome = error instanceof Error ? error.name : 'unknown';
    const end = { attempt, outcome, milliseconds, httpStatus, error: classifyError(error).problem };
    return { error, milliseconds, end, exchange: await lastExchange() };
  }
}
