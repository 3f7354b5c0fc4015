import { keptHeaders } from '../domain/kept-headers.ts';
import type { Provider } from '../domain/provider.ts';
import {
  BEGINNING,
  type ArrivedWebhook,
  type Drop,
  type Translated,
  type TranslatedWebhook,
} from '../domain/webhook.ts';
import { withTimeout } from '../domain/with-timeout.ts';
import { sealWebhook, type WebhookSecrets } from '../locations/seal-webhook.ts';
import type { SettingsKeys } from '../locations/settings-key.ts';
import type { Accepted } from './batch-webhooks.ts';
import { blankToken, holdsToken } from './blank-token.ts';
import { compressBody } from './compress-body.ts';
import type { DropQuota } from './drop-quota.ts';

export type KeepDeps = { keys: SettingsKeys; quota: Pick<DropQuota, 'take'> };

/** Bytes of a webhook's row beside headers and body, with its places in indexes. */
const ROW_BYTES = 512;
/** How much longer a text is when it is sealed: base64 in base64. */
const SEALED = 2;

const lateQuota = (): Error => new Error('the quota of what is dropped was not known in time');

/** A webhook of which nothing is stored. */
export type NotKept = { id: null; dropped: Drop };
/** What becomes of it. */
export const NOT_KEPT: Accepted = { outcome: 'dropped', serviceOrderIds: [] };

/**
 * Decides what is stored of a webhook: headers of a list in clear; of a dropped one all others, with the target, sealed;
 * a body that holds our token, sealed; a large one compressed.
 * @param deadline in milliseconds since the epoch
 * @throws if nobody can say in time whether the quota of what is dropped has room
 */
export async function keepArrived(
  arrived: ArrivedWebhook,
  provider: Pick<Provider, 'webhookAuth' | 'webhookHeaders'>,
  { events, busy, dropped }: Translated,
  deadline: number,
  { keys, quota }: KeepDeps,
): Promise<TranslatedWebhook | NotKept> {
  const { id, locationId, integration, receivedAt, target, token } = arrived;
  const isSealed = holdsToken(arrived.body, token);
  let { body } = arrived;
  // guard: unproven-quota
  if (dropped?.unproven === true) {
    const rest = ROW_BYTES + SEALED * (lengthOf(arrived.headers) + target.length);
    const cost = (bytes: number): number => rest + bytes * (isSealed ? SEALED : 1);
    const bytes = { whole: cost(body.length), beginning: cost(Math.min(body.length, BEGINNING)) };
    const fits = await withTimeout(deadline - Date.now(), () => quota.take(locationId, bytes), lateQuota);
    if (fits === 'nothing') return { id: null, dropped };
    if (fits === 'beginning') body = body.subarray(0, BEGINNING);
  }

  const headers = inClear(arrived.headers, keptHeaders(provider), token);
  // Where the body is sealed, nothing else says how long it is.
  if (isSealed) headers['content-length'] = String(body.length);
  const webhook = {
    id,
    locationId,
    integration,
    receivedAt,
    headers,
    body: isSealed ? Buffer.alloc(0) : body,
    truncated: arrived.truncated || body.length < arrived.body.length,
    events,
    busy,
    dropped,
  };
  if (dropped === undefined && !isSealed) return compressBody(webhook);
  const secrets = {
    // A dropped webhook is verified again at replay. That needs what is not kept of others.
    ...(dropped === undefined ? { target: '' } : { target, ...leftOut(arrived.headers, headers) }),
    ...(isSealed && { body: body.toString('base64') }),
  };
  return compressBody({ ...webhook, sealed: await sealWebhook(keys, { locationId, webhookId: id }, secrets) });
}

function lengthOf(headers: Record<string, string>): number {
  return Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}

/** The headers that are stored in clear, without our token. */
function inClear(all: Record<string, string>, kept: ReadonlySet<string>, token: string): Record<string, string> {
  const headers: Record<string, string> = {};
  // guard: kept-headers
  for (const name of kept) {
    const value = all[name];
    // guard: no-token-in-headers
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
