import { GiveUp, NeedsOperator } from '../domain/errors.ts';
import type { Observed } from '../domain/observed.ts';
import type { CanonicalOrder } from '../domain/order.ts';
import { why } from '../domain/placement-cause.ts';
import { isDataError } from '../postgres/is-data-error.ts';
import { FAIL_LATE, type Decision } from './conclude-placement.ts';
import { decideByKind } from './decide-by-kind.ts';
import type { PlacementDeps, PlacementJob } from './placement-job.ts';
import { readOrder, recordOrder, type OpenOrder } from './record-order.ts';
import { UNREADABLE } from './refetch-order.ts';

/** The platform's read replica may lag behind its own signal. */
const MISSING_ORDER_S = 120;
/** What a member reads when nobody can be blamed by name. */
const REJECTED = 'the restaurant could not take the order';

/** Fetches the order from the platform the first time; afterwards it is what we wrote down. */
export async function fetchOnce(deps: PlacementDeps, job: PlacementJob): Promise<OpenOrder | Decision> {
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
