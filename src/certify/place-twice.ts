import type { Pool } from 'pg';
import { classifyError } from '../core/domain/classify-error.ts';
import { GiveUp, TryAgain } from '../core/domain/errors.ts';
import { OrderRef, type KitchenOrder } from '../core/domain/order.ts';
import type { Why } from '../core/domain/placement-cause.ts';
import type { Credentials, PosContext } from '../core/domain/provider.ts';
import { withTimeout } from '../core/domain/with-timeout.ts';
import type { Location } from '../core/locations/locations.ts';
import type { TestClaim } from '../core/placements/begin-test-order.ts';
import { beginAttempt, endAttempt, type AttemptEnd } from '../core/placements/record-attempt.ts';
import { storeOrderRef } from '../core/placements/store-order-ref.ts';
import type { Now } from '../core/postgres/database-clock.ts';
import type { Certified } from './certified.ts';
import { watchFetch } from './watch-fetch.ts';

export type PlaceDeps = {
  pool: Pool;
  now: Now;
  credentialsFor: (integration: string) => Credentials;
  posFetch: typeof fetch;
};

/** `ids` are all that the POS named, also in an answer that counts as lost. */
export type PlacedTwice = { ids: readonly string[]; lastExchange: string | undefined } | { why: Why };

type CallEnd = { milliseconds: number; end: AttemptEnd; exchange: string | undefined } & (
  | { ref: OrderRef | undefined }
  | { error: unknown }
);

const TAKEN_ONCE = 'one ticket for an order, however often it is sent: the answer to the first request may be lost';

/**
 * Sends an order, takes the answer for lost, and does what the service does then: sends it again, or asks for it. What
 * the first answer said is used for comparison alone.
 */
export async function placeTwice(
  deps: PlaceDeps,
  location: Location,
  order: KitchenOrder,
  about: { claim: TestClaim; answerMs: number; report: (certified: Certified) => void },
): Promise<PlacedTwice> {
  const { provider, integration } = location;
  const { claim, answerMs, report } = about;
  const page = `docs/providers/${integration}.md`;

  const first = await call(deps, location, claim, answerMs, 'createOrder', (context) =>
    provider.createOrder(order, context),
  );
  await endAttempt(deps.pool, claim.serviceOrderId, first.end);
  if ('error' in first) {
    const why = classifyError(first.error);
    const reason = first.error instanceof GiveUp ? `: ${first.error.reason}` : '';
    report({
      ...asked('takes the order', first),
      state: 'failed',
      found: `${why.problem}${reason}`,
      expected: `an answer within ${answerMs / 1000} s that it is taken`,
      toDo: `see what each answer means: ${page}`,
    });
    return { why };
  }
  const firstId = first.ref?.providerOrderId;
  const named = firstId === undefined ? 'without an id of the ticket' : `as "${firstId}"`;
  report({ ...asked('takes the order', first), state: 'ok', found: `taken in ${first.milliseconds} ms, ${named}` });

  if (!provider.deduplicates && provider.findOrder === undefined) {
    const found = 'this POS cannot recognise a repeat: a person decides what becomes of an order whose answer was lost';
    report({ check: 'takes it once', state: 'skipped', found });
    await storeOrderRef(deps.pool, order.serviceOrderId, integration, first.ref ?? {});
    return { ids: idsOf(first), lastExchange: first.exchange };
  }
  const again = await call(
    deps,
    location,
    claim,
    answerMs,
    provider.deduplicates ? 'createOrder' : 'findOrder',
    (context) =>
      provider.deduplicates
        ? provider.createOrder(order, context)
        : (provider.findOrder?.(order.serviceOrderId, context) ?? Promise.resolve(undefined)),
  );
  report({ ...asked('takes it once', again), ...judge(firstId, again, provider.deduplicates) });
  const ref = 'error' in again ? first.ref : again.ref;
  await storeOrderRef(deps.pool, order.serviceOrderId, integration, ref ?? {}, again.end);
  return { ids: [...idsOf(first), ...idsOf(again)], lastExchange: again.exchange };
}

function idsOf(call: CallEnd): string[] {
  return 'ref' in call && call.ref?.providerOrderId !== undefined ? [call.ref.providerOrderId] : [];
}

function asked(check: string, { exchange }: CallEnd): Pick<Certified, 'check' | 'request'> {
  return { check, ...(exchange !== undefined && { request: exchange }) };
}

/** @param doesRepeat whether it was sent again, and not only asked for */
function judge(firstId: string | undefined, again: CallEnd, doesRepeat: boolean): Omit<Certified, 'check' | 'request'> {
  if ('error' in again) {
    const { problem } = classifyError(again.error);
    return {
      state: 'failed',
      found: `the same order again was not taken: ${problem}. Its lost answer would become a person's work`,
      expected: TAKEN_ONCE,
      toDo: 'answer a repeat as you answered the first request, by the id of the order',
    };
  }
  const id = again.ref?.providerOrderId;
  if (again.ref === undefined) {
    return {
      state: 'failed',
      found: 'asked for the order by our id, the POS does not know it',
      expected: 'the ticket that it has just made',
      toDo: 'let it be found by our id at once: otherwise it would be ordered a second time',
    };
  }
  if (firstId !== undefined && id !== undefined && id !== firstId) {
    return {
      state: 'failed',
      found: `the same order again made another ticket: "${firstId}", then "${id}"`,
      expected: TAKEN_ONCE,
      toDo: 'store the id of each order with its ticket, in one transaction, and answer a repeat with that ticket',
    };
  }
  if (!doesRepeat) return { state: 'ok', found: 'asked for after a lost answer, it was found' };
  return { state: 'ok', found: `sent again after a lost answer, it was ${id === firstId ? 'the same' : 'known'}` };
}

/** Makes one call to the POS, with its row before and after, as the service does. */
async function call(
  deps: PlaceDeps,
  location: Location,
  claim: TestClaim,
  answerMs: number,
  name: 'createOrder' | 'findOrder',
  ask: (context: PosContext<unknown>) => Promise<OrderRef | undefined>,
): Promise<CallEnd> {
  const attempt = await beginAttempt(deps.pool, claim, name, location);
  if (attempt === undefined) throw new Error('the test order is no longer ours to send: has it ended meanwhile?');
  const { fetch, lastExchange } = watchFetch(deps.posFetch);
  const { settings, integration } = location;
  const began = performance.now();
  const since = (): number => Math.round(performance.now() - began);
  try {
    const given = await withTimeout(
      answerMs,
      (signal) => ask({ settings, signal, now: deps.now(), credentials: deps.credentialsFor(integration), fetch }),
      () => new TryAgain(`no answer in ${answerMs / 1000} s`, { sent: true }),
    );
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
