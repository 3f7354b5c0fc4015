/** What follows from a try: one function for each way on, and one for the ticket. */
import { failPlacement, postpone, storeOrderRef, type AttemptEnd } from './attempts.ts';
import { describe } from './call-provider.ts';
import type { Claim } from './claim-placements.ts';
import { TryAgain, type OursToFix } from './errors.ts';
import type { Location } from './locations.ts';
import type { OrderRef } from './order.ts';
import { persistently } from './persistently.ts';
import type { Placing } from './placing.ts';

const HELD_RETRY_MS = 30_000;
const BACKOFF_FIRST_MS = 500;
const BACKOFF_MAX_MS = 60_000;
const UNREACHABLE = 'could not reach the POS';

/** The ticket is at the POS. */
export async function storeRef(
  deps: Placing,
  claim: Claim,
  location: Location,
  ref: OrderRef,
  end: AttemptEnd,
): Promise<void> {
  const about = { serviceOrderId: claim.serviceOrderId, locationId: location.locationId };
  const stored = await persistently(() =>
    storeOrderRef(deps.pool, claim.serviceOrderId, location.integration, ref, end),
  );
  if (stored.conflict) deps.log.error(about, "conflict: we had failed the order, or its POS id is another order's");
  deps.log.info({ ...about, milliseconds: Math.round(end.milliseconds) }, 'order sent');
  deps.onLive();
  deps.onPosIds(stored.newPosIds);
}

/** Nobody will take the order: the member reads `reason`, the operator `problem`. */
export async function fail(
  deps: Placing,
  claim: Claim,
  reason: string,
  problem: string,
  end?: AttemptEnd,
): Promise<void> {
  await persistently(() => failPlacement(deps.pool, claim, { reason, problem, end }));
  deps.log.warn({ ...about(claim), problem }, 'order failed');
  deps.onLive();
}

/** Food that late is no use; unless the deadline was moved this very moment. */
export async function failLate(deps: Placing, claim: Claim, inDoubt: boolean, end?: AttemptEnd): Promise<void> {
  const problem = 'the deadline has passed';
  if (!(await failPlacement(deps.pool, claim, { reason: UNREACHABLE, problem, late: true, end }))) {
    return release(deps, claim, inDoubt);
  }
  deps.log.warn({ ...about(claim), problem }, 'order failed');
  return deps.onLive();
}

/** Nothing will work until one of us mends something. */
export async function hold(
  deps: Placing,
  claim: Claim,
  inDoubt: boolean,
  error: OursToFix,
  end?: AttemptEnd,
): Promise<void> {
  // Alerted at the first: the repeats every 30 s say nothing new.
  if (claim.problem !== error.message) {
    deps.log.error({ ...about(claim), problem: error.message }, 'order held: ours to fix');
  }
  await persistently(() =>
    postpone(deps.pool, claim, {
      state: inDoubt ? 'in_doubt' : 'held',
      problem: error.message,
      delayMs: HELD_RETRY_MS,
      failed: false,
      end,
    }),
  );
}

/** Surely not at the POS, and worth another try. */
export function tryLater(deps: Placing, claim: Claim, error: unknown, end?: AttemptEnd): Promise<void> {
  const about = { state: 'waiting', problem: describe(error), delayMs: delayAfter(claim, error), end } as const;
  return persistently(() => postpone(deps.pool, claim, about));
}

/** Perhaps at the POS, which can tell by itself or be asked: when `error` says so, or else soon. */
export function stayInDoubt(
  deps: Placing,
  claim: Claim,
  error: unknown,
  end: AttemptEnd,
  requestEnded: boolean,
): Promise<void> {
  deps.log.warn(about(claim), 'in doubt: the POS may have the order');
  const delayMs = delayAfter(claim, error);
  return persistently(() =>
    postpone(deps.pool, claim, { state: 'in_doubt', problem: describe(error), delayMs, requestEnded, end }),
  );
}

/** Perhaps at the POS, and only a person can tell. */
export function askOperator(
  deps: Placing,
  claim: Claim,
  why: string,
  ended?: { end: AttemptEnd; requestEnded: boolean },
): Promise<void> {
  deps.log.error({ ...about(claim), problem: why }, 'in doubt: an operator must say whether the POS has the order');
  return persistently(() =>
    postpone(deps.pool, claim, { state: 'in_doubt', problem: why, delayMs: undefined, ...ended }),
  );
}

/** Back to the queue at once, for a moment when the location has a worker free. */
export function release(deps: Placing, claim: Claim, inDoubt: boolean): Promise<void> {
  const state = inDoubt ? 'in_doubt' : claim.state === 'held' ? 'held' : 'waiting';
  return postpone(deps.pool, claim, { state, problem: undefined, delayMs: 0, failed: false });
}

/** Exponential back-off with full jitter; never sooner than the other side asked for. */
function delayAfter(claim: Claim, error: unknown): number {
  const ceiling = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(claim.failures, 20));
  const asked = error instanceof TryAgain ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(asked, Math.random() * ceiling);
}

function about(claim: Claim): object {
  return { serviceOrderId: claim.serviceOrderId, locationId: claim.locationId };
}
