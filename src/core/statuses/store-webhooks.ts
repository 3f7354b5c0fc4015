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
import { sealWebhook, type SettingsKeys, type WebhookSecrets } from '../locations/settings-key.ts';
import type { Accepted, BatchWebhooks } from './batch-webhooks.ts';
import type { DropQuota } from './drop-quota.ts';
import type { OldToken } from '../locations/webhook-tokens.ts';

/** Bytes from which it pays. What is smaller, Postgres compresses as quickly where its row would be long. */
const WORTH = 4_096;

/**
 * Compresses the body of a webhook as it will be stored, if that makes it smaller. At once: it takes half as long as to
 * read the JSON in it, and Node's threads take longer, from the same processors.
 */
export function compressBody<Kept extends TranslatedWebhook>(webhook: Kept): Kept {
  const { body } = webhook;
  if (body.length < WORTH) return webhook;
  const zstd = zstdCompressSync(body, {
    params: { [constants.ZSTD_c_compressionLevel]: 1 },
    pledgedSrcSize: body.length,
    // A text is less than half as long then, and mostly in one piece.
    chunkSize: body.length >> 1,
  });
  return zstd.length < body.length ? { ...webhook, body: zstd, zstdOf: body.length } : webhook;
}

/** Percent-encoding is undone as often as this: one URL may stand in another, and that in a third. */
const TIMES = 3;
const BLANK = '[token]';

/** Blanks our own token in a header, percent-encoded or not. Some proxies repeat the URL, and so the token. */
export function blankToken(value: string, token: string): string {
  let kept = value.includes(token) ? value.replaceAll(token, BLANK) : value;
  let text = kept;
  for (let nth = 0; nth < TIMES && text.includes('%'); nth += 1) {
    text = text.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (text.includes(token)) kept = text = text.replaceAll(token, BLANK);
  }
  return kept;
}

/**
 * Whether a body has our own token in it. Its longest run of letters and digits is looked for, which stays as it is
 * however a format encodes the `_` and `-` between them.
 */
export function holdsToken(body: Buffer, token: string): boolean {
  let run = '';
  for (const part of token.split(/[^A-Za-z0-9]/)) if (part.length > run.length) run = part;
  // guard: body-with-token
  return body.includes(run, 'latin1');
}

export type StoreDeps = { keys: SettingsKeys; quota: Pick<DropQuota, 'take'> };

/** Bytes of a webhook's row beside headers and body, with its places in indexes. */
const ROW_BYTES = 512;
/** How much longer a text is when it is sealed: base64 in base64. */
const SEALED = 2;

const lateQuota = (): Error => new Error('the quota of what is dropped was not known in time');

/** A webhook of which nothing is stored. */
export type NotStored = { id: null; dropped: Drop };
/** What becomes of it. */
export const NOT_STORED: Accepted = { outcome: 'dropped', serviceOrderIds: [] };

/**
 * Decides what is stored of a webhook: headers of a list in clear; of a dropped one all others, with the target, sealed;
 * a body that holds our token, sealed; a large one compressed.
 * @param deadline in milliseconds since the epoch
 * @throws if nobody can say in time whether the quota of what is dropped has room
 */
export async function storeArrived(
  arrived: ArrivedWebhook,
  provider: WebhookHeaders,
  { events, busy, dropped }: Translated,
  deadline: number,
  { keys, quota }: StoreDeps,
): Promise<TranslatedWebhook | NotStored> {
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

  const headers = inClear(arrived.headers, storedHeaders(provider), token);
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
  // guard: stored-headers
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

/** Bytes that are kept for a location and day of what was refused for its old tokens. */
export const REFUSED_QUOTA = 16 * 2 ** 20;
/** Time for its commit. Nobody waits: it was answered before. */
const COMMIT_MS = 5_000;
/** Without the location's settings, nothing says which headers are the provider's: they are sealed like the others. */
const NO_PROVIDER = {};

/** @returns the id under which it is kept; null if its location's quota is spent. @throws if it is not kept in time */
export type StoreRefused = (arrived: ArrivedWebhook, old: OldToken) => Promise<string | null>;

/**
 * Keeps webhooks that were answered 401 for a token that was issued once: dropped, whole, so that a replay verifies them
 * once somebody has decided that they are the POS's.
 * @param deps.quota apart from that of the location's other drops, as `accept` is from its other webhooks: who has only
 *   a token that was revoked must take nothing from those who have a valid one
 */
export function refusedStorer(deps: StoreDeps & { accept: BatchWebhooks['accept'] }): StoreRefused {
  return async (arrived, { state, tokenId }) => {
    const deadline = Date.now() + COMMIT_MS;
    const dropped: Drop = {
      reason: `refused: old token, ${state}`,
      cause: { code: 'old_token', state, tokenId },
      unproven: true,
    };
    const webhook = await storeArrived(arrived, NO_PROVIDER, { events: [], dropped }, deadline, deps);
    if (webhook.id !== null) await deps.accept(webhook, deadline);
    return webhook.id;
  };
}
