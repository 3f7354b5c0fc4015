import { classifyError } from '../domain/classify-error.ts';
import { GiveUp, NeedsOperator } from '../domain/errors.ts';
import { OrderRef, type KitchenOrder } from '../domain/order.ts';
import { perhapsTaken } from '../domain/perhaps-taken.ts';
import type { Location } from '../locations/locations.ts';
import { callProvider } from './call-provider.ts';
import type { Decision } from './conclude-placement.ts';
import { decideByKind, waitAfter } from './decide-by-kind.ts';
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
