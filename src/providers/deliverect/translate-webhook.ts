import { Poison } from '../../core/domain/errors.ts';
import type { Status } from '../../core/domain/lifecycle.ts';
import type { StatusEvent } from '../../core/domain/order.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import type { WebhookAuth } from '../../core/domain/webhook-auth.ts';
import { parseJson, readShape } from '../read-json.ts';
import { reasonInWords } from '../order-texts.ts';
import { verifyHmac } from '../verify-hmac.ts';
import { BusyMode, OrderUpdate, type Settings } from './payloads.ts';
import type { Busy } from '../../core/domain/webhook.ts';

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
 * A courier on the way to the restaurant comes for an order that was accepted, which is inferred. One that is only
 * assigned (80, 81) says nothing of that.
 */
const COURIER_COMES: ReadonlySet<number> = new Set([83, 84, 85]);

/**
 * Reads an order status and a courier's status. A preparation time's update has the order's status as well, and no time
 * of its own. Other webhooks of Deliverect, such as menus and pauses, name no order.
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
  const update = readShape(OrderUpdate, json);
  const { status: code, channelLink, channelOrderId, orderId } = update;
  if (channelOrderId === undefined && orderId === undefined) {
    throw new Poison('channelOrderId and orderId are both empty: a string in either is required', {
      cause: { code: 'names_no_order', fields: ['channelOrderId', 'orderId'] },
    });
  }
  if ((channelLink ?? settings.channelLinkId) !== settings.channelLinkId) return [];
  const tellsTime = update.deliveryTime !== undefined && COURIER_COMES.has(code);
  const status = tellsTime ? 'received' : MEANINGS.get(code);
  if (status === undefined || (status === 'completed' && !settings.closedMeansCompleted)) return [];

  return [
    {
      status,
      serviceOrderId: channelOrderId,
      providerOrderId: orderId,
      ...whyOf(status, code, update.reason ?? '', settings),
      estimatedReadyAt: update.location ? update.pickupTime : undefined,
      estimatedDeliveryAt: update.deliveryTime,
      occurredAt: update.timeStamp,
      nativeStatus: String(code),
    },
  ];
}

/** Of an order that it names, an amendment says what its items became, and no status: .../reference/item-amendments */
function namesAnOrder(json: unknown): boolean {
  if (typeof json !== 'object' || json === null || 'itemAmendments' in json) return false;
  return 'channelOrderId' in json || 'orderId' in json;
}

/**
 * Why it ended. The reason for the member is a cancelling restaurant's own ("Item out of stock"), never a failure's
 * technical one; a failure's code is all that the member's question needs for its answer. Deliverect documents no codes of
 * reasons. Where its words are not known, who denies or cancels is the restaurant, and what fails is technical.
 */
function whyOf(
  status: Status,
  code: number,
  said: string,
  settings: Settings,
): Pick<StatusEvent, 'reason' | 'reasonCode' | 'itemIds'> {
  if (status !== 'failed' && status !== 'cancelled') return {};
  const hasFailed = status === 'failed';
  const itemIds = itemsIn(said, settings);
  return {
    reason: hasFailed ? `The restaurant could not take this order (Deliverect ${code}).` : said.trim() || undefined,
    reasonCode: reasonInWords(said) ?? (hasFailed ? 'technical' : 'restaurant_cancelled'),
    itemIds: itemIds.length === 0 ? undefined : itemIds,
  };
}

/**
 * The items, by our ids, whose PLUs a failed order names: "InvalidProduct: Invalid PLU: 123". A modifier is no item.
 * https://help.deliverect.com/en/articles/7979018-solve-invalid-plu-order-issues
 */
function itemsIn(said: string, { itemMap }: Settings): string[] {
  const plus = [...said.slice(0, 5000).matchAll(/\bInvalidProduct: Invalid PLU: (\S{1,255}?)[,;.]?(?=\s|$)/g)];
  const ids = plus.flatMap(([, plu = '']) => {
    const ours = Object.keys(itemMap).filter((id) => itemMap[id] === plu);
    return ours.length === 0 ? [plu] : ours;
  });
  return [...new Set(ids)].slice(0, 100);
}

/**
 * Reads a store's busy mode. Deliverect wants the status back once it is so. Its other webhooks, such as menus, look
 * different.
 * @throws Poison
 */
export function readBusy({ body, receivedAt }: Webhook, settings: Settings): Busy | undefined {
  const said = BusyMode.safeParse(parseJson(body, 'an object with channelLinkId and status')).data;
  if (said?.channelLinkId !== settings.channelLinkId) return undefined;
  const { status } = said;
  const isPaused = status === 'PAUSED';
  const end = new Date(receivedAt.getTime() + settings.pauseMinutes * 60_000);
  return { pausedUntil: isPaused ? end : null, answer: { status } };
}
