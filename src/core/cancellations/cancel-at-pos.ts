import { attemptLimit } from '../domain/timing.ts';
import { classifyError, perhapsTaken } from '../domain/classify-error.ts';
import { GiveUp, NeedsOperator } from '../domain/errors.ts';
import type { CanonicalOrder, OrderRef, StatusEvent } from '../domain/order.ts';
import { problemOf } from '../domain/explain-cause.ts';
import type { PlacementCause, Problem } from '../domain/placement-cause.ts';
import {
  WrongLocation,
  findLocation,
  posAccount,
  type Location,
  type DecryptSettings,
} from '../locations/locations.ts';
import { askPos } from '../locations/check-location.ts';
import { type CallDeps, callProvider, waitAfter } from '../placements/call-provider.ts';
import { beginCancel, endDied, holdClaim } from './begin-cancellation.ts';
import type { CancelClaim } from './claim-cancellations.ts';
import type { CancelDecision } from './conclude-cancellation.ts';

// guard: absent-after
/** We do not believe "absent" for this many seconds after createOrder. A request that was cut off may still arrive. */
const ABSENT_AFTER_S = 60;

export type CancelDeps = CallDeps & { decryptSettings: DecryptSettings };

/** Cancels an order at its POS, or reads the result of an earlier request. Throws only if the database fails. */
export async function cancelAtPos(deps: CancelDeps, claim: CancelClaim): Promise<CancelDecision> {
  if (claim.callDied) await endDied(deps.pool, claim);
  // guard: died-in-doubt
  const state = claim.callDied ? 'in_doubt' : claim.state;
  const location = await openLocation(deps, claim);
  if ('do' in location) return location;
  if (claim.order === null) return byPhone({ code: 'order_erased' });
  const { provider } = location;
  const { order } = claim;
  const ref = claim.providerOrderId === null ? {} : { providerOrderId: claim.providerOrderId };
  // guard: doubt-not-repeated
  if (state === 'asked' || (state === 'in_doubt' && provider.deduplicatesCancels !== true)) {
    return readBack(deps, { ...claim, order }, location, ref, state);
  }
  if (provider.cancelOrder === undefined) return byPhone({ code: 'pos_cannot_cancel' });
  const call = await callProvider(
    deps,
    claim,
    'cancelOrder',
    location,
    async (context) => provider.cancelOrder?.(ref, order, context),
    beginCancel,
  );
  if (call === undefined) return { do: 'nothing' };
  const { end } = call;
  if ('error' in call) return { ...decide(call.error, claim, location), end };
  if (call.result === 'absent') return { ...absent(claim), end };
  if (call.result === undefined) return { ...byPhone({ code: 'pos_cannot_cancel' }), end };
  return { do: call.result === 'cancelled' ? 'cancelled' : 'asked', end };
}

function byPhone(cause: PlacementCause): { do: 'by phone' } & Problem {
  return { do: 'by phone', ...problemOf(cause) };
}

/** Finds the ticket's location and decrypts its settings. A pause of the location does not prevent cancellation. */
async function openLocation(
  { pool, decryptSettings }: CancelDeps,
  claim: CancelClaim,
): Promise<Location | CancelDecision> {
  const { locationId, integration } = claim;
  const found = await findLocation(pool, locationId);
  if (found === undefined) return { do: 'try later', isOurs: true, ...problemOf({ code: 'no_location' }) };
  if (found.integration !== integration) return byPhone({ code: 'location_left_pos', integration });
  try {
    const location = { locationId, integration, ...(await decryptSettings(found)) };
    const isElsewhere = claim.posAccount !== null && claim.posAccount !== posAccount(location);
    return isElsewhere ? byPhone({ code: 'pos_account_changed' }) : location;
  } catch (error) {
    if (!(error instanceof WrongLocation)) throw error;
    return { do: 'try later', isOurs: true, ...classifyError(error), problem: error.message };
  }
}

/** Decides after the POS reported that it has no ticket. If it had accepted the order, a person must find out why. */
function absent({ doubt }: CancelClaim): CancelDecision {
  if (doubt === undefined) return byPhone({ code: 'cancel_ticket_missing' });
  if (doubt.secondsSinceRequest >= ABSENT_AFTER_S) return { do: 'withdraw' };
  const retryAfterMs = (ABSENT_AFTER_S - doubt.secondsSinceRequest) * 1_000;
  return { do: 'try later', retryAfterMs, ...problemOf({ code: 'order_absent_yet' }) };
}

/** Decides after an error. A request that the POS may have accepted is repeated only if the POS deduplicates. */
function decide(error: unknown, claim: CancelClaim, { provider }: Location): CancelDecision {
  const deduplicates = provider.deduplicatesCancels === true;
  const about = classifyError(error);
  // guard: lost-in-doubt
  if (!deduplicates && perhapsTaken(error)) {
    return { do: 'doubt', problem: about.problem, cause: { code: 'cancel_in_doubt' } };
  }
  if (error instanceof GiveUp) {
    const { httpStatus } = error;
    const refusal = { problem: about.problem, cause: { code: 'cancel_refused', httpStatus } } as const;
    // If we do not know whether a ticket exists, the refusal may mean that there is none. Then a person must check.
    return { do: claim.doubt === undefined ? 'refuse' : 'by phone', ...refusal };
  }
  return { do: 'try later', isOurs: error instanceof NeedsOperator, retryAfterMs: waitAfter(error), ...about };
}

/** Reads the result of a cancel request, if the provider can read the status. */
async function readBack(
  deps: CancelDeps,
  claim: CancelClaim & { order: CanonicalOrder },
  location: Location,
  ref: OrderRef,
  state: 'asked' | 'in_doubt',
): Promise<CancelDecision> {
  const { provider } = location;
  const { order } = claim;
  const unknown = byPhone({ code: state === 'asked' ? 'cancel_unconfirmed' : 'cancel_in_doubt' });
  if (provider.readStatus === undefined) return unknown;
  if (!(await holdClaim(deps.pool, claim, provider))) return { do: 'nothing' };
  try {
    const events = await askPos(
      deps,
      location,
      { seconds: attemptLimit(provider, claim.secondsLeft), sent: true },
      async (context) => provider.readStatus?.(ref, order, context),
    );
    const isOurs = ({ serviceOrderId: id, providerOrderId }: StatusEvent): boolean =>
      (id ?? order.serviceOrderId) === order.serviceOrderId &&
      (providerOrderId ?? ref.providerOrderId) === (ref.providerOrderId ?? providerOrderId);
    return events?.some((event) => event.status === 'cancelled' && isOurs(event)) ? { do: 'cancelled' } : unknown;
  } catch (error) {
    return { do: 'try later', retryAfterMs: waitAfter(error), ...classifyError(error) };
  }
}
