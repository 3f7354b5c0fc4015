import type { Claim } from '../domain/placement.ts';
import { why } from '../domain/placement-cause.ts';
import type { Location } from '../locations/locations.ts';
import { concludePlacement, observePlacement, type Decision } from './conclude-placement.ts';
import { enterDoubt } from './enter-doubt.ts';
import { fetchOnce } from './fetch-once.ts';
import { findUsableLocation } from './find-usable-location.ts';
import type { PlacementDeps, PlacementJob } from './placement-job.ts';
import { perhapsTakenBefore } from './record-attempt.ts';
import { sendOrder } from './send-order.ts';
import { settleDoubt } from './settle-doubt.ts';

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
