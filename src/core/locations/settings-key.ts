import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';

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

/** Encrypts the value's JSON as a JWE (compact, `dir`, A256GCM). */
export async function seal(keys: SettingsKeys, value: unknown): Promise<string> {
  const [first] = keys;
  if (first === undefined) throw new Error('no settings key');
  const [kid, key] = first;
  return new CompactEncrypt(new TextEncoder().encode(JSON.stringify(value)))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid })
    .encrypt(key);
}

/** @throws Error if no key fits; its message names the key's id, never the content */
export async function unseal(keys: SettingsKeys, jwe: string): Promise<unknown> {
  const { plaintext } = await compactDecrypt(
    jwe,
    (header) => {
      const key = keys.get(header.kid ?? '');
      if (key === undefined) throw new Error(`SETTINGS_KEY has no key with id "${header.kid ?? ''}"`);
      return key;
    },
    { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] },
  );
  return JSON.parse(new TextDecoder().decode(plaintext));
}

/** The id of the key in a JWE's header, or '' if there is none. */
export function keyIdOf(jwe: string): string {
  try {
    const { kid } = decodeProtectedHeader(jwe);
    return typeof kid === 'string' ? kid : '';
  } catch {
    return '';
  }
}
