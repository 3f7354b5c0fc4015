import type { Status } from '../../core/domain/lifecycle.ts';
import type { Settings } from './payloads.ts';

/**
 * Our status by Lightspeed's: https://api-docs.lsk.lightspeed.app/operation/operation-onlineordernotification
 * CLOSED depends on the settings. CHECK_WAS_UPDATED says nothing about the food. How ABANDONED differs from FAILURE and
 * CANCELLED is not documented: nobody will finish the order in either case.
 */
const MEANINGS: ReadonlyMap<string, Status> = new Map([
  ['SUCCESS', 'received'],
  ['READY_FOR_PICKUP', 'ready'],
  ['IN_DELIVERY', 'en_route'],
  ['DELIVERED', 'completed'],
  ['CANCELLED', 'cancelled'],
  ['ABANDONED', 'cancelled'],
  ['FAILURE', 'failed'],
]);

export function meaningOf(nativeStatus: string, { closedMeansCompleted }: Settings): Status | undefined {
  if (nativeStatus === 'CLOSED') return closedMeansCompleted ? 'completed' : undefined;
  return MEANINGS.get(nativeStatus);
}
