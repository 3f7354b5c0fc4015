import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Scanners for secrets know our tokens by it. */
const PREFIX = 'exw_';
/** Bytes of a token. 256 random bits are not in any dictionary, so a plain SHA-256 is a safe hash. */
const SECRET_BYTES = 32;
const TOKEN = new RegExp(`^${PREFIX}(?<secret>[\\w-]{43})(?<checksum>[\\w-]{6})$`);
/** From before there was a prefix. They stay valid. */
const OLD_TOKEN = /^[\w-]{43}$/;

/** Makes a webhook token: a prefix, 32 random bytes and their CRC-32, both in base64url. 53 characters. */
export function makeToken(): string {
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  return PREFIX + secret + checksumOf(secret);
}

/** Returns false for what was surely never issued: mistyped, cut off or invented. Nobody need be asked about that. */
export function mayBeToken(text: string): boolean {
  const { secret = '', checksum } = TOKEN.exec(text)?.groups ?? {};
  return checksum === undefined ? OLD_TOKEN.test(text) : checksum === checksumOf(secret);
}

/** The SHA-256 by which a token is known, in base64. */
export function digest(token: string): string {
  return hash('sha256', token, 'base64');
}

function checksumOf(secret: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(secret));
  return bytes.toString('base64url');
}
