import { randomUUIDv7 } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { keptHeaders } from '../core/domain/kept-headers.ts';
import { withTimeout } from '../core/domain/with-timeout.ts';
import type { Drop, TranslatedWebhook } from '../core/domain/webhook.ts';
import { sealWebhook, type WebhookSecrets } from '../core/locations/seal-webhook.ts';
import type { SettingsKeys } from '../core/locations/settings-key.ts';
import type { TokenScope } from '../core/locations/webhook-tokens.ts';
import type { Now } from '../core/postgres/database-clock.ts';
import type { DropQuota } from '../core/statuses/drop-quota.ts';
import { verifyAndTranslate } from '../core/statuses/verify-and-translate.ts';
import { blankToken, holdsToken } from './blank-token.ts';
import { KEEP } from './read-body.ts';

export type TranslateDeps = {
  now: Now;
  keys: SettingsKeys;
  quota: Pick<DropQuota, 'take'>;
  /** The outside base URL, without a slash at its end. Some vendors sign the URL that they call. */
  publicUrl: string;
  bodyLimit: number;
};

/** Bytes of a webhook's row beside headers and body, with its places in indexes. */
const ROW_BYTES = 512;
/** How much longer a text is when it is sealed: base64 in base64. */
const SEALED = 2;

const lateQuota = (): Error => new Error('the quota of what is dropped was not known in time');

/** A webhook of which nothing is stored. */
type NotKept = { id: null; dropped: Drop };

/**
 * Lets the provider verify and translate a request, and decides what of it is stored: headers of a list in clear; of a
 * dropped one all others, with the target, sealed; a body that holds our token, sealed.
 * @param read.body only its beginning, if it was over the limit
 * @param read.deadline in milliseconds since the epoch
 * @throws if nobody can say whether the quota of what is dropped has room
 */
export async function translateRequest(
  request: FastifyRequest,
  scope: TokenScope,
  read: { body: Buffer; truncated: boolean; deadline: number },
  deps: TranslateDeps,
): Promise<TranslatedWebhook | NotKept> {
  const { locationId, integration, provider, settings } = scope;
  const { token } = request.query as { token: string };
  const { rawHeaders, url: target = '' } = request.raw;
  const receivedAt = deps.now();
  const all = flatten(rawHeaders);
  const { events, dropped } = read.truncated
    ? { events: [], dropped: tooLarge(deps.bodyLimit) }
    : verifyAndTranslate(provider, settings, {
        headers: all,
        body: read.body,
        url: deps.publicUrl + target,
        receivedAt,
        verified: false,
      });

  const isSealed = holdsToken(read.body, token);
  let { body } = read;
  if (dropped?.unproven === true) {
    const rest = ROW_BYTES + SEALED * (rawHeaders.join('').length + target.length);
    const cost = (bytes: number): number => rest + bytes * (isSealed ? SEALED : 1);
    const bytes = { whole: cost(body.length), beginning: cost(Math.min(body.length, KEEP)) };
    const fits = await withTimeout(read.deadline - Date.now(), () => deps.quota.take(locationId, bytes), lateQuota);
    if (fits === 'nothing') return { id: null, dropped };
    if (fits === 'beginning') body = body.subarray(0, KEEP);
  }

  const headers = inClear(all, keptHeaders(provider), token);
  // Where the body is sealed, nothing else says how long it is.
  if (isSealed) headers['content-length'] = String(body.length);
  const webhook = {
    id: randomUUIDv7(),
    locationId,
    integration,
    receivedAt,
    headers,
    body: isSealed ? Buffer.alloc(0) : body,
    truncated: read.truncated || body.length < read.body.length,
    events,
    dropped,
  };
  if (dropped === undefined && !isSealed) return webhook;
  const secrets = {
    // A dropped webhook is verified again at replay. That needs what is not kept of others.
    ...(dropped === undefined ? { target: '' } : { target, ...leftOut(all, headers) }),
    ...(isSealed && { body: body.toString('base64') }),
  };
  return { ...webhook, sealed: await sealWebhook(deps.keys, { locationId, webhookId: webhook.id }, secrets) };
}

function tooLarge(limit: number): Drop {
  return {
    reason: `over ${limit} bytes; the beginning is kept`,
    cause: { code: 'too_large', limit },
    // A signature covers the whole.
    unproven: true,
  };
}

/** The request's headers, names in lower case. Repeated ones are joined as RFC 9110 section 5.3 says. */
function flatten(rawHeaders: readonly string[]): Record<string, string> {
  const headers = withoutPrototype();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? '';
    const value = rawHeaders[i + 1] ?? '';
    const before = headers[name];
    headers[name] = before === undefined ? value : `${before}, ${value}`;
  }
  return headers;
}

/** The headers that are stored in clear, without our token. */
function inClear(all: Record<string, string>, kept: ReadonlySet<string>, token: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of kept) {
    const value = all[name];
    if (value !== undefined) headers[name] = blankToken(value, token);
  }
  return headers;
}

/** All that these do not hold as it came. */
function leftOut(
  all: Record<string, string>,
  headers: Record<string, string>,
): Pick<WebhookSecrets, 'authorization' | 'cookie' | 'headers'> {
  const { authorization, cookie, ...others } = all;
  const left = Object.entries(others).filter(([name, value]) => headers[name] !== value);
  return {
    ...(authorization !== undefined && { authorization }),
    ...(cookie !== undefined && { cookie }),
    headers: Object.fromEntries(left),
  };
}

/** An object that can hold a header named `__proto__`. */
function withoutPrototype(): Record<string, string> {
  return Object.create(null) as Record<string, string>;
}
