import { attemptLease } from '../domain/timing.ts';
import { classifyError } from '../domain/classify-error.ts';
import { NeedsOperator } from '../domain/errors.ts';
import { OrderRef } from '../domain/order.ts';
import { problemOf } from '../domain/explain-cause.ts';
import type { PlacementCause } from '../domain/placement-cause.ts';
import { posAccount, type Location } from '../locations/locations.ts';
import { callProvider, waitAfter } from './call-provider.ts';
import { failLate, UNREACHED, type Decision } from './conclude-placement.ts';
import { endAttempt, secondsSinceFirstSent } from '../transitions/record-attempt.ts';
import type { ActiveOrder } from './record-order.ts';
import type { PlacementDeps, PlacementJob } from './placement-job.ts';

/** We do not believe "absent" for this many seconds after a request. A request that was cut off may still arrive. */
export const LOOK_UP_AFTER_S = 60;

/** Finds out, if possible, whether the POS has an order in doubt. @returns undefined if the order can be sent */
export async function settleDoubt(
  deps: PlacementDeps,
  job: PlacementJob,
  location: Location,
  { integration, cancelled }: ActiveOrder,
): Promise<Decision | undefined> {
  if (job.doubt === undefined) return undefined;
  if (integration !== location.integration) return askOperator({ code: 'location_left_pos', integration });
  if (job.posAccount !== null && job.posAccount !== posAccount(location)) {
    return askOperator({ code: 'pos_account_changed' });
  }
  const { deduplicates, findOrder } = location.provider;
  // guard: ask-before-retry
  // guard: no-retry-once-cancelled
  const unrepeatable = cancelled
    ? ({ code: 'cancelled_in_doubt' } as const)
    : deduplicates
      ? await whyNotRepeat(deps, job, location)
      : ({ code: 'pos_cannot_be_asked' } as const);
  if (unrepeatable === undefined) return undefined;
  const isOver = job.late && !cancelled;
  if (findOrder !== undefined) {
    const decided = await lookUp(deps, job, location, job.doubt, isOver);
    if (decided !== 'absent') return decided;
    // If the POS deduplicates, nothing proves that its "absent" is reliable.
    if (cancelled || !deduplicates) {
      job.doubt = undefined;
      if (cancelled) return { do: 'withdraw' };
      return job.late ? failLate(job) : undefined;
    }
  }
  return isOver && deduplicates ? CALL_OFF : askOperator(unrepeatable);
}

/** Finds why an order must not be sent again to a POS that deduplicates. Returns undefined if it may be sent again. */
async function whyNotRepeat(
  deps: PlacementDeps,
  job: PlacementJob,
  location: Location,
): Promise<PlacementCause | undefined> {
  // If there is no ticket, a repeat would create one now, and the kitchen would cook food that is no longer wanted.
  if (job.late) return { code: 'deadline_passed_in_doubt' };
  return (await mayForget(deps, job, location)) ? { code: 'repeat_unrecognised' } : undefined;
}

/** Returns true if a POS that deduplicates for some time may not recognise a repeat of the order any more. */
async function mayForget(deps: PlacementDeps, job: PlacementJob, { provider }: Location): Promise<boolean> {
  const { deduplicatesForS = Infinity } = provider;
  if (deduplicatesForS === Infinity) return false;
  return (await secondsSinceFirstSent(deps.pool, job.serviceOrderId)) + attemptLease(provider) > deduplicatesForS;
}

/** After the deadline nobody waits for the order, but the kitchen may have it. */
const CALL_OFF = {
  do: 'call off',
  reason: UNREACHED,
  ...problemOf({ code: 'deadline_passed_in_doubt' }),
} as const satisfies Decision;

function askOperator(cause: PlacementCause): Decision {
  return { do: 'ask operator', ...problemOf(cause) };
}

/** Queries the POS. @returns 'absent' if the POS certainly does not have the order */
async function lookUp(
  deps: PlacementDeps,
  job: PlacementJob,
  location: Location,
  { secondsSinceRequest }: NonNullable<PlacementJob['doubt']>,
  isOver: boolean,
): Promise<Decision | 'absent'> {
  const { provider } = location;
  const call = await callProvider(deps, job, 'findOrder', location, async (context) => {
    const ref = await provider.findOrder?.(job.serviceOrderId, context);
    return ref && OrderRef.parse(ref);
  });
  if (call === undefined) return { do: 'nothing' };
  const { end } = call;
  if ('error' in call) {
    const { error } = call;
    if (isOver) return { ...CALL_OFF, end };
    return error instanceof NeedsOperator
      ? { do: 'hold', end, ...classifyError(error) }
      : { do: 'stay in doubt', retryAfterMs: waitAfter(error), end, ...classifyError(error) };
  }
  if (call.result !== undefined) return { do: 'store ref', location, ref: call.result, end };
  if (secondsSinceRequest < LOOK_UP_AFTER_S) {
    const retryAfterMs = (LOOK_UP_AFTER_S - secondsSinceRequest) * 1000;
    return { do: 'stay in doubt', retryAfterMs, end, ...problemOf({ code: 'order_absent_yet' }) };
  }
  await endAttempt(deps.pool, job.serviceOrderId, end);
  return 'absent';
}
