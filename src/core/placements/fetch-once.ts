import { why } from '../domain/placement-cause.ts';
import type { ReadOrder } from '../domain/read-canonical-order.ts';
import { isDataError } from '../postgres/is-data-error.ts';
import { FAIL_LATE, type Decision } from './conclude-placement.ts';
import { decideByKind } from './decide-by-kind.ts';
import type { PlacementDeps, PlacementJob } from './placement-job.ts';
import { recordMissing } from './record-missing.ts';
import { readOrder, recordOrder, type OpenOrder } from './record-order.ts';
import { refetchObserved } from './refetch-observed.ts';

/** The member's text if there is no better reason. */
const REJECTED = 'the restaurant could not take the order';

/** Fetches the order from the platform the first time, and later from our own copy. */
export async function fetchOnce(deps: PlacementDeps, job: PlacementJob): Promise<OpenOrder | Decision> {
  // The order's location is stored in the same commit as the order.
  const known = job.locationId === null ? undefined : await readOrder(deps.pool, job.serviceOrderId);
  if (known?.ended) {
    return job.doubt === undefined
      ? { do: 'fail', reason: REJECTED, ...why({ code: 'order_ended' }) }
      : { do: 'ask operator', ...why({ code: 'order_ended_in_doubt' }) };
  }
  if (known !== undefined) return known;
  if (job.late) return FAIL_LATE;
  let read: ReadOrder | undefined;
  try {
    read = await refetchObserved(deps, job.serviceOrderId);
  } catch (error) {
    return decideByKind(error);
  }
  if (read === undefined) {
    const missingS = await recordMissing(deps.pool, job);
    if (missingS === undefined) return { do: 'nothing' };
    // guard: missing-since
    return missingS > deps.missingS
      ? { do: 'fail', reason: REJECTED, ...why({ code: 'order_missing' }) }
      : { do: 'try later', ...why({ code: 'order_missing_yet' }) };
  }
  const { leftOut } = read;
  let recorded: OpenOrder | undefined;
  try {
    recorded = await recordOrder(deps.pool, job, read, deps.deadlineS);
  } catch (error) {
    if (!isDataError(error)) throw error;
    const cause = { code: 'refused_by_postgres', sqlstate: error.code ?? '' } as const;
    return { do: 'hold', ...why(cause) };
  }
  if (recorded === undefined) return { do: 'nothing' };
  if (leftOut.length > 0) {
    const { serviceOrderId, locationId } = recorded.order;
    deps.observe({ what: 'left out', serviceOrderId, locationId, leftOut });
  }
  // Failures of the platform must not lengthen the waits for the POS.
  job.failures = 0;
  deps.onLive();
  return recorded;
}
