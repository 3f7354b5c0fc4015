import { classifyError, perhapsTaken } from '../domain/classify-error.ts';
import { GiveUp, NeedsOperator } from '../domain/errors.ts';
import { type KitchenOrder, OrderRef } from '../domain/order.ts';
import type { Location } from '../locations/locations.ts';
import { callProvider, decideByKind, findUsableLocation, waitAfter } from './call-provider.ts';
import { concludePlacement, type Decision, observePlacement } from './conclude-placement.ts';
import type { Claim } from '../domain/placement.ts';
import { why } from '../domain/placement-cause.ts';
import { enterDoubt } from './placement-sql.ts';
import { fetchOnce } from './refetch-order.ts';
import { perhapsTakenBefore } from './record-attempt.ts';
import { settleDoubt } from './settle-doubt.ts';
import type { PlacementDeps, PlacementJob } from './placement-job.ts';

/** Sends the order to the POS, and decides by its answer. */
export async function sendOrder(
  deps: PlacementDeps,
  job: PlacementJob,
  location: Location,
  order: KitchenOrder,
): Promise<Decision> {
  const { provider } = location;
  const call = await callProvider(deps, job, 'createOrder', location, async (context) =>
    OrderRef.parse(await provider.createOrder(order, context)),
  );
  // Perhaps it was cancelled meanwhile: whoever takes it next withdraws it, and need not wait for the lease.
  if (call === undefined) return { do: 'release' };
  const { end } = call;
  if (!('error' in call)) return { do: 'store ref', location, ref: call.result, end };

  const { error } = call;
  const about = classifyError(error);
  if (error instanceof GiveUp && job.doubt !== undefined) {
    // A POS may check its menu before the key, so the earlier request can have made a ticket all the same.
    const problem = `the POS refuses the repeat: ${about.problem}`;
    const cause = { code: 'repeat_refused', httpStatus: error.httpStatus } as const;
    return { do: 'ask operator', problem, cause, requestEnded: true, end };
  }
  const requestEnded = perhapsTaken(error, provider);
  // A doubt that there was stays while an operator mends something.
  if (!requestEnded && (job.doubt === undefined || error instanceof NeedsOperator)) {
    return { ...decideByKind(error), end };
  }
  return provider.deduplicates || provider.findOrder !== undefined
    ? { do: 'stay in doubt', retryAfterMs: waitAfter(error), requestEnded, end, ...about }
    : { do: 'ask operator', requestEnded, end, ...about };
}

/**
 * Brings one order to its POS, or finds out why not yet. Throws only if the database fails. Then the claim is released
 * or expires, and another try follows.
 */
export async function placeOrder(deps: PlacementDeps, claim: Claim): Promise<void> {
  const job = await startJob(deps, claim);
  await concludePlacement(deps, job, await tryToPlace(deps, job));
}

async function tryToPlace(deps: PlacementDeps, job: PlacementJob): Promise<Decision> {
  const known = await fetchOnce(deps, job);
  if ('do' in known) return known;
  if (known.cancelled && job.doubt === undefined && !(await doubtEarlier(deps, job))) return { do: 'withdraw' };
  const location = await findUsableLocation(deps, job, known);
  if ('do' in location) return location;
  if (!deps.enter(location)) return release(deps, job, location);
  const decided = await settleDoubt(deps, job, location, known);
  return decided ?? sendOrder(deps, job, location, known.order);
}

/** Starts with what the claim knows. A call whose process died puts the placement in doubt. */
async function startJob(deps: PlacementDeps, claim: Claim): Promise<PlacementJob> {
  const { callDied, sinceRequest, ...known } = claim;
  const job: PlacementJob = {
    ...known,
    startedAt: performance.now(),
    doubt: claim.state === 'in_doubt' ? { secondsSinceRequest: sinceRequest ?? 0 } : undefined,
  };
  deps.observe({ what: 'claim', serviceOrderId: claim.serviceOrderId, dueAt: claim.dueAt });
  if (!callDied) return job;
  const died = why({ code: 'process_died' });
  await enterDoubt(deps.pool, claim, died);
  observePlacement(deps, job, 'in_doubt', { ...died, entered: job.doubt === undefined });
  // The end of its request is unknown, so it counts from now.
  return { ...job, state: 'in_doubt', doubt: { secondsSinceRequest: 0 } };
}

/** An order that is not sent any more is in doubt where an earlier answer did not prove that there is no ticket. */
async function doubtEarlier({ pool }: PlacementDeps, job: PlacementJob): Promise<boolean> {
  const { rows } = await pool.query<{ perhaps: boolean }>(`SELECT ${perhapsTakenBefore('$1')} AS perhaps`, [
    job.serviceOrderId,
  ]);
  if (rows[0]?.perhaps !== true) return false;
  await enterDoubt(pool, job, why({ code: 'cancelled_in_doubt' }));
  job.doubt = { secondsSinceRequest: 0 };
  return true;
}

/** Waits for a free worker of its location. */
function release(deps: PlacementDeps, job: PlacementJob, location: Location): Decision {
  const isNews = job.problem === null && deps.breaker.isSilent(location);
  return { do: 'release', ...(isNews ? why({ code: 'circuit_open' }) : {}) };
}
