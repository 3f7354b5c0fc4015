import { GiveUp, NeedsOperator, TryAgain } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callPos, type PosAnswer } from '../call-pos.ts';
import { limitRate } from '../limit-rate.ts';
import { Refusal, type Settings } from './payloads.ts';

/** The version of the API that these payloads follow: https://developer.squareup.com/docs/changelog/connect */
export const API_VERSION = '2025-08-20';

/** Limits by 429 alone: Square publishes no figures. */
const limited = limitRate([]);

export type Square = Pick<PosContext<Settings>, 'settings' | 'now' | 'signal' | 'fetch'>;

/** @throws as `callPos` does */
export function callSquare(
  { settings, now, signal, fetch }: Square,
  call: { method: 'GET' | 'POST' | 'PUT'; path: string; body?: unknown },
): Promise<PosAnswer> {
  const { method, path, body } = call;
  const headers = {
    authorization: `Bearer ${settings.accessToken}`,
    'square-version': API_VERSION,
    accept: 'application/json',
    ...(body !== undefined && { 'content-type': 'application/json' }),
  };
  return limited(`${settings.baseUrl} ${settings.accessToken}`, now, () =>
    callPos({
      method,
      url: settings.baseUrl + path,
      headers,
      signal,
      fetch,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
  );
}

/** Codes of temporary failures: the same request with the same key may be taken later. */
const PASSING = new Set([
  'TEMPORARY_ERROR',
  'CONFLICT',
  'REQUEST_TIMEOUT',
  'RATE_LIMITED',
  'INTERNAL_SERVER_ERROR',
  'BAD_GATEWAY',
  'SERVICE_UNAVAILABLE',
  'GATEWAY_TIMEOUT',
]);

/** Codes about the location, the application or the seller's account: every order would be refused. */
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
 * - temporary codes, and 409: try again with the same key, since Square may be at work on it
 * - an unknown item or modifier, a location that is not the token's, a restricted account: an operator is needed. For
 *   an unknown catalog object Square names no field, only the code NOT_FOUND, so its id is taken out of the detail
 * - anything else: Square will never take it
 *
 * The message has only codes, field names and catalog ids: details may quote the member.
 */
export function refusalBy({ status: httpStatus, json }: PosAnswer, what: string): TryAgain | NeedsOperator | GiveUp {
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
  return new GiveUp(message, { reason: 'The restaurant could not take this order.', httpStatus });
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
