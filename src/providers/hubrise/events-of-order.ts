import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import type { Status } from '../../core/domain/lifecycle.ts';
import type { StatusEvent } from '../../core/domain/order.ts';
import type { ReasonCode } from '../../core/domain/reason-code.ts';
import { reasonInWords } from '../order-texts.ts';
import type { DeliveryState, OrderState, Settings } from './payloads.ts';

/** Our status for each of HubRise's: https://www.hubrise.com/developers/api/orders#status */
const ORDER_STATUSES: ReadonlyMap<string, Status> = new Map([
  ['received', 'received'],
  ['accepted', 'received'],
  ['in_preparation', 'in_progress'],
  ['awaiting_collection', 'ready'],
  ['awaiting_shipment', 'ready'],
  ['in_delivery', 'en_route'],
  ['completed', 'completed'],
  ['cancelled', 'cancelled'],
  ['rejected', 'failed'],
  ['delivery_failed', 'failed'],
]);

/** `cancelled` means "by either the customer or the store". HubRise sends no event for our own cancel. */
const REASON_CODES: ReadonlyMap<string, ReasonCode> = new Map([
  ['rejected', 'technical'],
  ['cancelled', 'restaurant_cancelled'],
  ['delivery_failed', 'other'],
]);

function reasonOf(nativeStatus: string, { custom_fields }: z.infer<typeof OrderState>): ReasonCode | undefined {
  const { cause = '', info } = (nativeStatus === 'rejected' && custom_fields?.epos.rejection) || {};
  return reasonInWords(info?.reason ?? '') ?? reasonInWords(cause) ?? REASON_CODES.get(nativeStatus);
}

/**
 * Our status for each of a delivery's: https://www.hubrise.com/developers/api/deliveries#delivery-statuses
 * A cancelled delivery is left out, because another courier may come.
 */
const DELIVERY_STATUSES: ReadonlyMap<string, Status> = new Map([
  ['dropoff_enroute', 'en_route'],
  ['dropoff_approaching', 'en_route'],
  ['dropoff_waiting', 'en_route'],
  ['delivered', 'completed'],
]);
/** We infer from a courier on the way that the restaurant accepted the order. Used only for an event with estimates. */
const COURIER_COMES: ReadonlyMap<string, Status> = new Map(
  ['pickup_enroute', 'pickup_approaching', 'pickup_waiting'].map((status) => [status, 'received']),
);

type Before<Shape extends z.ZodType> = z.infer<Shape> | null | undefined;
type About = Omit<StatusEvent, 'status' | 'nativeStatus'>;

/** Makes an event of the order's status, if it or the confirmed time changed, and an event of the delivery's status. */
export function eventsOfOrder(
  now: z.infer<typeof OrderState>,
  before: Before<typeof OrderState>,
  about: About,
  { closedMeansCompleted }: Settings,
): StatusEvent[] {
  const estimate = now.confirmed_time;
  const isNews = estimate !== undefined && estimate !== before?.confirmed_time;
  const estimates =
    now.service_type === 'delivery' ? { estimatedDeliveryAt: estimate } : { estimatedReadyAt: estimate };
  const ofOrder = eventOf(now, isNews ? undefined : before, ORDER_STATUSES, about).map((event) => ({
    ...event,
    ...estimates,
    // A delivery may have a tracking URL while its status, such as `pending`, means nothing to us.
    trackingUrl: now.delivery?.tracking_url,
    reasonCode: reasonOf(event.nativeStatus, now),
  }));
  return [
    ...ofOrder.filter(({ status }) => closedMeansCompleted || status !== 'completed'),
    ...eventsOfDelivery(now.delivery, before?.delivery, about),
  ];
}

export function eventsOfDelivery(
  now: Before<typeof DeliveryState>,
  before: Before<typeof DeliveryState>,
  about: About,
): StatusEvent[] {
  const estimates = estimatesOf(now);
  if (Object.values(estimates).every((each) => each === undefined))
    return eventOf(now, before, DELIVERY_STATUSES, about);
  const isNews = !isDeepStrictEqual(estimates, estimatesOf(before));
  const meanings = new Map([...DELIVERY_STATUSES, ...COURIER_COMES]);
  return eventOf(now, isNews ? undefined : before, meanings, { ...about, ...estimates });
}

function estimatesOf(delivery: Before<typeof DeliveryState>) {
  const { estimated_pickup_at: estimatedReadyAt, estimated_dropoff_at: estimatedDeliveryAt } = delivery ?? {};
  return { estimatedReadyAt, estimatedDeliveryAt, trackingUrl: delivery?.tracking_url };
}

/** Returns an event only if the status changed, because HubRise also reports other changes of an order. */
function eventOf(
  now: Before<typeof DeliveryState>,
  before: Before<typeof DeliveryState>,
  meanings: ReadonlyMap<string, Status>,
  about: About,
): StatusEvent[] {
  const nativeStatus = now?.status ?? '';
  const status = meanings.get(nativeStatus);
  if (status === undefined || nativeStatus === before?.status) return [];
  return [{ status, nativeStatus, ...about }];
}
