import type { Status } from '../../core/domain/lifecycle.ts';
import type { StatusEvent } from '../../core/domain/order.ts';
import { reasonInWords } from '../reason-in-words.ts';
import type { Details, Settings } from './payloads.ts';

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

/** An order of several fulfillments goes on by the others while one was cancelled or has failed. */
export function whatGoesOn<Each>(fulfillments: readonly Each[], stateOf: (each: Each) => string): readonly Each[] {
  const others = fulfillments.filter((each) => !['CANCELED', 'FAILED'].includes(stateOf(each)));
  return others.length > 0 ? others : fulfillments;
}

/**
 * @param details what is known of it besides: a webhook has the state alone
 * @returns one event, or none: an unknown state, or a completed one that does not mean completed here
 */
export function eventOfFulfillment(
  state: string,
  about: About,
  { closedMeansCompleted }: Settings,
  details: Details = {},
): StatusEvent[] {
  const status = STATUS_BY_STATE.get(state);
  if (status === undefined || (status === 'completed' && !closedMeansCompleted)) return [];
  const estimates = { estimatedReadyAt: details.pickup_at, estimatedDeliveryAt: details.deliver_at };
  return [{ status, nativeStatus: state, ...about, ...estimates, ...whyOf(status, details) }];
}

/** Of the order's own states only the cancellation is about the food: the others are about payment. */
export function eventOfOrder(state: string | undefined, about: About, details: Details = {}): StatusEvent[] {
  if (state !== 'CANCELED') return [];
  return [{ status: 'cancelled', nativeStatus: state, ...about, ...whyOf('cancelled', details) }];
}

/**
 * Why it ended. The reasons that Square's own page offers are "Item(s) not in stock", "Customer cancellation request" and
 * words of one's own (https://squareup.com/help/article/8323-cancel-and-refund-orders-with-square). Without one, who cancels a
 * fulfillment is the restaurant; one that failed was "not explicitly canceled". That an expired one was never begun is
 * inferred from its name.
 */
function whyOf(status: Status, { cancel_reason, expired_at }: Details): Pick<StatusEvent, 'reason' | 'reasonCode'> {
  if (status !== 'cancelled' && status !== 'failed') return {};
  const reason = cancel_reason?.trim() || undefined;
  const otherwise = status === 'failed' ? 'other' : 'restaurant_cancelled';
  return { reason, reasonCode: reasonInWords(reason ?? '') ?? (expired_at === undefined ? otherwise : 'no_answer') };
}
