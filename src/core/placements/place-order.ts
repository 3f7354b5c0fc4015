import { classifyError, perhapsTaken } from '../domain/classify-error.ts';
import { GiveUp } from '../domain/errors.ts';
import { type KitchenOrder, OrderRef } from '../domain/order.ts';
import type { Location } from '../locations/locations.ts';
import { callProvider, decideByKind, findUsableLocation, refusalOf, waitAfter } from './call-provider.ts';
import { concludePlacement, type Decision, observePlacement } from './conclude-placement.ts';
import type { Claim } from '../domain/placement.ts';
import { problemOf } from '../domain/explain-cause.ts';
import { enterDoubt } from '../transitions/placement-sql.ts';
import { fetchOnce } from './refetch-order.ts';
import { beginAttempt, lastExtraMinutes, namedTicketLately } from '../transitions/record-attempt.ts';
import type { ActiveOrder } from './record-order.ts';
import { settleDoubt } from './settle-doubt.ts';
import type { PlacementDeps, PlacementJob } from './placement-job.ts';

/** Sends the order to the POS and decides by the response what to do next. */
export async function sendOrder(
  deps: PlacementDeps,
  job: PlacementJob,
  location: Location,
  known: Pick<ActiveOrder, 'order' | 'location'>,
): Promise<Decision> {
  const { provider } = location;
  const order = provider.usesExtraMinutes === true ? await busyOrder(deps, job, known) : known.order;
  const call = await callProvider(
    deps,
    job,
    'createOrder',
    location,
    async (context) =>
      OrderRef.parse(
        await provider.createOrder(order, {
          ...context,
          namedTicketLately: () => namedTicketLately(deps.pool, location.locationId),
        }),
      ),
    (pool, claim, name, at) => beginAttempt(pool, claim, name, at, order.extraMinutes),
  );
  // No call was made. The order may have been cancelled. After the release, a worker can withdraw it at once.
  if (call === undefined) return { do: 'release' };
  const { end } = call;
  if (!('error' in call)) return { do: 'store ref', location, ref: call.result, end };

  const { error } = call;
  const about = classifyError(error);
  if (error instanceof GiveUp && job.doubt !== undefined) {
    // The refusal does not prove that there is no ticket: a POS may check its menu before the idempotency key.
    const problem = `the POS refuses the repeat: ${about.problem}`;
    const cause = { code: 'repeat_refused', httpStatus: error.httpStatus } as const;
    return { do: 'call off', ...refusalOf(error), problem, cause, requestEnded: true, end };
  }
  if (!perhapsTaken(error)) return { ...decideByKind(error), end };
  // A repeat does no harm, but it may be the request that creates the ticket.
  // guard: repeat-may-arrive
  const ended = { requestEnded: true, end, ...about };
  return provider.deduplicates || provider.findOrder !== undefined
    ? { do: 'stay in doubt', retryAfterMs: waitAfter(error), ...ended }
    : { do: 'ask operator', ...ended };
}

/**
 * Places one order at its POS, or records why that is not possible yet. Throws only if the database fails. The claim is
 * then released or expires, and the placement is retried.
 */
export async function placeOrder(deps: PlacementDeps, claim: Claim): Promise<void> {
  const job = await startJob(deps, claim);
  await concludePlacement(deps, job, await tryToPlace(deps, job));
}

async function tryToPlace(deps: PlacementDeps, job: PlacementJob): Promise<Decision> {
  const known = await fetchOnce(deps, job);
  if ('do' in known) return known;
  if (known.cancelled && job.doubt === undefined) return { do: 'withdraw' };
  const location = await findUsableLocation(deps, job, known);
  if ('do' in location) return location;
  if (!deps.acquireSlot(location)) return release(deps, job, location);
  const decided = await settleDoubt(deps, job, location, known);
  return decided ?? sendOrder(deps, job, location, known);
}

/** Adds the minutes of a busy kitchen. A repeat has those of the first request, because a POS may compare the two. */
async function busyOrder(
  { pool }: PlacementDeps,
  { serviceOrderId, doubt }: PlacementJob,
  { order, location }: Pick<ActiveOrder, 'order' | 'location'>,
): Promise<KitchenOrder> {
  const minutes = doubt === undefined ? location?.extraMinutes : await lastExtraMinutes(pool, serviceOrderId);
  return typeof minutes === 'number' ? { ...order, extraMinutes: minutes } : order;
}

/** Starts a job from its claim. If a process died during a call, the placement is put in doubt. */
async function startJob(deps: PlacementDeps, claim: Claim): Promise<PlacementJob> {
  const { callDied, sinceRequest, ...known } = claim;
  const job: PlacementJob = {
    ...known,
    startedAt: performance.now(),
    doubt: claim.state === 'in_doubt' ? { secondsSinceRequest: sinceRequest ?? 0 } : undefined,
  };
  deps.observe({ what: 'claim', serviceOrderId: claim.serviceOrderId, dueAt: claim.dueAt });
  if (!callDied) return job;
  const died = problemOf({ code: 'process_died' });
  await enterDoubt(deps.pool, claim, died);
  observePlacement(deps, job, 'in_doubt', { ...died, entered: job.doubt === undefined });
  // We do not know when the dead process's request ended, so we count the time from now.
  return { ...job, state: 'in_doubt', doubt: { secondsSinceRequest: 0 } };
}

/** Returns the placement to the queue until its location has a free worker. */
function release(deps: PlacementDeps, job: PlacementJob, location: Location): Decision {
  const isNews = job.problem === null && deps.breaker.isSilent(location);
  return { do: 'release', ...(isNews ? problemOf({ code: 'circuit_open' }) : {}) };
}
