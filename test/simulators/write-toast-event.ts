import { createHmac, randomUUID } from 'node:crypto';
import type { SignedWebhook } from './simulator.ts';
import type { ToastRestaurant } from './open-toast-restaurant.ts';

const APPROVAL_STATUSES = ['NEEDS_APPROVAL', 'APPROVED', 'FUTURE', 'NOT_APPROVED'];
const DELIVERY_STATES = ['PENDING', 'IN_PROGRESS', 'PICKED_UP', 'DELIVERED'];

type Event = { eventCategory: string; eventType: string; details: object };

/**
 * Makes the webhook for a status: an `approvalStatus`, a `deliveryState` or `voided` changes the order, every other is
 * a `guestOrderStatus`.
 * @param order from `priceToastOrder`
 */
export function writeToastEvent(
  order: Record<string, unknown>,
  nativeStatus: string,
  restaurant: ToastRestaurant,
): SignedWebhook {
  const at = new Date().toISOString();
  const { eventCategory, eventType, details } = eventOf(order, nativeStatus, restaurant, at);
  const guid = randomUUID();
  const body = JSON.stringify({ timestamp: at, eventCategory, eventType, guid, details });
  const secret = restaurant.secrets[eventCategory as keyof ToastRestaurant['secrets']];
  // The signature: https://doc.toasttab.com/doc/devguide/apiMessageSigning.html
  const signature = createHmac('sha256', secret)
    .update(body + at)
    .digest('base64');
  return {
    headers: {
      'content-type': 'application/json',
      'toast-signature': signature,
      'toast-event-type': eventType,
      'toast-event-category': eventCategory,
      'toast-restaurant-external-id': restaurant.guid,
      'toast-attempt-number': '1',
    },
    body: Buffer.from(body),
  };
}

function eventOf(order: Record<string, unknown>, native: string, { guid }: ToastRestaurant, at: string): Event {
  const isApproval = APPROVAL_STATUSES.includes(native);
  const isDelivery = DELIVERY_STATES.includes(native);
  if (!isApproval && !isDelivery && native !== 'voided') {
    return {
      eventCategory: 'guest_order_status',
      eventType: 'guestOrderStatusUpdated',
      details: {
        eventGuid: randomUUID(),
        orderGuid: order['guid'],
        restaurantGuid: guid,
        guestOrderStatus: native,
        lastUpdated: at,
        version: null,
      },
    };
  }
  const changed = {
    ...order,
    // The guest and our own id are left out or null.
    externalId: null,
    checks: (order['checks'] as object[]).map((check) => ({ ...check, customer: null })),
    ...(isApproval && { approvalStatus: native }),
    voided: native === 'voided',
    deliveryInfo: order['deliveryInfo'] ? { latitude: 42.3, deliveryState: isDelivery ? native : 'PENDING' } : null,
    modifiedDate: at.replace('Z', '+0000'),
  };
  return {
    eventCategory: 'order_updated',
    eventType: 'order_updated',
    details: { restaurantGuid: guid, order: changed },
  };
}
