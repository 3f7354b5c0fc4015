import type { Status } from '../../core/domain/lifecycle.ts';
import type { StatusEvent } from '../../core/domain/order.ts';
import type { Settings } from './payloads.ts';

/** Our status for each state: https://developer.squareup.com/reference/square/enums/FulfillmentState */
const STATUS_BY_STATE: ReadonlyMap<string, Status> = new Map([
  ['PROPOSED', 'received'],
  ['RESERVED', 'in_progress'],
  ['PREPARED', 'ready'],
  ['COMPLETED', 'completed'],
  ['CANCELED', 'cancelled'],
  ['FAILED', 'failed'],
]);

/** The order that has the state, by its names, and since when. */
type About = Pick<StatusEvent, 'serviceOrderId' | 'providerOrderId' | 'occurredAt'>;

/** @returns one event, or none: an unknown state, or a completed one that does not mean completed here */
export function eventOfFulfillment(state: string, about: About, { closedMeansCompleted }: Settings): StatusEvent[] {
  const status = STATUS_BY_STATE.get(state);
  if (status === undefined || (status === 'completed' && !closedMeansCompleted)) return [];
  return [{ status, nativeStatus: state, ...about }];
}

/** Of the order's own states only the cancellation is about the food: the others are about payment. */
export function eventOfOrder(state: string | undefined, about: About): StatusEvent[] {
  return state === 'CANCELED' ? [{ status: 'cancelled', nativeStatus: state, ...about }] : [];
}
