import { isObject } from '../../core/domain/json-text.ts';
import { hash, timingSafeEqual } from 'node:crypto';
import type { z } from 'zod';
import { Id, type StatusEvent } from '../../core/domain/order.ts';
import type { ReasonCode } from '../../core/domain/reason-code.ts';
import {
  AnyNotification,
  meaningOf,
  OfLocation,
  OrderNotification,
  ReadinessChanged,
  type Settings,
} from './payloads.ts';
import { NotAuthentic } from '../../core/domain/errors.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import type { KitchenReport } from '../../core/domain/webhook.ts';
import type { WebhookAuth } from '../../core/domain/webhook-auth.ts';
import { parseJson, readShape } from '../read-json.ts';
import { NOT_TAKEN, refuseNameless } from '../refusals.ts';
import { kitchenReport } from '../kitchen-report.ts';

const REASONS: readonly (readonly [RegExp, ReasonCode, string])[] = [
  [/accept online orders/i, 'paused', 'The restaurant takes no online orders at the moment.'],
  [/no devices available|validity ended/i, 'no_answer', 'The restaurant could not be reached.'],
  [/sales restrictions/i, 'item_unavailable', 'An item is not available at the moment.'],
  [/not found|no such item/i, 'item_unavailable', 'An item is not on the menu of the restaurant.'],
  [/payment amount/i, 'price_changed', NOT_TAKEN],
  [/payment/i, 'payment', NOT_TAKEN],
  [/consumer already exists/i, 'technical', NOT_TAKEN],
];

/** Our reason code for each `errors.account.type`. Other types are too general. */
const TYPES: readonly (readonly [RegExp, ReasonCode])[] = [
  [/^ITEM_/, 'item_unavailable'],
  [/^OVERPAID$/, 'price_changed'],
  [/PAYMENT/, 'payment'],
  [/^ACCOUNT_|STAFF|^INVALID_TASK$/, 'technical'],
];

/**
 * Returns a failed order's reason for the member. Lightspeed's own text is not shown: it has item ids, prices and
 * other customers' references. https://www.hubrise.com/apps/lightspeed-restaurant/troubleshooting (read 2026-11-23).
 */
function reasonOfFailure(
  { reason: text = '', errors }: z.infer<typeof OrderNotification>,
  settings: Settings,
): Pick<StatusEvent, 'reason' | 'reasonCode' | 'itemIds'> {
  const [, typed] = TYPES.find(([types]) => types.test(errors?.account.type ?? '')) ?? [];
  const isIt = ([words, code]: (typeof REASONS)[number]): boolean => words.test(text) && (typed ?? code) === code;
  const [, reasonCode, reason] = REASONS.find(isIt) ?? [undefined, typed ?? 'other', NOT_TAKEN];
  // As in "No such item id: 6644662335523, sku: abc123, blId: 52000111222" and "Could not add item abc123 (not found)".
  const sku = /\bsku: ([^,]+)/i.exec(text)?.[1] ?? /^could not add item (.+) \(not found\)$/i.exec(text)?.[1];
  return { reason, reasonCode, itemIds: sku === undefined ? undefined : itemsOf(sku, settings) };
}

/** Finds our ids of the items that are sold under a SKU. The SKU of an item without an entry in a map is our id. */
function itemsOf(sku: string, { itemMap, subItemMap, feeSku }: Settings): string[] | undefined {
  const ours = Object.keys(itemMap).filter((id) => itemMap[id] === sku);
  if (ours.length > 0) return ours.slice(0, 100);
  const isNone = sku === feeSku || Object.values(subItemMap).includes(sku) || !Id.safeParse(sku).success;
  return isNone ? undefined : [sku];
}

export const webhookAuth = {
  kind: 'password',
  header: 'authorization',
  settings: ['webhookUsername', 'webhookPassword'],
  byConnect: true,
} satisfies WebhookAuth;

const WANTED = 'an object with status and thirdPartyReference';

/**
 * Reads `{"status", "type", "thirdPartyReference", "ikentooAccountIdentifier", "businessLocationId", "reason"}`, and
 * `{"eventType", "order": {"thirdPartyReference", "status"}}`, where READY means READY_FOR_PICKUP. No sample of the
 * second form shows where `type` and `businessLocationId` are, so both levels are read.
 * @throws NotAuthentic, Poison
 */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  if (!webhook.verified) verifyBasic(webhook, settings);

  const json = parseJson(webhook.body, WANTED);
  const levels = levelsOf(json);
  if (!levels.every(isOfAnOrder)) return [];
  const notification = readShape(OrderNotification, levels.at(-1));
  const nativeStatus = notification.status;
  const status = meaningOf(levels.length > 1 && nativeStatus === 'READY' ? 'READY_FOR_PICKUP' : nativeStatus, settings);
  if (status === undefined || isOfAnother(json, webhook.body, settings)) return [];

  const { thirdPartyReference: serviceOrderId, ikentooAccountIdentifier: providerOrderId } = notification;
  refuseNameless({ thirdPartyReference: serviceOrderId, ikentooAccountIdentifier: providerOrderId }, levels.at(-1));
  const event = { status, serviceOrderId, providerOrderId, nativeStatus };
  if (status === 'failed') return [{ ...event, ...reasonOfFailure(notification, settings) }];
  return [status === 'cancelled' ? { ...event, reasonCode: 'restaurant_cancelled' } : event];
}

/** Compares digests, so that the duration does not show how much of the value is right. */
function verifyBasic({ headers }: Webhook, { webhookUsername, webhookPassword }: Settings): void {
  const { authorization } = headers;
  if (authorization === undefined || authorization === '') {
    throw new NotAuthentic('the header authorization is missing', {
      cause: { code: 'password_missing', header: webhookAuth.header },
    });
  }
  const given = /^basic +(\S+)$/i.exec(authorization)?.[1] ?? '';
  const right = Buffer.from(`${webhookUsername}:${webhookPassword}`).toString('base64');
  if (!timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', right, 'buffer'))) {
    throw new NotAuthentic('the user name and password in authorization are not webhookUsername and webhookPassword', {
      cause: { code: 'password_wrong', header: webhookAuth.header },
    });
  }
}

/** Reads whether tills take online orders. Its READY is not an order's. @throws Poison */
export function readKitchen({ body, receivedAt }: Webhook, settings: Settings): KitchenReport | undefined {
  const json = parseJson(body, WANTED);
  const status = ReadinessChanged.safeParse(json).data?.status;
  if (status === undefined || isOfAnother(json, body, settings)) return undefined;
  return kitchenReport({ state: status === 'READY' ? 'open' : 'closed' }, receivedAt, settings.pauseMinutes);
}

/** Returns the notification and, in the second form, the order inside it. */
function levelsOf(json: unknown): unknown[] {
  const { eventType, order } = readShape(AnyNotification, json);
  return typeof eventType === 'string' && isObject(order) ? [json, order] : [json];
}

function isOfAnOrder(level: unknown): boolean {
  const { type } = readShape(AnyNotification, level);
  return typeof type !== 'string' || type === '' || type === 'ORDER';
}

/** True if the webhook is about another location. Locations with the same endpointId get their webhooks at one URL. */
function isOfAnother(json: unknown, body: Buffer, { businessLocationId }: Settings): boolean {
  const given = locationsIn(json);
  const isExact = given.every((id) => typeof id === 'string' || Number.isSafeInteger(id));
  const exact = isExact ? given : locationsIn(withExactLocations(body));
  return exact.some((id) => String(id) !== businessLocationId);
}

function locationsIn(json: unknown): (string | number)[] {
  return levelsOf(json).flatMap((level) => readShape(OfLocation, level).businessLocationId ?? []);
}

/** Parses the body again, with location ids as text: beyond 2^53, two different ids may parse to the same number. */
function withExactLocations(body: Buffer): unknown {
  // TextDecoder drops a byte order mark, as parseJson does.
  const text = new TextDecoder().decode(body);
  return JSON.parse(text, (key: string, value: unknown, context?: { source?: string }) =>
    key === 'businessLocationId' && typeof value === 'number' ? context?.source : value,
  );
}
