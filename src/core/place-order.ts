import type { Pool } from 'pg';
import { beginAttempt, enterDoubt, failPlacement, postpone, storeOrderRef, type AttemptEnd } from './attempts.ts';
import type { PosId } from './apply-deliveries.ts';
import type { Claim } from './claim-placements.ts';
import { GiveUp, OursToFix, TryAgain } from './errors.ts';
import { WrongLocation, findLocation, type Location, type OpenSettings } from './locations.ts';
import { OrderRef, type CanonicalOrder } from './order.ts';
import { readOrder, recordOrder } from './record-order.ts';
import type { RefetchOrder } from './refetch-order.ts';

/** Well inside the lease, so that a call is over before anybody else may begin one. */
const POS_TIMEOUT_MS = 15_000;
/** The platform's read replica may lag behind its own signal. */
const MISSING_ORDER_S = 120;
const HELD_RETRY_MS = 30_000;
/** A request that was cut off may still be on its way into the POS: before this, "not there" proves nothing. */
const LOOK_UP_AFTER_S = 60;
const BACKOFF_FIRST_MS = 500;
const BACKOFF_MAX_MS = 60_000;

/** What a member reads when nobody can be blamed by name. */
const UNREACHABLE = 'could not reach the POS';
const REJECTED = 'the restaurant could not take the order';

export type Log = {
  info(about: object, message: string): void;
  warn(about: object, message: string): void;
  error(about: object, message: string): void;
};

export type Placing = {
  pool: Pool;
  refetch: RefetchOrder;
  open: OpenSettings;
  deadlineS: number;
  log: Log;
  /** False when the location has its share of the workers already. */
  enter: (locationId: string) => boolean;
  /** Something was put into the outbox. */
  onLive: () => void;
  /** POS ids became ours. */
  onPosIds: (ids: readonly PosId[]) => void;
};

/**
 * Brings one order to its POS, or finds out why not yet. Throws only when the database fails; the lease then runs out
 * and somebody else goes on.
 */
export async function placeOrder(deps: Placing, claim: Claim): Promise<void> {
  let inDoubt = claim.state === 'in_doubt';
  if (claim.callDied) {
    await enterDoubt(deps.pool, claim);
    inDoubt = true;
  }

  const found = await fetchOnce(deps, claim);
  if (found === undefined) return;
  if (found.ended) return failPlacement(deps.pool, claim, { reason: REJECTED, problem: 'the order has ended' });
  const { order } = found;
  if (!deps.enter(order.locationId)) return release(deps, claim, inDoubt);

  const location = await usableLocation(deps, order.locationId);
  if (claim.late && !inDoubt && !(location instanceof OursToFix && location.message === PAUSED)) {
    return fail(deps, claim, UNREACHABLE, 'the deadline has passed');
  }
  if (location instanceof OursToFix) return hold(deps, claim, inDoubt, location);

  if (inDoubt && !location.provider.deduplicates) {
    if (location.provider.findOrder === undefined) return askOperator(deps, claim);
    const look = await lookUp(deps, claim, location);
    if (look !== 'absent') return;
    inDoubt = false;
    if (claim.late) return fail(deps, claim, UNREACHABLE, 'the deadline has passed');
  }
  return attempt(deps, claim, order, location, inDoubt);
}

/** Fetches the order from the platform the first time; afterwards it is what we wrote down. */
async function fetchOnce(deps: Placing, claim: Claim): Promise<{ order: CanonicalOrder; ended: boolean } | undefined> {
  const known = await readOrder(deps.pool, claim.serviceOrderId);
  if (known !== undefined) return known;
  if (claim.late) {
    await fail(deps, claim, UNREACHABLE, 'the deadline has passed before the order could be fetched');
    return undefined;
  }
  let order: CanonicalOrder | undefined;
  try {
    order = await deps.refetch(claim.serviceOrderId);
  } catch (error) {
    if (error instanceof GiveUp) await fail(deps, claim, error.reason, error.message);
    else if (error instanceof OursToFix) await hold(deps, claim, false, error);
    else await tryLater(deps, claim, error);
    return undefined;
  }
  if (order === undefined) {
    if (claim.age > MISSING_ORDER_S) await fail(deps, claim, REJECTED, 'the platform has no such order');
    else await tryLater(deps, claim, new TryAgain('the platform has no such order yet', { sent: false }));
    return undefined;
  }
  if (!(await recordOrder(deps.pool, claim, order, deps.deadlineS))) return undefined;
  deps.onLive();
  return { order, ended: false };
}

const PAUSED = 'the location is paused';

async function usableLocation(deps: Placing, locationId: string): Promise<Location | OursToFix> {
  try {
    const location = await findLocation(deps.pool, deps.open, locationId);
    if (location === undefined) return new OursToFix('the location is not configured');
    return location.paused ? new OursToFix(PAUSED) : location;
  } catch (error) {
    if (error instanceof WrongLocation) return new OursToFix(error.message);
    throw error;
  }
}

/** Calls the POS; whatever it answers, the placement says what comes next. */
async function attempt(
  deps: Placing,
  claim: Claim,
  order: CanonicalOrder,
  location: Location,
  inDoubt: boolean,
): Promise<void> {
  const call = await callPos(deps, claim, 'createOrder', location, async (signal) =>
    OrderRef.parse(await location.provider.createOrder(order, { settings: location.settings, signal })),
  );
  if (call === undefined) return undefined;
  if (!('error' in call)) return storeRef(deps, claim, location, call.result, call.end);

  const { error, end } = call;
  if (error instanceof GiveUp) return fail(deps, claim, error.reason, error.message, end);
  if (error instanceof OursToFix) return hold(deps, claim, inDoubt, error, end);
  const sent = !(error instanceof TryAgain) || error.sent;
  if (!sent && !inDoubt) return tryLater(deps, claim, error, end);

  const { deduplicates, findOrder } = location.provider;
  deps.log.warn(about(claim, order.locationId), 'in doubt: the POS may have the order');
  return postpone(deps.pool, claim, {
    state: 'in_doubt',
    problem: end.error,
    delayMs: deduplicates || findOrder !== undefined ? delayAfter(claim, error) : undefined,
    requestEnded: sent,
    end,
  });
}

/** @returns 'absent' when the POS surely has no such order, 'settled' when the placement has been dealt with */
async function lookUp(deps: Placing, claim: Claim, location: Location): Promise<'absent' | 'settled'> {
  const call = await callPos(deps, claim, 'findOrder', location, async (signal) => {
    const ref = await location.provider.findOrder?.(claim.serviceOrderId, { settings: location.settings, signal });
    return ref && OrderRef.parse(ref);
  });
  if (call === undefined) return 'settled';
  if ('error' in call) {
    const { error, end } = call;
    if (error instanceof OursToFix) await hold(deps, claim, true, error, end);
    else {
      const delayMs = delayAfter(claim, error);
      await postpone(deps.pool, claim, { state: 'in_doubt', problem: end.error, delayMs, end });
    }
    return 'settled';
  }
  if (call.result !== undefined) {
    await storeRef(deps, claim, location, call.result, call.end);
    return 'settled';
  }
  const wait = LOOK_UP_AFTER_S - (claim.sinceRequest ?? 0);
  if (claim.callDied || wait > 0) {
    await postpone(deps.pool, claim, {
      state: 'in_doubt',
      problem: 'the POS does not have the order yet',
      delayMs: (claim.callDied ? LOOK_UP_AFTER_S : wait) * 1000,
      end: call.end,
    });
    return 'settled';
  }
  return 'absent';
}

/** One call to the POS between its two rows. Undefined when the placement is no longer ours to try. */
async function callPos<Result>(
  deps: Placing,
  claim: Claim,
  name: 'createOrder' | 'findOrder',
  location: Location,
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<{ result: Result; end: AttemptEnd } | { error: unknown; end: AttemptEnd } | undefined> {
  const number = await beginAttempt(deps.pool, claim, name, location.integration);
  if (number === undefined) return undefined;
  const began = performance.now();
  const ending = (outcome: string, error?: unknown): AttemptEnd => ({
    attempt: number,
    outcome,
    milliseconds: performance.now() - began,
    httpStatus: (error as { httpStatus?: number } | undefined)?.httpStatus,
    error: error === undefined ? undefined : describe(error),
  });
  try {
    const result = await underTimeLimit(call);
    return { result, end: ending(result === undefined ? 'absent' : 'placed') };
  } catch (error) {
    return { error, end: ending(error instanceof Error ? error.name : 'unknown', error) };
  }
}

/** A provider that forgets its signal must not outlive the lease either. */
async function underTimeLimit<Result>(call: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const signal = AbortSignal.timeout(POS_TIMEOUT_MS);
  const expired = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => {
    expired.reject(new TryAgain(`no answer in ${POS_TIMEOUT_MS} ms`, { sent: true }));
  });
  return Promise.race([call(signal), expired.promise]);
}

async function storeRef(
  deps: Placing,
  claim: Claim,
  location: Location,
  ref: OrderRef,
  end: AttemptEnd,
): Promise<void> {
  const stored = await storeOrderRef(deps.pool, claim.serviceOrderId, location.integration, ref, end);
  if (stored.conflict)
    deps.log.error(
      about(claim, location.locationId),
      "conflict: we had failed the order, or its POS id is another order's",
    );
  deps.log.info({ ...about(claim, location.locationId), milliseconds: Math.round(end.milliseconds) }, 'order sent');
  deps.onLive();
  deps.onPosIds(stored.newPosIds);
}

async function fail(deps: Placing, claim: Claim, reason: string, problem: string, end?: AttemptEnd): Promise<void> {
  deps.log.warn({ ...about(claim), problem }, 'order failed');
  await failPlacement(deps.pool, claim, { reason, problem, end });
  deps.onLive();
}

async function hold(deps: Placing, claim: Claim, inDoubt: boolean, error: OursToFix, end?: AttemptEnd): Promise<void> {
  // Alerted at the first: the repeats every 30 s say nothing new.
  if (claim.problem !== error.message)
    deps.log.error({ ...about(claim), problem: error.message }, 'order held: ours to fix');
  await postpone(deps.pool, claim, {
    state: inDoubt ? 'in_doubt' : 'held',
    problem: error.message,
    delayMs: HELD_RETRY_MS,
    failed: false,
    ...(end && { end }),
  });
}

function askOperator(deps: Placing, claim: Claim): Promise<void> {
  deps.log.error(about(claim), 'in doubt: an operator must say whether the POS has the order');
  return postpone(deps.pool, claim, {
    state: 'in_doubt',
    problem: 'the POS may have the order and cannot be asked: resolve it',
    delayMs: undefined,
  });
}

function tryLater(deps: Placing, claim: Claim, error: unknown, end?: AttemptEnd): Promise<void> {
  return postpone(deps.pool, claim, {
    state: 'waiting',
    problem: describe(error),
    delayMs: delayAfter(claim, error),
    ...(end && { end }),
  });
}

/** Back to the queue at once, for a moment when the location has a worker free. */
function release(deps: Placing, claim: Claim, inDoubt: boolean): Promise<void> {
  const state = inDoubt ? 'in_doubt' : claim.state === 'held' ? 'held' : 'waiting';
  return postpone(deps.pool, claim, { state, problem: undefined, delayMs: 0, failed: false });
}

/** Exponential back-off with full jitter; never sooner than the other side asked for. */
function delayAfter(claim: Claim, error: unknown): number {
  const ceiling = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(claim.failures, 20));
  const asked = error instanceof TryAgain ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(asked, Math.random() * ceiling);
}

/** Our own errors say what may be said; any other may hold a member's data or a credential. */
function describe(error: unknown): string {
  if (error instanceof TryAgain || error instanceof OursToFix || error instanceof GiveUp) return error.message;
  return `unexpected ${error instanceof Error ? error.name : typeof error}`;
}

function about(claim: Claim, locationId: string | null = claim.locationId): object {
  return { serviceOrderId: claim.serviceOrderId, locationId };
}
