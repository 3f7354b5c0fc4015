import { classifyError } from '../domain/classify-error.ts';
import { why } from '../domain/placement-cause.ts';
import { WrongLocation, type Location } from '../locations/locations.ts';
import { FAIL_LATE, type Decision } from './conclude-placement.ts';
import type { PlacementDeps, PlacementJob } from './placement-job.ts';
import type { OpenOrder } from './record-order.ts';

/** Opens the order's location, if orders may be sent to it now. One that is cancelled is only looked for there. */
export async function findUsableLocation(
  deps: PlacementDeps,
  job: PlacementJob,
  { order: { locationId }, cancelled, location: found }: OpenOrder,
): Promise<Location | Decision> {
  job.locationId = locationId;
  job.integration = found?.integration ?? job.integration;
  if (found?.paused && !cancelled) {
    const { pausedUntil } = found;
    return pausedUntil === null
      ? { do: 'hold', ...why({ code: 'location_paused' }) }
      : { do: 'hold', ...why({ code: 'location_paused_by_pos', until: pausedUntil.toISOString() }) };
  }
  if (job.late && job.doubt === undefined) return FAIL_LATE;
  if (found === undefined) return { do: 'hold', ...why({ code: 'no_location' }) };
  const { integration } = found;
  try {
    return { locationId, integration, ...(await deps.open(found)) };
  } catch (error) {
    if (error instanceof WrongLocation) return { do: 'hold', ...classifyError(error), problem: error.message };
    throw error;
  }
}
