import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * The prefix of a token for the webhook endpoint, for signals, operators, a connect link or an answer. Secret scanners
 * detect our tokens by it.
 */
export type Prefix = 'exw_' | 'exg_' | 'exo_' | 'exc_' | 'exa_';
/** Random bytes of a token. Their 256 bits cannot be guessed, so a plain SHA-256 is a safe hash. */
const SECRET_BYTES = 32;
const TOKEN = /^(?<prefix>ex[acgow]_)(?<secret>[\w-]{43})(?<checksum>[\w-]{6})$/;
/** A webhook token that was issued before tokens had prefixes. It stays valid. */
const OLD_TOKEN = /^[\w-]{43}$/;

/** Makes a token: a prefix, 32 random bytes and a CRC-32 checksum. Bytes and checksum are in base64url. */
export function makeToken(prefix: Prefix, bytes = randomBytes(SECRET_BYTES)): string {
  const secret = bytes.toString('base64url');
  return prefix + secret + checksumOf(secret);
}

/** Returns false if the text cannot be a token of ours, because it was mistyped, cut off or invented. Saves a query. */
export function mayBeToken(prefix: Prefix, text: string): boolean {
  const parts = TOKEN.exec(text)?.groups;
  if (parts === undefined) return prefix === 'exw_' && OLD_TOKEN.test(text);
  return parts['prefix'] === prefix && parts['checksum'] === checksumOf(parts['secret'] ?? '');
}

/** Returns the SHA-256 of a token in base64, which is stored in place of the token. */
export function digest(token: string): string {
  return hash('sha256', token, 'base64');
}

function checksumOf(secret: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(secret));
  return bytes.toString('base64url');
}
