import type { ZodType } from 'zod';
import { GiveUp, NeedsOperator, TryAgain } from '../../core/domain/errors.ts';
import type { CanonicalOrder } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import type { ReasonCode } from '../../core/domain/reason-code.ts';
import { limitRate, type PosAnswer } from '../call-pos.ts';
import { callWithBearer, callWithToken } from '../oauth.ts';
import { neverTaken, notItsOwn } from '../refusals.ts';
import { tokenOf } from './obtain-token.ts';
import { API_VERSION, Refusal, type Settings } from './payloads.ts';

/** Square publishes no request limits, so requests wait only after a 429. */
const limited = limitRate([]);

export type Square = PosContext<Settings>;

/** Calls Square with `accessToken` or a token that `refreshToken` obtains. @throws as `callPos` and `Credentials` do */
export function callSquare(
  context: Square,
  { method, path, body }: { method: 'GET' | 'POST' | 'PUT'; path: string; body?: unknown },
): Promise<PosAnswer> {
  const { settings, now, credentials } = context;
  const { baseUrl, locationId, accessToken } = settings;
  const headers = { 'square-version': API_VERSION };
  const callWith = (token: string) => callWithBearer(context, token, { method, path, headers, json: body });
  return limited(`${baseUrl} ${locationId}`, now, async () =>
    accessToken === undefined ? callWithToken(credentials, tokenOf(context), callWith) : callWith(accessToken),
  );
}

/** Codes of temporary failures. Square may take the same request with the same key later. */
const PASSING = new Set([
  'TEMPORARY_ERROR',
  'CONFLICT',
  'VERSION_MISMATCH',
  'REQUEST_TIMEOUT',
  'RATE_LIMITED',
  'INTERNAL_SERVER_ERROR',
  'BAD_GATEWAY',
  'SERVICE_UNAVAILABLE',
  'GATEWAY_TIMEOUT',
]);

/** Codes about the location, the application or the seller's account. Square would refuse every order. */
const OURS = new Set([
  'NOT_FOUND',
  'LOCATION_MISMATCH',
  'INVALID_LOCATION',
  'CARD_PROCESSING_NOT_ENABLED',
  'INSUFFICIENT_PERMISSIONS',
  'INSUFFICIENT_SCOPES',
  'APPLICATION_DISABLED',
  'CLIENT_DISABLED',
  'MERCHANT_SUBSCRIPTION_NOT_FOUND',
  'API_VERSION_INCOMPATIBLE',
  'SANDBOX_NOT_SUPPORTED',
]);

/**
 * Classifies a 4xx of Square: https://developer.squareup.com/docs/build-basics/handling-errors
 *
 * - temporary codes, and 409: try again with the same key, because Square may still be processing the request
 * - an unknown item or modifier, a location that is not the token's, a restricted account: an operator is needed. For
 *   an unknown catalog object Square names no field, only the code NOT_FOUND, so the id is read from the detail
 * - anything else: Square will never take the request
 *
 * The message has only codes, field names and catalog ids, because Square's details may quote the member.
 * @param about.items the order's items. Square names a refused item by its number in this list
 * @param about.reasonCode the reason code if Square's errors show no other
 */
export function refusalBy(
  { status: httpStatus, json }: PosAnswer,
  what: string,
  { items = [], reasonCode = 'technical' }: { items?: CanonicalOrder['items']; reasonCode?: ReasonCode } = {},
): TryAgain | NeedsOperator | GiveUp {
  const errors = Refusal.safeParse(json).data?.errors ?? [];
  const said = errors.map(({ code, field, detail }) => `${wordIn(code)}${fieldIn(field)}${catalogIdIn(detail)}`);
  const message = `Square refused ${what} with ${[httpStatus, ...said].join(' ')}`;
  const has = (codes: ReadonlySet<string>): boolean => errors.some(({ code }) => codes.has(code));

  if (httpStatus === 409 || has(PASSING) || errors.some(({ category }) => category === 'API_ERROR')) {
    return new TryAgain(message, { sent: true, httpStatus });
  }
  if (httpStatus === 404 || httpStatus === 405 || has(OURS) || errors.some(isAboutSettings)) {
    return new NeedsOperator(message, { httpStatus });
  }
  if (errors.length === 0) return notItsOwn(message, httpStatus);
  const itemIds = errors.flatMap(({ field = '' }) => {
    const item = items[Number(/^order\.line_items\[(\d{1,3})\]/.exec(field)?.[1])];
    return item === undefined ? [] : [item.serviceItemId];
  });
  return neverTaken(message, {
    reasonCode: errors.some(isAboutAddress) ? 'invalid_address' : has(PAYMENT) ? 'payment' : reasonCode,
    itemIds: itemIds.length === 0 ? undefined : [...new Set(itemIds)],
    httpStatus,
  });
}

const PAYMENT = new Set([
  'PAYMENT_AMOUNT_MISMATCH',
  'CURRENCY_MISMATCH',
  'UNSUPPORTED_CURRENCY',
  'PAYMENT_LIMIT_EXCEEDED',
]);

function isAboutAddress({ code, field = '' }: { code: string; field?: string | undefined }): boolean {
  return /\.address(\.|$)/.test(field) || code === 'INVALID_POSTAL_CODE' || code === 'UNSUPPORTED_COUNTRY';
}

function isAboutSettings({ category, field }: { category?: string | undefined; field?: string | undefined }): boolean {
  return category === 'AUTHENTICATION_ERROR' || /(^|\.)(location_id|catalog_object_id)$/.test(field ?? '');
}

export function hasCode({ json }: PosAnswer, code: string): boolean {
  return Refusal.safeParse(json).data?.errors.some((error) => error.code === code) ?? false;
}

function wordIn(code: string): string {
  return /^\w{1,60}$/.test(code) ? code : '(no code)';
}

function fieldIn(field = ''): string {
  return /^[\w.[\]]{1,120}$/.test(field) ? ` (${field})` : '';
}

function catalogIdIn(detail = ''): string {
  const id = /catalog object ID `([\w-]{1,192})`/i.exec(detail)?.[1];
  return id === undefined ? '' : ` (catalog object ${id})`;
}

/**
 * Reads Square's answer to a request that is not about an order.
 * @param what the request, for the message, as in "the list of subscriptions"
 * @throws TryAgain, NeedsOperator
 */
export function readAnswer<Shape>(shape: ZodType<Shape>, answer: PosAnswer, what: string): Shape {
  if (answer.status >= 300) throw refusalOf(answer, what);
  const result = shape.safeParse(answer.json);
  if (!result.success) throw new NeedsOperator(`Square's answer about ${what} cannot be read: check baseUrl`);
  return result.data;
}

/** Classifies a 4xx to a request that creates no order. Only an operator can help, so GiveUp becomes NeedsOperator. */
export function refusalOf(answer: PosAnswer, what: string): TryAgain | NeedsOperator {
  const refusal = refusalBy(answer, what);
  if (!(refusal instanceof GiveUp)) return refusal;
  return new NeedsOperator(refusal.message, { httpStatus: refusal.httpStatus });
}
