/** What follows from a try: one function for each way on, and one for the ticket. */
import { TryAgain, type NeedsOperator } from '../domain/errors.ts';
import { describeError } from '../domain/describe-error.ts';
import { failPlacement } from './fail-placement.ts';
import type { Location } from '../locations/locations.ts';
import type { PlacementObserved } from '../domain/observed.ts';
import type { OrderRef } from '../domain/order.ts';
import { postponePlacement } from './postpone-placement.ts';
import type { AttemptEnd } from './record-attempt.ts';
import { retryWrite } from '../postgres/retry-write.ts';
import { storeOrderRef } from './store-order-ref.ts';
import type { Placing, Trying } from './placing.ts';

const HELD_RETRY_MS = 30_000;
const BACKOFF_FIRST_MS = 500;
const BACKOFF_MAX_MS = 60_000;
const UNREACHABLE = 'could not reach the POS';

/** The ticket is at the POS. */
export async function storeRef(
  deps: Placing,
  claim: Trying,
  location: Location,
  ref: OrderRef,
  end: AttemptEnd,
): Promise<void> {
  const stored = await retryWrite(() => storeOrderRef(deps.pool, claim.serviceOrderId, location.integration, ref, end));
  if (stored.conflict) {
    const { locationId, integration } = location;
    const why = "we had failed the order, or its POS id is another order's";
    deps.observe({ what: 'conflict', serviceOrderId: claim.serviceOrderId, locationId, integration, why });
  }
  tell(deps, claim, 'sent', { end });
  deps.onLive();
  deps.onPosIds(stored.newPosIds);
}

/** Nobody will take the order: the member reads `reason`, the operator `problem`. */
export async function fail(
  deps: Placing,
  claim: Trying,
  reason: string,
  problem: string,
  end?: AttemptEnd,
): Promise<void> {
  await retryWrite(() => failPlacement(deps.pool, claim, { reason, problem, end }));
  tell(deps, claim, 'failed', { problem, end });
  deps.onLive();
}

/** Food that late is no use; unless the deadline was moved this very moment. */
export async function failLate(deps: Placing, claim: Trying, inDoubt: boolean, end?: AttemptEnd): Promise<void> {
  const problem = 'the deadline has passed';
  if (!(await failPlacement(deps.pool, claim, { reason: UNREACHABLE, problem, late: true, end }))) {
    return release(deps, claim, inDoubt);
  }
  tell(deps, claim, 'failed', { problem, end });
  return deps.onLive();
}

/** Nothing will work until one of us mends something. */
export async function hold(
  deps: Placing,
  claim: Trying,
  inDoubt: boolean,
  error: NeedsOperator,
  end?: AttemptEnd,
): Promise<void> {
  // Alerted at the first: the repeats every 30 s say nothing new.
  if (claim.problem !== error.message) {
    tell(deps, claim, 'held', { problem: error.message, end, entered: !inDoubt && claim.state !== 'held' });
  }
  await retryWrite(() =>
    postponePlacement(deps.pool, claim, {
      state: inDoubt ? 'in_doubt' : 'held',
      problem: error.message,
      delayMs: HELD_RETRY_MS,
      failed: false,
      end,
    }),
  );
}

/** Surely not at the POS, and worth another try. */
export function tryLater(deps: Placing, claim: Trying, error: unknown, end?: AttemptEnd): Promise<void> {
  const problem = describeError(error);
  tell(deps, claim, 'waiting', { problem, end, entered: claim.state !== 'waiting' });
  const about = { state: 'waiting', problem, delayMs: delayAfter(claim, error), end } as const;
  return retryWrite(() => postponePlacement(deps.pool, claim, about));
}

/** Perhaps at the POS, which can tell by itself or be asked: when `error` says so, or else soon. */
export function stayInDoubt(
  deps: Placing,
  claim: Trying,
  error: unknown,
  end: AttemptEnd,
  requestEnded: boolean,
): Promise<void> {
  const problem = describeError(error);
  tell(deps, claim, 'in_doubt', { problem, end, entered: claim.state !== 'in_doubt' });
  const delayMs = delayAfter(claim, error);
  return retryWrite(() =>
    postponePlacement(deps.pool, claim, { state: 'in_doubt', problem, delayMs, requestEnded, end }),
  );
}

/** Perhaps at the POS, and only a person can tell. */
export function askOperator(
  deps: Placing,
  claim: Trying,
  why: string,
  ended?: { end: AttemptEnd; requestEnded: boolean },
): Promise<void> {
  const entered = claim.state !== 'in_doubt';
  tell(deps, claim, 'in_doubt', { problem: why, end: ended?.end, entered, forOperator: true });
  return retryWrite(() =>
    postponePlacement(deps.pool, claim, { state: 'in_doubt', problem: why, delayMs: undefined, ...ended }),
  );
}

/** Back to the queue at once, for a moment when the location has a worker free. */
export function release(deps: Placing, claim: Trying, inDoubt: boolean): Promise<void> {
  const state = inDoubt ? 'in_doubt' : claim.state === 'held' ? 'held' : 'waiting';
  return postponePlacement(deps.pool, claim, { state, problem: undefined, delayMs: 0, failed: false });
}

/** Exponential back-off with full jitter; never sooner than the other side asked for. */
function delayAfter(claim: Trying, error: unknown): number {
  const ceiling = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(claim.failures, 20));
  const asked = error instanceof TryAgain ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(asked, Math.random() * ceiling);
}

/** Says what follows from the try. */
export function tell(
  deps: Placing,
  claim: Trying,
  outcome: PlacementObserved['outcome'],
  about: {
    problem?: string;
    end?: AttemptEnd | undefined;
    /** It was in another state before; unless it says otherwise, it was. */
    entered?: boolean;
    forOperator?: boolean;
  },
): void {
  deps.observe({
    what: 'placement',
    outcome,
    entered: about.entered ?? true,
    serviceOrderId: claim.serviceOrderId,
    locationId: claim.locationId,
    integration: claim.integration,
    milliseconds: about.end?.milliseconds,
    sinceSignalMs: claim.age * 1_000 + performance.now() - claim.begunAt,
    problem: about.problem,
    forOperator: about.forOperator ?? false,
  });
}
