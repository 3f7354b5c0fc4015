import { Poison } from '../../core/domain/errors.ts';
import type { Status } from '../../core/domain/lifecycle.ts';
import { StatusEvent } from '../../core/domain/order.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import type { WebhookAuth } from '../../core/domain/webhook-auth.ts';
import { parseJson } from '../parse-json.ts';
import { readShape } from '../read-shape.ts';
import { verifyHmac } from '../verify-hmac.ts';
import { OrderUpdate } from './payloads.ts';
import type { Settings } from './payloads.ts';

export const webhookAuth = {
  kind: 'signature',
  header: 'x-server-authorization-hmac-sha256',
  settings: ['hmacSecret'],
} satisfies WebhookAuth;

/**
 * Our status for each of Deliverect's codes: https://developers.deliverect.com/page/order-status
 * Others are internal, about a courier's way to the restaurant, or unknown, which "can safely be ignored". 30 says that
 * an order came twice and the second was dropped. 80 is called "in delivery", but says that a courier was assigned,
 * before 83 and often before the food is ready.
 *
 * "Statuses higher than 95 indicate that something went wrong". Two of them end nothing: 100 is a channel's own request
 * to cancel, and 115 a courier's, after which the food still waits for another. 121 and 124:
 * https://developers.deliverect.com/reference/post-order-status-update
 */
const MEANINGS: ReadonlyMap<number, Status> = new Map([
  [2, 'received'], // the POS's webhook took it
  [10, 'received'],
  [20, 'received'], // accepted
  [40, 'in_progress'], // the ticket is printed
  [50, 'in_progress'],
  [60, 'ready'], // prepared
  [70, 'ready'], // to be picked up
  [87, 'en_route'], // to the drop-off
  [89, 'en_route'], // at the door
  [90, 'completed'], // finalized; of a courier: delivered
  [95, 'completed'], // finalized by Deliverect, after silence from the POS
  [110, 'cancelled'],
  [35, 'cancelled'], // denied by the restaurant
  [120, 'failed'],
  [121, 'failed'], // the POS did not receive it
  [124, 'failed'], // Deliverect could not parse it
]);

/**
 * Reads an order status and a courier's status. A preparation time's update has the order's status as well. Other
 * webhooks of Deliverect, such as menus and pauses, name no order.
 * The signature is the hex HMAC-SHA256 of the raw body:
 * https://developers.deliverect.com/reference/hmac-authentication
 * @throws NotAuthentic, Poison
 */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  if (!webhook.verified) {
    verifyHmac(webhook, {
      header: webhookAuth.header,
      secret: settings.hmacSecret,
      signed: [webhook.body],
      encoding: 'hex',
    });
  }

  const json = parseJson(webhook.body, 'an object with channelOrderId and status');
  if (!namesAnOrder(json)) return [];
  const { status: code, channelLink, channelOrderId, orderId, reason, timeStamp } = readShape(OrderUpdate, json);
  if (channelOrderId === undefined && orderId === undefined) {
    throw new Poison('channelOrderId and orderId are both empty: a string in either is required', {
      cause: { code: 'names_no_order', fields: ['channelOrderId', 'orderId'] },
    });
  }
  if ((channelLink ?? settings.channelLinkId) !== settings.channelLinkId) return [];
  const status = MEANINGS.get(code);
  if (status === undefined || (status === 'completed' && !settings.closedMeansCompleted)) return [];

  return [
    {
      status,
      serviceOrderId: channelOrderId,
      providerOrderId: orderId,
      reason: reasonFor(status, code, reason),
      occurredAt: StatusEvent.shape.occurredAt.safeParse(timeStamp).data,
      nativeStatus: String(code),
    },
  ];
}

function namesAnOrder(json: unknown): boolean {
  return typeof json === 'object' && json !== null && ('channelOrderId' in json || 'orderId' in json);
}

/**
 * The reason for the member: a cancelling restaurant's own ("Item out of stock"), never a failure's technical one. A
 * failure's code is all that the member's question needs for its answer.
 */
function reasonFor(status: Status, code: number, reason: string | null | undefined): string | undefined {
  if (status === 'failed') return `The restaurant could not take this order (Deliverect ${code}).`;
  return status === 'cancelled' ? reason?.trim() || undefined : undefined;
}
