import { randomUUIDv7 } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { keptHeaders } from '../core/domain/kept-headers.ts';
import type { Drop, TranslatedWebhook } from '../core/domain/webhook.ts';
import { sealWebhook, type WebhookSecrets } from '../core/locations/seal-webhook.ts';
import type { SettingsKeys } from '../core/locations/settings-key.ts';
import type { TokenScope } from '../core/locations/webhook-tokens.ts';
import type { Now } from '../core/postgres/database-clock.ts';
import { verifyAndTranslate } from '../core/statuses/verify-and-translate.ts';
import { blankToken, holdsToken } from './blank-token.ts';

export type TranslateDeps = {
  now: Now;
  keys: SettingsKeys;
  /** The outside base URL, without a slash at its end. Some vendors sign the URL that they call. */
  publicUrl: string;
  bodyLimit: number;
};

/**
 * Lets the provider verify and translate a request, and decides what of it is stored: headers of a list in clear; of a
 * dropped one all others, with the target, sealed; a body that holds our token, sealed.
 * @param read.body only its beginning, if it was over the limit
 */
export async function translateRequest(
  request: FastifyRequest,
  scope: TokenScope,
  { body, truncated }: { body: Buffer; truncated: boolean },
  deps: TranslateDeps,
): Promise<TranslatedWebhook> {
  const { locationId, integration, provider, settings } = scope;
  const { token } = request.query as { token: string };
  const { rawHeaders, url: target = '' } = request.raw;
  const receivedAt = deps.now();
  const all = flatten(rawHeaders);
  const { events, dropped } = truncated
    ? { events: [], dropped: tooLarge(deps.bodyLimit) }
    : verifyAndTranslate(provider, settings, {
        headers: all,
        body,
        url: deps.publicUrl + target,
        receivedAt,
        verified: false,
      });

  const isSealed = holdsToken(body, token);
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
    truncated,
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
  return { reason: `over ${limit} bytes; the beginning is kept`, cause: { code: 'too_large', limit } };
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
