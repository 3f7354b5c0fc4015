import { compactDecrypt, CompactEncrypt, decodeProtectedHeader } from 'jose';
import type { Pool } from 'pg';
import { z } from 'zod';

/** Named 256-bit keys. The first encrypts, all decrypt, so a key can be replaced without an outage. */
export type SettingsKeys = ReadonlyMap<string, Uint8Array>;

/**
 * Parses `id:base64[,id:base64…]`, newest first.
 * @throws Error that says which entry is wrong, never the key itself
 */
export function parseSettingsKeys(text: string): SettingsKeys {
  const keys = new Map<string, Uint8Array>();
  for (const [index, entry] of text.split(',').entries()) {
    const colon = entry.indexOf(':');
    const id = entry.slice(0, Math.max(colon, 0)).trim();
    const key = Buffer.from(entry.slice(colon + 1).trim(), 'base64');
    if (id === '') throw new Error(`key ${index + 1} has no id: write id:base64`);
    if (key.length !== 32) throw new Error(`key "${id}" is ${key.length} bytes of base64, not 32`);
    if (keys.has(id)) throw new Error(`key id "${id}" is there twice`);
    keys.set(id, key);
  }
  return keys;
}

/** What .env.example once had. */
const PUBLISHED = Buffer.from('sixteen times two makes 32 bytes');
/** Of 32 random bytes some 30 are different, and fewer than these in no key that anybody makes. */
const DIFFERENT = 16;

/** Whether somebody can guess a key. */
export function hasWeakKey(keys: SettingsKeys): boolean {
  return [...keys.values()].some((key) => new Set(key).size < DIFFERENT || PUBLISHED.equals(key));
}

/** The text is of another row: somebody moved or copied it, or restored a part of the database. */
export class SealedElsewhere extends Error {
  override readonly name = 'SealedElsewhere';
}

/**
 * Encrypts the value's JSON as a JWE (compact, `dir`, A256GCM).
 * @param place the row that it is for, such as `locations/club-1`. It stands in the protected header, which the key
 *   authenticates, so the text opens nowhere else
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
 * Decrypts a text. One without a place is of an earlier version, and opens anywhere until `rekey` has bound it.
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
  const { place: sealedFor = place } = protectedHeader;
  // guard: sealed-for-its-row
  if (sealedFor !== place) throw new SealedElsewhere(`it was sealed for ${String(sealedFor)}, and lies in ${place}`);
  return JSON.parse(new TextDecoder().decode(plaintext));
}

/** What a JWE's header says. Both are missing where it is none. */
type SealHeader = { keyId: string; isBound: boolean };

/** Reads a JWE's header, without decrypting it. The id of the key is '' if there is none. */
export function readSealHeader(jwe: string): SealHeader {
  try {
    const { kid, place } = decodeProtectedHeader(jwe);
    return { keyId: typeof kid === 'string' ? kid : '', isBound: place !== undefined };
  } catch {
    return { keyId: '', isBound: false };
  }
}

/** The id of the key in a JWE's header, or '' if there is none. */
export function keyIdOf(jwe: string): string {
  return readSealHeader(jwe).keyId;
}

/** The number of texts sealed with one key of SETTINGS_KEY, for their row or, by an earlier version, for any. */
type SealedTexts = SealHeader & { count: number };

/** Counts the stored texts by key, without decrypting any. */
export async function keysInUse(pool: Pool): Promise<SealedTexts[]> {
  // A text begins with its header in base64url, which names the key and the row: of a key's texts one header is enough.
  const { rows } = await pool.query<{ header: string; count: number }>(
    `SELECT min(header) AS header, count(*)::int AS count
     FROM (SELECT header, CASE WHEN header ~ '^[A-Za-z0-9_-]+$' AND length(header) % 4 <> 1
                               THEN encode(decode(rpad(translate(header, '-_', '+/'), (length(header) + 3) / 4 * 4, '='),
                                                  'base64'), 'escape') END AS json
           FROM (SELECT split_part(sealed, '.', 1) AS header
                 FROM (SELECT settings AS sealed FROM locations
                       UNION ALL SELECT "grant" FROM credentials WHERE "grant" IS NOT NULL
                       UNION ALL SELECT sealed FROM webhooks WHERE sealed IS NOT NULL) AS texts) AS headers) AS decoded
     GROUP BY substring(json FROM '"kid":"([^"]*)"'), json LIKE '%"place":%'`,
  );
  const counts = new Map<string, SealedTexts>();
  for (const { header, count } of rows) {
    const read = readSealHeader(`${header}....`);
    const key = `${read.keyId} ${read.isBound}`;
    counts.set(key, { ...read, count: count + (counts.get(key)?.count ?? 0) });
  }
  return [...counts.values()];
}

/** What is stored of a webhook under SETTINGS_KEY. */
export const WebhookSecrets = z.object({
  /**
   * The request target, with which a replay verifies a dropped webhook again. Empty if it was verified when it came. (A
   * process of a version before 0.3 reads no text without one.)
   */
  target: z.string(),
  authorization: z.string().exactOptional(),
  cookie: z.string().exactOptional(),
  /** The headers beside these that are not stored in clear as they came. */
  headers: z.record(z.string(), z.string()).exactOptional(),
  /** The body in base64, if our own token is in it. */
  body: z.base64().exactOptional(),
});
export type WebhookSecrets = z.infer<typeof WebhookSecrets>;

/** A webhook's row. */
type WebhookPlace = { locationId: string; webhookId: string };

export function sealWebhook(keys: SettingsKeys, place: WebhookPlace, secrets: WebhookSecrets): Promise<string> {
  return seal(keys, secrets, placeOfWebhook(place));
}

/** @throws as `unseal` does */
export async function unsealWebhook(keys: SettingsKeys, place: WebhookPlace, sealed: string): Promise<WebhookSecrets> {
  return WebhookSecrets.parse(await unseal(keys, sealed, placeOfWebhook(place)));
}

export function placeOfWebhook({ locationId, webhookId }: WebhookPlace): string {
  return `webhooks/${locationId}/${webhookId}`;
}
