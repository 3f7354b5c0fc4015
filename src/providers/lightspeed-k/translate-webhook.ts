import { createHash, timingSafeEqual } from 'node:crypto';
import type { ZodType } from 'zod';
import { NotAuthentic, Poison } from '../../core/errors.ts';
import type { Status } from '../../core/lifecycle.ts';
import { StatusEvent, describeIssues } from '../../core/order.ts';
import type { Webhook } from '../../core/provider.ts';
import { parseJson } from '../parse-json.ts';
import { AnyNotification, OrderNotification } from './payloads.ts';
import type { Settings } from './payloads.ts';
import { reasonOfFailure } from './reason-of-failure.ts';

const WANTED = 'an object with status and thirdPartyReference';

/**
 * https://api-docs.lsk.lightspeed.app/operation/operation-onlineordernotification. CLOSED depends on the settings;
 * CHECK_WAS_UPDATED says nothing about the food.
 * Not documented what ABANDONED means beside FAILURE and CANCELLED: nobody will finish the order, whichever way.
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

/**
 * Reads `{"status", "type", "thirdPartyReference", "ikentooAccountIdentifier", "businessLocationId", "reason"}`, and
 * `{"eventType", "order": {"thirdPartyReference", "status"}}`, where READY stands for READY_FOR_PICKUP.
 * Payments, items and the location's readiness come to the same URL with a `type` of their own, and statuses that look
 * like an order's. Lightspeed signs nothing: HTTP Basic alone says who sent it.
 * @throws NotAuthentic, Poison
 */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  if (!webhook.verified) verifyBasic(webhook, settings);

  const found = findOrder(parseJson(webhook.body, WANTED));
  if (found === undefined) return [];
  const notification = read(OrderNotification, found.order);
  const nativeStatus = notification.status;
  const status = meaningOf(found.isWrapped && nativeStatus === 'READY' ? 'READY_FOR_PICKUP' : nativeStatus, settings);
  if (status === undefined || isOfAnother(notification, webhook.body, settings)) return [];

  const { thirdPartyReference: serviceOrderId, ikentooAccountIdentifier: providerOrderId, reason } = notification;
  if (serviceOrderId === undefined && providerOrderId === undefined) {
    throw new Poison(
      'thirdPartyReference and ikentooAccountIdentifier are both missing: a string in either is required',
    );
  }
  const event = { status, serviceOrderId, providerOrderId, nativeStatus };
  return [read(StatusEvent, status === 'failed' ? { ...event, reason: reasonOfFailure(reason) } : event)];
}

/** Two digests take as long to compare however much of what was sent is right. */
function verifyBasic({ headers }: Webhook, { webhookUsername, webhookPassword }: Settings): void {
  const { authorization } = headers;
  if (authorization === undefined || authorization === '') {
    throw new NotAuthentic('the header authorization is missing');
  }
  const given = /^basic +(\S+)$/i.exec(authorization)?.[1] ?? '';
  const right = Buffer.from(`${webhookUsername}:${webhookPassword}`).toString('base64');
  if (!timingSafeEqual(sha256(given), sha256(right))) {
    throw new NotAuthentic('the user name and password in authorization are not webhookUsername and webhookPassword');
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** @returns undefined for a notification about something else than an order */
function findOrder(json: unknown): { order: unknown; isWrapped: boolean } | undefined {
  const { type, eventType, order } = read(AnyNotification, json);
  if (type !== undefined && type !== null && type !== '' && type !== 'ORDER') return undefined;
  const isWrapped = typeof eventType === 'string' && typeof order === 'object' && order !== null;
  return { order: isWrapped ? order : json, isWrapped };
}

function meaningOf(nativeStatus: string, { closedMeansCompleted }: Settings): Status | undefined {
  if (nativeStatus === 'CLOSED') return closedMeansCompleted ? 'completed' : undefined;
  return MEANINGS.get(nativeStatus);
}

/** One webhook may be registered for several business locations' orders. */
function isOfAnother({ businessLocationId: id }: OrderNotification, body: Buffer, settings: Settings): boolean {
  if (id === undefined) return false;
  const isExact = typeof id === 'string' || Number.isSafeInteger(id);
  return (isExact ? String(id) : digitsOf('businessLocationId', body)) !== settings.businessLocationId;
}

/** A number as it stands in the body: parsed, an int64 beyond 2^53 may be another's. */
function digitsOf(field: string, body: Buffer): string | undefined {
  let digits: string | undefined;
  JSON.parse(body.toString(), (key: string, value: unknown, context?: { source?: string }) => {
    if (key === field) digits = context?.source;
    return value;
  });
  return digits;
}

function read<Shape>(schema: ZodType<Shape>, value: unknown): Shape {
  const result = schema.safeParse(value);
  if (!result.success) throw new Poison(describeIssues(result.error));
  return result.data;
}
