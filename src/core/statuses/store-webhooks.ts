import { constants, zstdCompressSync } from 'node:zlib';
import {
  type ArrivedWebhook,
  BEGINNING,
  type Drop,
  storedHeaders,
  type Translated,
  type TranslatedWebhook,
  type WebhookHeaders,
} from '../domain/webhook.ts';
import { withTimeout } from '../domain/timing.ts';
import { hideIn } from '../locations/hide-secrets.ts';
import { sealWebhook, type SettingsKeys, type WebhookSecrets } from '../locations/settings-key.ts';
import type { Accepted, BatchWebhooks } from './batch-webhooks.ts';
import type { DropQuota } from './drop-quota.ts';
import type { OldToken } from '../locations/webhook-tokens.ts';

/** We compress bodies from this size in bytes on. For smaller ones, Postgres's compression of long rows is as quick. */
const WORTH = 4_096;

/**
 * Compresses a webhook's body for storage, if that makes it smaller. Compression is synchronous because it takes half
 * as long as parsing the JSON, and Node's thread pool would take longer on the same processors.
 */
export function compressBody<Stored extends TranslatedWebhook>(webhook: Stored): Stored {
  const { body } = webhook;
  if (body.length < WORTH) return webhook;
  const zstd = zstdCompressSync(body, {
    params: { [constants.ZSTD_c_compressionLevel]: 1 },
    pledgedSrcSize: body.length,
    // Compressed text is less than half as long, so it mostly fits one chunk.
    chunkSize: body.length >> 1,
  });
  return zstd.length < body.length ? { ...webhook, body: zstd, zstdOf: body.length } : webhook;
}

/**
 * True if a body contains our own token. Searches for the token's longest run of letters and digits, because formats
 * may encode the `_` and `-` between the runs.
 */
export function holdsToken(body: Buffer, token: string): boolean {
  let run = '';
  for (const part of token.split(/[^A-Za-z0-9]/)) if (part.length > run.length) run = part;
  // guard: body-with-token
  return body.includes(run, 'latin1');
}

export type StoreDeps = { keys: SettingsKeys; quota: Pick<DropQuota, 'take'> };

/** Bytes of a webhook's row without headers and body, including index entries. */
const ROW_BYTES = 512;
/** Sealing nearly doubles a text, because it is encoded in base64 twice. */
const SEALED = 2;

const lateQuota = (): Error => new Error('the quota for dropped webhooks could not be read in time');

export type NotStored = { id: null; dropped: Drop };
export const NOT_STORED: Accepted = { outcome: 'dropped', serviceOrderIds: [] };

/**
 * Decides which parts of a webhook are stored. Headers in `storedHeaders` are stored in clear text. For a dropped
 * webhook, its target and its other headers are also stored, sealed. A body that contains our token or a secret of
 * its location is sealed. Large bodies are compressed.
 * @param deadline in milliseconds since the epoch
 * @throws if the quota for dropped webhooks cannot be read in time
 */
export async function storeArrived(
  arrived: ArrivedWebhook,
  provider: WebhookHeaders,
  { events, kitchen, revokedAt, dropped, held }: Translated,
  deadline: number,
  { keys, quota }: StoreDeps,
): Promise<TranslatedWebhook | NotStored> {
  const { id, locationId, integration, receivedAt, target, token } = arrived;
  const isSealed = held !== undefined || holdsToken(arrived.body, token);
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

  const headers = inClear(arrived.headers, storedHeaders(provider), token);
  // No other column has the length of a sealed body.
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
    kitchen,
    revokedAt,
    dropped,
  };
  if (dropped === undefined && !isSealed) return compressBody(webhook);
  const secrets = {
    // A replay verifies a dropped webhook again. For that it needs the target and all headers.
    ...(dropped !== undefined && { target, ...leftOut(arrived.headers, headers) }),
    ...(isSealed && { body: body.toString('base64') }),
    ...(held !== undefined && { hidden: [...held] }),
  };
  return compressBody({ ...webhook, sealed: await sealWebhook(keys, { locationId, webhookId: id }, secrets) });
}

function lengthOf(headers: Record<string, string>): number {
  return Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}

/** The headers that are stored in clear, without our token. */
function inClear(all: Record<string, string>, stored: ReadonlySet<string>, token: string): Record<string, string> {
  const headers: Record<string, string> = {};
  // guard: stored-headers
  for (const name of stored) {
    const value = all[name];
    // guard: no-token-in-headers
    if (value !== undefined) headers[name] = hideIn(value, [token]);
  }
  return headers;
}

/** The received headers that are missing or changed in `headers`. */
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

/**
 * Bytes per location and day for storing dropped webhooks whose sender is not proven. In the 14 days for which webhooks
 * are usually stored, a flood of one location takes less than a gigabyte of disk.
 */
export const UNPROVEN_QUOTA = 64 * 2 ** 20;
/** Bytes per location and day for storing webhooks that were refused because of an old token. */
export const REFUSED_QUOTA = 16 * 2 ** 20;
/** Time for the commit. The sender does not wait for it, because it already has its answer. */
const COMMIT_MS = 5_000;
/** Without the location's settings its provider and its secrets are unknown, so more headers and the body are sealed. */
const NO_PROVIDER = {};

/** @returns the stored webhook's id, or null if its location's quota is used up. @throws if storing takes too long */
export type StoreRefused = (arrived: ArrivedWebhook, old: OldToken) => Promise<string | null>;

/**
 * Stores webhooks that were answered 401 for a token that we once issued. They are stored as dropped, with their whole
 * body, so that an operator can replay them after deciding that they come from the POS.
 * @param deps `quota` and `accept` are not shared with other webhooks: a sender with a revoked token must not use up
 *   the capacity of senders with a valid one
 */
export function refusedStorer(deps: StoreDeps & { accept: BatchWebhooks['accept'] }): StoreRefused {
  return async (arrived, { state, tokenId }) => {
    const deadline = Date.now() + COMMIT_MS;
    const dropped: Drop = {
      reason: `refused: old token, ${state}`,
      cause: { code: 'old_token', state, tokenId },
      unproven: true,
    };
    const translated = { events: [], dropped, held: [] } as const;
    const webhook = await storeArrived(arrived, NO_PROVIDER, translated, deadline, deps);
    if (webhook.id !== null) await deps.accept(webhook, deadline);
    return webhook.id;
  };
}
