import { classifyError } from '../domain/classify-error.ts';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import type { Observed } from '../domain/observed.ts';
import { OrderRef, type CanonicalOrder } from '../domain/order.ts';
import type { Claim } from '../domain/placement.ts';
import { why, type PlacementCause } from '../domain/placement-cause.ts';
import type { PosContext } from '../domain/provider.ts';
import { WrongLocation, findLocation, posAccount, type Location } from '../locations/locations.ts';
import { isDataError } from '../postgres/is-data-error.ts';
import { callProvider } from './call-provider.ts';
import { FAIL_LATE, concludePlacement, observePlacement, type Decision } from './conclude-placement.ts';
import { enterDoubt } from './enter-doubt.ts';
import type { PlacementDeps, PlacementJob } from './placement-job.ts';
import { endAttempt } from './record-attempt.ts';
import { readOrder, recordOrder, type OpenOrder } from './record-order.ts';
import { UNREADABLE } from './refetch-order.ts';

/** The platform's read replica may lag behind its own signal. */
const MISSING_ORDER_S = 120;
/** A request that was cut off may still be on its way into the POS: before this, "not there" proves nothing. */
const LOOK_UP_AFTER_S = 60;
/** What a member reads when nobody can be blamed by name. */
const REJECTED = 'the restaurant could not take the order';

/**
 * Brings one order to its POS, or finds out why not yet. Throws only when the database fails; the claim is then given
 * back, or its lease runs out, and somebody goes on.
 */
export async function placeOrder(deps: PlacementDeps, claim: Claim): Promise<void> {
  const job = await startJob(deps, claim);
  await concludePlacement(deps, job, await tryToPlace(deps, job));
}

async function tryToPlace(deps: PlacementDeps, job: PlacementJob): Promise<Decision> {
  const known = await fetchOnce(deps, job);
  if ('do' in known) return known;
  const location = await findUsableLocation(deps, job, known.order.locationId);
  if ('do' in location) return location;
  if (!deps.enter(location)) return release(deps, job, location);
  const decided = await settleDoubt(deps, job, location, known);
  return decided ?? sendOrder(deps, job, location, known.order);
}

/** What is known of a placement when it is claimed; a call whose process died puts it in doubt. */
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
  // Nobody knows when its request ended; it was noticed just now.
  return { ...job, state: 'in_doubt', doubt: { secondsSinceRequest: 0 } };
}

/** Fetches the order from the platform the first time; afterwards it is what we wrote down. */
async function fetchOnce(deps: PlacementDeps, job: PlacementJob): Promise<OpenOrder | Decision> {
  // Its location is written down in the same commit.
  const known = job.locationId === null ? undefined : await readOrder(deps.pool, job.serviceOrderId);
  if (known?.ended) return { do: 'fail', reason: REJECTED, ...why({ code: 'order_ended' }) };
  if (known !== undefined) return known;
  if (job.late) return FAIL_LATE;
  let order: CanonicalOrder | undefined;
  const began = performance.now();
  const observeRefetch = (outcome: Extract<Observed, { what: 'refetch' }>['outcome']): void => {
    const milliseconds = performance.now() - began;
    deps.observe({ what: 'refetch', serviceOrderId: job.serviceOrderId, outcome, milliseconds });
  };
  try {
    order = await deps.refetch(job.serviceOrderId);
  } catch (error) {
    observeRefetch(error instanceof GiveUp || error instanceof NeedsOperator ? error.name : 'TryAgain');
    return decideByKind(error);
  }
  observeRefetch(order === undefined ? 'missing' : 'fetched');
  if (order === undefined) {
    return job.age > MISSING_ORDER_S
      ? { do: 'fail', reason: REJECTED, ...why({ code: 'order_missing' }) }
      : { do: 'try later', ...why({ code: 'order_missing_yet' }) };
  }
  try {
    if (!(await recordOrder(deps.pool, job, order, deps.deadlineS))) return { do: 'nothing' };
  } catch (error) {
    if (!isDataError(error)) throw error;
    const cause = { code: 'refused_by_postgres', sqlstate: error.code ?? '' } as const;
    return { do: 'fail', reason: UNREADABLE, ...why(cause) };
  }
  // The platform's failures say nothing of how long to wait for the POS.
  job.failures = 0;
  deps.onLive();
  return { ended: false, order, integration: null };
}

/** The location's POS, where orders may be sent to it now. */
async function findUsableLocation(
  deps: PlacementDeps,
  job: PlacementJob,
  locationId: string,
): Promise<Location | Decision> {
  job.locationId = locationId;
  const found = await findLocation(deps.pool, locationId);
  job.integration = found?.integration ?? job.integration;
  if (found?.paused) return { do: 'hold', ...why({ code: 'location_paused' }) };
  if (job.late && job.doubt === undefined) return FAIL_LATE;
  if (found === undefined) return { do: 'hold', ...why({ code: 'no_location' }) };
  const { integration, sealedSettings } = found;
  try {
    return { locationId, integration, ...(await deps.open(integration, sealedSettings)) };
  } catch (error) {
    if (error instanceof WrongLocation) return { do: 'hold', ...classifyError(error), problem: error.message };
    throw error;
  }
}

/** Waits for a worker that is free for its location. */
function release(deps: PlacementDeps, job: PlacementJob, location: Location): Decision {
  const isNews = job.problem === null && deps.breaker.isSilent(location);
  return { do: 'release', ...(isNews ? why({ code: 'circuit_open' }) : {}) };
}

/** Finds out whether the POS has an order in doubt, as far as it can tell. @returns undefined when it can be sent */
async function settleDoubt(
  deps: PlacementDeps,
  job: PlacementJob,
  location: Location,
  { integration }: OpenOrder,
): Promise<Decision | undefined> {
  if (job.doubt === undefined) return undefined;
  if (integration !== location.integration) return askOperator({ code: 'location_left_pos', integration });
  if (job.posAccount !== null && job.posAccount !== posAccount(location)) {
    return askOperator({ code: 'pos_account_changed' });
  }
  if (!location.provider.deduplicates) {
    if (location.provider.findOrder === undefined) return askOperator({ code: 'pos_cannot_be_asked' });
    const decided = await lookUp(deps, job, location, job.doubt);
    if (decided !== 'absent') return decided;
    job.doubt = undefined;
    return job.late ? FAIL_LATE : undefined;
  }
  // Where the ticket is missing after all, a repeat would make one of food that nobody waits for any more.
  return job.late ? askOperator({ code: 'deadline_passed_in_doubt' }) : undefined;
}

function askOperator(cause: PlacementCause): Decision {
  return { do: 'ask operator', ...why(cause) };
}

/** Asks the POS. @returns 'absent' when it surely has no such order */
async function lookUp(
  deps: PlacementDeps,
  job: PlacementJob,
  location: Location,
  { secondsSinceRequest }: NonNullable<PlacementJob['doubt']>,
): Promise<Decision | 'absent'> {
  const { provider } = location;
  const call = await callProvider(deps, job, 'findOrder', location, async (signal) => {
    const ref = await provider.findOrder?.(job.serviceOrderId, contextOf(deps, location, signal));
    return ref && OrderRef.parse(ref);
  });
  if (call === undefined) return { do: 'nothing' };
  const { end } = call;
  if ('error' in call) {
    const { error } = call;
    return error instanceof NeedsOperator
      ? { do: 'hold', end, ...classifyError(error) }
      : { do: 'stay in doubt', retryAfterMs: waitAfter(error), requestEnded: false, end, ...classifyError(error) };
  }
  if (call.result !== undefined) return { do: 'store ref', location, ref: call.result, end };
  if (secondsSinceRequest < LOOK_UP_AFTER_S) {
    const retryAfterMs = (LOOK_UP_AFTER_S - secondsSinceRequest) * 1000;
    return { do: 'stay in doubt', retryAfterMs, requestEnded: false, end, ...why({ code: 'order_absent_yet' }) };
  }
  await endAttempt(deps.pool, job.serviceOrderId, end);
  return 'absent';
}

/** Calls the POS; whatever it answers, the placement says what comes next. */
async function sendOrder(
  deps: PlacementDeps,
  job: PlacementJob,
  location: Location,
  order: CanonicalOrder,
): Promise<Decision> {
  const { provider } = location;
  const call = await callProvider(deps, job, 'createOrder', location, async (signal) =>
    OrderRef.parse(await provider.createOrder(order, contextOf(deps, location, signal))),
  );
  if (call === undefined) return { do: 'nothing' };
  const { end } = call;
  if (!('error' in call)) return { do: 'store ref', location, ref: call.result, end };

  const { error } = call;
  const about = classifyError(error);
  if (error instanceof GiveUp && job.doubt !== undefined) {
    // A POS may look at its menu before it looks at the key: the earlier request can have made a ticket all the same.
    const problem = `the POS refuses the repeat: ${about.problem}`;
    const cause = { code: 'repeat_refused', httpStatus: error.httpStatus } as const;
    return { do: 'ask operator', problem, cause, requestEnded: true, end };
  }
  const requestEnded = !(error instanceof TryAgain) || error.sent;
  const isSurelyAbsent = job.doubt === undefined && !requestEnded;
  if (error instanceof GiveUp || error instanceof NeedsOperator || isSurelyAbsent) {
    return { ...decideByKind(error), end };
  }
  return provider.deduplicates || provider.findOrder !== undefined
    ? { do: 'stay in doubt', retryAfterMs: waitAfter(error), requestEnded, end, ...about }
    : { do: 'ask operator', requestEnded, end, ...about };
}

/** What follows from an error that leaves nobody in doubt. */
function decideByKind(error: unknown): Extract<Decision, { do: 'fail' | 'hold' | 'try later' }> {
  const about = classifyError(error);
  if (error instanceof GiveUp) return { do: 'fail', reason: error.reason, ...about };
  if (error instanceof NeedsOperator) return { do: 'hold', ...about };
  return { do: 'try later', retryAfterMs: waitAfter(error), ...about };
}

/** As long as the other side asked for. */
function waitAfter(error: unknown): number | undefined {
  return error instanceof TryAgain ? error.retryAfterMs : undefined;
}

function contextOf(deps: PlacementDeps, location: Location, signal: AbortSignal): PosContext<unknown> {
  const { settings, integration } = location;
  return { settings, signal, now: deps.now(), credentials: deps.credentialsFor(integration) };
}
