import { compactDecrypt, CompactEncrypt, decodeProtectedHeader } from 'jose';
import type { Pool } from 'pg';
import { z } from 'zod';

/** Named 256-bit keys. The first key encrypts, and all keys decrypt, so a key can be replaced without an outage. */
export type SettingsKeys = ReadonlyMap<string, Uint8Array>;

/**
 * Parses `id:base64[,id:base64…]`, newest first.
 * @throws Error that names the wrong entry, never the key itself
 */
export function parseSettingsKeys(text: string): SettingsKeys {
  const keys = new Map<string, Uint8Array>();
  for (const [index, entry] of text.split(',').entries()) {
    const colon = entry.indexOf(':');
    const id = entry.slice(0, Math.max(colon, 0)).trim();
    const key = Buffer.from(entry.slice(colon + 1).trim(), 'base64');
    if (id === '') throw new Error(`key ${index + 1} has no id: write id:base64`);
    if (key.length !== 32) throw new Error(`key "${id}" is ${key.length} bytes of base64, not 32`);
    if (keys.has(id)) throw new Error(`key id "${id}" is used twice`);
    keys.set(id, key);
  }
  return keys;
}

/** The key that .env.example once contained. */
const PUBLISHED = Buffer.from('sixteen times two makes 32 bytes');
/** The fewest different bytes in a key. 32 random bytes have some 30, and practically never fewer than this. */
const DIFFERENT = 16;

/** Whether one of the keys is easy to guess. */
export function hasWeakKey(keys: SettingsKeys): boolean {
  return [...keys.values()].some((key) => new Set(key).size < DIFFERENT || PUBLISHED.equals(key));
}

/** The text belongs to another row: it was moved or copied by hand, or the database was restored in part. */
export class SealedElsewhere extends Error {
  override readonly name = 'SealedElsewhere';
}

/**
 * Encrypts the value's JSON as a JWE (compact, `dir`, A256GCM).
 * @param place the row that the text is for, such as `locations/club-1`. It is in the protected header, which the key
 *   authenticates, so the text cannot be decrypted for another row
 */
export async function seal(keys: SettingsKeys, value: unknown, place: string): Promise<string> {
  const [first] = keys;
  if (first === undefined) throw new Error('no settings key');
  const [kid, key] = first;
  return new CompactEncrypt(new TextEncoder().encode(JSON.stringify(value)))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid, place })
    .encrypt(key);
}

/**
 * Decrypts a text.
 * @throws Error if no key fits; its message names the key's id, never the content
 * @throws SealedElsewhere
 */
export async function unseal(keys: SettingsKeys, jwe: string, place: string): Promise<unknown> {
  const { plaintext, protectedHeader } = await compactDecrypt(
    jwe,
    (header) => {
      const key = keys.get(header.kid ?? '');
      if (key === undefined) throw new Error(`SETTINGS_KEY has no key with id "${header.kid ?? ''}"`);
      return key;
    },
    { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] },
  );
  const { place: sealedFor = 'no row' } = protectedHeader;
  // guard: sealed-for-its-row
  if (sealedFor !== place) throw new SealedElsewhere(`it was encrypted for ${String(sealedFor)}, but is in ${place}`);
  return JSON.parse(new TextDecoder().decode(plaintext));
}

/** Returns the id of the key in a JWE's header, without decrypting the JWE, or '' if there is none. */
export function keyIdOf(jwe: string): string {
  try {
    const { kid } = decodeProtectedHeader(jwe);
    return typeof kid === 'string' ? kid : '';
  } catch {
    return '';
  }
}

/** Counts the stored texts by their key's id (see `keyIdOf`), without decrypting any text. */
export async function keysInUse(pool: Pool): Promise<Map<string, number>> {
  // A text begins with its header in base64url, which names the key. One header of each group is enough.
  const { rows } = await pool.query<{ header: string; count: number }>(
    `SELECT min(header) AS header, count(*)::int AS count
     FROM (SELECT header, CASE WHEN header ~ '^[A-Za-z0-9_-]+$' AND length(header) % 4 <> 1
                               THEN encode(decode(rpad(translate(header, '-_', '+/'), (length(header) + 3) / 4 * 4, '='),
                                                  'base64'), 'escape') END AS json
           FROM (SELECT split_part(sealed, '.', 1) AS header
                 FROM (SELECT settings AS sealed FROM locations
                       UNION ALL SELECT settings FROM former_settings
                       UNION ALL SELECT settings FROM applications
                       UNION ALL SELECT "grant" FROM credentials WHERE "grant" IS NOT NULL
                       UNION ALL SELECT sealed FROM connect_links WHERE sealed IS NOT NULL
                       UNION ALL SELECT sealed FROM signal_tokens WHERE sealed IS NOT NULL
                       UNION ALL SELECT sealed FROM webhooks WHERE sealed IS NOT NULL) AS texts) AS headers) AS decoded
     GROUP BY substring(json FROM '"kid":"([^"]*)"')`,
  );
  const counts = new Map<string, number>();
  for (const { header, count } of rows) {
    const keyId = keyIdOf(`${header}....`);
    counts.set(keyId, count + (counts.get(keyId) ?? 0));
  }
  return counts;
}

/** The encrypted part of a stored webhook. */
export const WebhookSecrets = z.object({
  /** The request target, so that a replay can verify a dropped webhook again. Missing if it was verified on arrival. */
  target: z.string().exactOptional(),
  authorization: z.string().exactOptional(),
  cookie: z.string().exactOptional(),
  /** The other headers that are not stored in clear, as they arrived. */
  headers: z.record(z.string(), z.string()).exactOptional(),
  /** The body in base64, if it contains our token or a secret. */
  body: z.base64().exactOptional(),
  /** The secrets in the body when it arrived. They stay hidden after the location has got other ones. */
  hidden: z.array(z.string()).exactOptional(),
});
export type WebhookSecrets = z.infer<typeof WebhookSecrets>;

type WebhookPlace = { locationId: string; webhookId: string };

export function sealWebhook(keys: SettingsKeys, place: WebhookPlace, secrets: WebhookSecrets): Promise<string> {
  return seal(keys, secrets, placeOfWebhook(place));
}

/** @throws like `unseal` */
export async function unsealWebhook(keys: SettingsKeys, place: WebhookPlace, sealed: string): Promise<WebhookSecrets> {
  return WebhookSecrets.parse(await unseal(keys, sealed, placeOfWebhook(place)));
}

export function placeOfWebhook({ locationId, webhookId }: WebhookPlace): string {
  return `webhooks/${locationId}/${webhookId}`;
}

/** The place that the secrets of a signal token's platform are encrypted for. */
export function placeOfSignalToken(tokenId: string): string {
  return `signal_tokens/${tokenId}`;
}
