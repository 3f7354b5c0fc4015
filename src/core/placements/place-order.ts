import { DIED, enterDoubt } from './enter-doubt.ts';
import { endAttempt } from './record-attempt.ts';
import { callProvider } from './call-provider.ts';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import { describeError } from '../domain/describe-error.ts';
import type { Claim } from '../domain/placement.ts';
import {
  askOperator,
  fail,
  failLate,
  hold,
  release,
  stayInDoubt,
  storeRef,
  tell,
  tryLater,
} from './conclude-placement.ts';
import { isDataError } from '../postgres/is-data-error.ts';
import { WrongLocation, findLocation, posAccount, type Location } from '../locations/locations.ts';
import { OrderRef, type CanonicalOrder } from '../domain/order.ts';
import type { Observed } from '../domain/observed.ts';
import type { Placing, Trying } from './placing.ts';
import type { PosContext } from '../domain/provider.ts';
import { readOrder, recordOrder, type KnownOrder } from './record-order.ts';
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
export async function placeOrder(deps: Placing, claimed: Claim): Promise<void> {
  const claim: Trying = { ...claimed, begunAt: performance.now() };
  deps.observe({ what: 'claim', serviceOrderId: claim.serviceOrderId, dueAt: claim.dueAt });
  let inDoubt = claim.state === 'in_doubt';
  if (claim.callDied) {
    await enterDoubt(deps.pool, claim);
    tell(deps, claim, 'in_doubt', { problem: DIED, entered: !inDoubt });
    claim.state = 'in_doubt';
    inDoubt = true;
  }

  const known = await fetchOnce(deps, claim);
  if (known === undefined) return;
  if (known.ended) return fail(deps, claim, REJECTED, 'the order has ended');
  const { order } = known;
  claim.locationId = order.locationId;
  const location = await usableLocation(deps, claim, order.locationId);
  if (location === 'paused') return hold(deps, claim, inDoubt, new NeedsOperator('the location is paused'));
  if (claim.late && !inDoubt) return failLate(deps, claim, inDoubt);
  if (location instanceof NeedsOperator) return hold(deps, claim, inDoubt, location);
  if (!deps.enter(location)) return release(deps, claim, inDoubt);

  if (inDoubt && known.integration !== location.integration) {
    return askOperator(deps, claim, `it may be at the POS of "${known.integration}", which the location has left`);
  }
  if (inDoubt && claim.posAccount !== null && claim.posAccount !== posAccount(location)) {
    return askOperator(deps, claim, 'it may be at the POS that the location had before its settings were changed');
  }
  if (inDoubt && !location.provider.deduplicates) {
    if (location.provider.findOrder === undefined) {
      return askOperator(deps, claim, 'the POS may have the order and cannot be asked');
    }
    if ((await lookUp(deps, claim, location)) !== 'absent') return;
    inDoubt = false;
    if (claim.late) return failLate(deps, claim, inDoubt);
  }
  // Where the ticket is missing after all, a repeat would make one of food that nobody waits for any more.
  if (inDoubt && claim.late) return askOperator(deps, claim, 'the deadline has passed, and the POS may have the order');
  return attempt(deps, claim, order, location, inDoubt);
}

/** Fetches the order from the platform the first time; afterwards it is what we wrote down. */
async function fetchOnce(deps: Placing, claim: Trying): Promise<KnownOrder | undefined> {
  // Its location is written down in the same commit.
  const known = claim.locationId === null ? undefined : await readOrder(deps.pool, claim.serviceOrderId);
  if (known !== undefined) return known;
  if (claim.late) {
    await failLate(deps, claim, false);
    return undefined;
  }
  let order: CanonicalOrder | undefined;
  const began = performance.now();
  const tellRefetch = (outcome: Extract<Observed, { what: 'refetch' }>['outcome']): void => {
    const milliseconds = performance.now() - began;
    deps.observe({ what: 'refetch', serviceOrderId: claim.serviceOrderId, outcome, milliseconds });
  };
  try {
    order = await deps.refetch(claim.serviceOrderId);
    tellRefetch(order === undefined ? 'missing' : 'fetched');
  } catch (error) {
    tellRefetch(error instanceof GiveUp || error instanceof NeedsOperator ? error.name : 'TryAgain');
    if (error instanceof GiveUp) await fail(deps, claim, error.reason, error.message);
    else if (error instanceof NeedsOperator) await hold(deps, claim, false, error);
    else await tryLater(deps, claim, error);
    return undefined;
  }
  if (order === undefined) {
    if (claim.age > MISSING_ORDER_S) await fail(deps, claim, REJECTED, 'the platform has no such order');
    else await tryLater(deps, claim, new TryAgain('the platform has no such order yet', { sent: false }));
    return undefined;
  }
  try {
    if (!(await recordOrder(deps.pool, claim, order, deps.deadlineS))) return undefined;
  } catch (error) {
    if (!isDataError(error)) throw error;
    await fail(deps, claim, UNREADABLE, `the order cannot be stored: Postgres refuses it with ${error.code}`);
    return undefined;
  }
  // The platform's failures say nothing of how long to wait for the POS.
  claim.failures = 0;
  deps.onLive();
  return { ended: false, order, integration: null };
}

async function usableLocation(
  deps: Placing,
  claim: Trying,
  locationId: string,
): Promise<Location | 'paused' | NeedsOperator> {
  const found = await findLocation(deps.pool, locationId);
  if (found === undefined) return new NeedsOperator('the location is not configured');
  claim.integration = found.integration;
  if (found.paused) return 'paused';
  const { integration, sealedSettings } = found;
  try {
    return { locationId, integration, ...(await deps.open(integration, sealedSettings)) };
  } catch (error) {
    if (error instanceof WrongLocation) return new NeedsOperator(error.message);
    throw error;
  }
}

function contextOf(deps: Placing, location: Location, signal: AbortSignal): PosContext<unknown> {
  const { settings, integration } = location;
  return { settings, signal, now: deps.now(), credentials: deps.credentialsFor(integration) };
}

/** Calls the POS; whatever it answers, the placement says what comes next. */
async function attempt(
  deps: Placing,
  claim: Trying,
  order: CanonicalOrder,
  location: Location,
  inDoubt: boolean,
): Promise<void> {
  const { provider } = location;
  const call = await callProvider(deps, claim, 'createOrder', location, async (signal) =>
    OrderRef.parse(await provider.createOrder(order, contextOf(deps, location, signal))),
  );
  if (call === undefined) return undefined;
  if (!('error' in call)) return storeRef(deps, claim, location, call.result, call.end);

  const { error, end } = call;
  if (error instanceof GiveUp && inDoubt) {
    // A POS may look at its menu before it looks at the key: the earlier request can have made a ticket all the same.
    return askOperator(deps, claim, `the POS refuses the repeat: ${describeError(error)}`, { end, requestEnded: true });
  }
  if (error instanceof GiveUp) return fail(deps, claim, error.reason, error.message, end);
  if (error instanceof NeedsOperator) return hold(deps, claim, inDoubt, error, end);
  const sent = !(error instanceof TryAgain) || error.sent;
  if (!sent && !inDoubt) return tryLater(deps, claim, error, end);
  if (provider.deduplicates || provider.findOrder !== undefined) return stayInDoubt(deps, claim, error, end, sent);
  return askOperator(deps, claim, describeError(error), { end, requestEnded: sent });
}

/** @returns 'absent' when the POS surely has no such order, 'settled' when the placement has been dealt with */
async function lookUp(deps: Placing, claim: Trying, location: Location): Promise<'absent' | 'settled'> {
  const { provider } = location;
  const call = await callProvider(deps, claim, 'findOrder', location, async (signal) => {
    const ref = await provider.findOrder?.(claim.serviceOrderId, contextOf(deps, location, signal));
    return ref && OrderRef.parse(ref);
  });
  if (call === undefined) return 'settled';
  if ('error' in call) {
    const { error, end } = call;
    if (error instanceof NeedsOperator) await hold(deps, claim, true, error, end);
    else await stayInDoubt(deps, claim, error, end, false);
    return 'settled';
  }
  if (call.result !== undefined) {
    await storeRef(deps, claim, location, call.result, call.end);
    return 'settled';
  }
  // Where a process died, nobody knows when its request ended; it was noticed just now.
  const sinceRequest = claim.callDied ? 0 : (claim.sinceRequest ?? 0);
  if (sinceRequest < LOOK_UP_AFTER_S) {
    const notYet = new TryAgain('the POS does not have the order yet', {
      sent: false,
      retryAfterMs: (LOOK_UP_AFTER_S - sinceRequest) * 1000,
    });
    await stayInDoubt(deps, claim, notYet, call.end, false);
    return 'settled';
  }
  await endAttempt(deps.pool, claim.serviceOrderId, call.end);
  return 'absent';
}
