import type { Status } from '../../core/domain/lifecycle.ts';
import type { StatusEvent } from '../../core/domain/order.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import type { WebhookAuth } from '../../core/domain/webhook-auth.ts';
import { parseJson, readShape } from '../read-json.ts';
import { reasonInWords } from '../order-texts.ts';
import { refuseNameless } from '../refusals.ts';
import { kitchenReport } from '../kitchen-report.ts';
import { verifyHmac } from '../../core/domain/verify-hmac.ts';
import { BusyMode, OrderUpdate, type Settings } from './payloads.ts';
import type { KitchenReport } from '../../core/domain/webhook.ts';

export const webhookAuth = {
  kind: 'signature',
  header: 'x-server-authorization-hmac-sha256',
  settings: ['hmacSecret'],
} satisfies WebhookAuth;

/**
 * Our status for each of Deliverect's codes: https://developers.deliverect.com/page/order-status
 * 80 is called "in delivery", but it reports that a courier was assigned, often before the food is ready. 115 means
 * that a courier cancelled and the food waits for another one.
 */
const MEANINGS: ReadonlyMap<number, Status> = new Map([
  [2, 'received'], // the POS's webhook took the order
  [10, 'received'],
  [20, 'received'], // accepted
  [40, 'in_progress'], // the ticket is printed
  [50, 'in_progress'],
  [60, 'ready'], // prepared
  [70, 'ready'], // to be picked up
  [87, 'en_route'], // to the drop-off
  [89, 'en_route'], // at the door
  [90, 'completed'], // finalized; in a courier's update: delivered
  [95, 'completed'], // finalized by Deliverect, after silence from the POS
  [110, 'cancelled'],
  [35, 'cancelled'], // denied by the restaurant
  [120, 'failed'],
  [121, 'failed'], // the POS did not receive it
  [124, 'failed'], // Deliverect could not parse it
]);

/** A courier on the way shows that the restaurant accepted. A courier who is only assigned (80, 81) does not show it. */
const COURIER_COMES: ReadonlySet<number> = new Set([83, 84, 85]);

/**
 * An update of the preparation time repeats the order's status and has no `timeStamp`. Other webhooks name no order.
 * The signature: https://developers.deliverect.com/reference/hmac-authentication
 * @throws NotAuthentic, Poison
 */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  if (!webhook.verified) {
    const { header } = webhookAuth;
    verifyHmac(webhook, { header, secret: settings.hmacSecret, signed: [webhook.body], encoding: 'hex' });
  }

  const json = parseJson(webhook.body, 'an object with channelOrderId and status');
  if (!namesAnOrder(json)) return [];
  const update = readShape(OrderUpdate, json);
  const { status: code, channelLink, channelOrderId, orderId } = update;
  refuseNameless({ channelOrderId, orderId }, json);
  if ((channelLink ?? settings.channelLinkId) !== settings.channelLinkId) return [];
  const hasCourierTime = update.deliveryTime !== undefined && COURIER_COMES.has(code);
  const status = hasCourierTime ? 'received' : MEANINGS.get(code);
  if (status === undefined || (status === 'completed' && !settings.closedMeansCompleted)) return [];

  return [
    {
      status,
      serviceOrderId: channelOrderId,
      providerOrderId: orderId,
      ...reasonOf(status, code, update.reason ?? '', settings),
      estimatedReadyAt: update.location ? update.pickupTime : undefined,
      estimatedDeliveryAt: update.deliveryTime,
      occurredAt: update.timeStamp,
      nativeStatus: String(code),
    },
  ];
}

/** False for an amendment, which names an order, but has changed items and no status: …/reference/item-amendments */
function namesAnOrder(json: unknown): boolean {
  if (typeof json !== 'object' || json === null || 'itemAmendments' in json) return false;
  return 'channelOrderId' in json || 'orderId' in json;
}

/** The words about a failure are technical, so the member reads only Deliverect's code. */
function reasonOf(
  status: Status,
  code: number,
  text: string,
  settings: Settings,
): Pick<StatusEvent, 'reason' | 'reasonCode' | 'itemIds'> {
  if (status !== 'failed' && status !== 'cancelled') return {};
  const hasFailed = status === 'failed';
  const itemIds = itemsIn(text, settings);
  return {
    reason: hasFailed ? `The restaurant could not take this order (Deliverect ${code}).` : text.trim() || undefined,
    reasonCode: reasonInWords(text) ?? (hasFailed ? 'technical' : 'restaurant_cancelled'),
    itemIds: itemIds.length === 0 ? undefined : itemIds,
  };
}

/** Finds our ids of the items: https://help.deliverect.com/en/articles/7979018-solve-invalid-plu-order-issues */
function itemsIn(text: string, { itemMap }: Settings): string[] {
  const plus = [...text.slice(0, 5000).matchAll(/\bInvalidProduct: Invalid PLU: (\S{1,255}?)[,;.]?(?=\s|$)/g)];
  const ids = plus.flatMap(([, plu = '']) => {
    const ours = Object.keys(itemMap).filter((id) => itemMap[id] === plu);
    return ours.length === 0 ? [plu] : ours;
  });
  return [...new Set(ids)].slice(0, 100);
}

const STATES = { PAUSED: 'closed', BUSY: 'busy', ONLINE: 'open' } as const;

/** Reads a store's busy mode. Deliverect expects the status back as the answer. @throws Poison */
export function readKitchen({ body, receivedAt }: Webhook, settings: Settings): KitchenReport | undefined {
  const update = BusyMode.safeParse(parseJson(body, 'an object with channelLinkId and status')).data;
  if (update?.channelLinkId !== settings.channelLinkId) return undefined;
  const { status, delay: extraMinutes } = update;
  const report = kitchenReport({ state: STATES[status], extraMinutes }, receivedAt, settings.pauseMinutes);
  return { ...report, answer: { status } };
}
