import { createHmac, randomUUID } from 'node:crypto';
import type { Kitchen, SignedWebhook } from '../simulator.ts';
import type { ToastRestaurant } from './open-toast-restaurant.ts';

const APPROVAL_STATUSES = ['NEEDS_APPROVAL', 'APPROVED', 'FUTURE', 'NOT_APPROVED'];
const DELIVERY_STATES = ['PENDING', 'IN_PROGRESS', 'PICKED_UP', 'DELIVERED'];

/** The `fulfillmentStatus` of every selection by the guest order status. */
const STAGES: Readonly<Record<string, string>> = { IN_PREPARATION: 'SENT', READY_FOR_PICKUP: 'READY' };

type Changed = Record<string, unknown> & {
  checks: { selections: Record<string, unknown>[] }[];
  deliveryInfo?: Record<string, unknown> | null;
};

type Secrets = keyof ToastRestaurant['secrets'];
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
  const event = eventOf(order, nativeStatus, restaurant, at);
  return seal(event, at, restaurant, event.eventCategory as Secrets);
}

/** Staff turn the channel on or off: https://doc.toasttab.com/doc/devguide/apiRxAvailabilityWebhook.html */
export function writeToastAvailability({ state }: Kitchen, restaurant: ToastRestaurant): SignedWebhook {
  const [status, done] = state === 'closed' ? (['OFFLINE', 'disabled'] as const) : (['ONLINE', 'enabled'] as const);
  const event = {
    eventCategory: 'restaurant_availability_toggle',
    eventType: `toggle_availability_${status.toLowerCase()}`,
    details: {
      restaurantGuid: restaurant.guid,
      status,
      reasonKey: `TOGGLE_${done.toUpperCase()}`,
      reason: `User ${done} integration`,
    },
  };
  return seal(event, new Date().toISOString(), restaurant, 'restaurant_availability');
}

function seal(
  { eventCategory, eventType, details }: Event,
  at: string,
  restaurant: ToastRestaurant,
  subscription: Secrets,
): SignedWebhook {
  const guid = randomUUID();
  const body = JSON.stringify({ timestamp: at, eventCategory, eventType, guid, details });
  const secret = restaurant.secrets[subscription];
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
  if (![...APPROVAL_STATUSES, ...DELIVERY_STATES, 'voided'].includes(native)) {
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
  const changed = changeToastOrder(order, native, at);
  const { deliveryInfo } = changed;
  // The guest and our own id are left out or null.
  const shown = {
    ...changed,
    externalId: null,
    checks: changed.checks.map((check) => ({ ...check, customer: null })),
    deliveryInfo: deliveryInfo && { latitude: 42.3, deliveryState: deliveryInfo.deliveryState },
  };
  return {
    eventCategory: 'order_updated',
    eventType: 'order_updated',
    details: { restaurantGuid: guid, order: shown },
  };
}

/**
 * The order after a status. A guest order status only shows in the kitchen's part, as with Toast's kitchen displays.
 * https://doc.toasttab.com/openapi/orders/tag/Data-definitions/schema/Order/
 */
export function changeToastOrder(order: Record<string, unknown>, native: string, at: string): Changed {
  const { checks, deliveryInfo = null } = order as Pick<Changed, 'checks' | 'deliveryInfo'>;
  const stage = STAGES[native];
  return {
    ...order,
    ...(APPROVAL_STATUSES.includes(native) && { approvalStatus: native }),
    voided: native.toLowerCase() === 'voided',
    checks: checks.map((check) => ({
      ...check,
      selections: check.selections.map((selection) => {
        const cooked = selection['selectionType'] !== 'SPECIAL_REQUEST';
        return { ...selection, ...(stage !== undefined && cooked && { fulfillmentStatus: stage }) };
      }),
    })),
    deliveryInfo: deliveryInfo && {
      deliveryState: 'PENDING',
      ...deliveryInfo,
      ...(DELIVERY_STATES.includes(native) && { deliveryState: native }),
    },
    modifiedDate: at.replace('Z', '+0000'),
  };
}
