import { createHmac, timingSafeEqual } from 'node:crypto';
import { NotAuthentic } from './errors.ts';
import type { Webhook } from './provider.ts';

// Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

export const ID = 'webhook-id';
export const TIMESTAMP = 'webhook-timestamp';
export const SIGNATURE = 'webhook-signature';
const PREFIX = 'whsec_';
/** Maximum difference in seconds between a timestamp and our clock, as in the libraries of Standard Webhooks. */
const TOLERANCE_S = 300;

/** True for a key of 24 to 64 bytes in base64, with or without the prefix `whsec_`. */
export function isSecret(secret: string): boolean {
  const key = keyOf(secret);
  return key.length >= 24 && key.length <= 64 && key.toString('base64') === withoutPrefix(secret);
}

/**
 * Parses the secrets that sign our messages: one, or two while it is changed, with a space between.
 * @throws Error that does not quote them
 */
export function parseSecrets(text: string): readonly string[] {
  const secrets = text.split(/\s+/);
  const wrong = 'is not whsec_ and the base64 of 24 to 64 bytes';
  if (secrets.length > 2) throw new Error('has more than two secrets: write the new and the old one');
  if (!secrets.every(isSecret)) throw new Error(secrets.length === 1 ? wrong : `has a secret that ${wrong}`);
  return secrets;
}

/** @returns the header `webhook-signature`, with one signature per secret, because the receiver may know only one of them */
export function sign(secrets: readonly string[], id: string, timestamp: string, body: string | Buffer): string {
  return secrets.map((secret) => signatureOf(secret, id, timestamp, body)).join(' ');
}

export function signatureOf(secret: string, id: string, timestamp: string, body: string | Buffer): string {
  return `v1,${createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
}

export function keyOf(secret: string): Buffer {
  return Buffer.from(withoutPrefix(secret), 'base64');
}

function withoutPrefix(secret: string): string {
  return secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
}

/**
 * Verifies a webhook signed with any of the secrets.
 * @throws NotAuthentic that names the missing or wrong part
 */
export function verify(
  secrets: readonly string[],
  { headers, body, receivedAt }: Pick<Webhook, 'headers' | 'body' | 'receivedAt'>,
): void {
  const id = required(headers, ID);
  const timestamp = required(headers, TIMESTAMP);
  const signatures = signaturesIn(required(headers, SIGNATURE));

  if (!/^\d{1,12}$/.test(timestamp)) {
    throw new NotAuthentic(`${TIMESTAMP} is not a number of seconds`, {
      cause: { code: 'signature_time_unreadable', header: TIMESTAMP },
    });
  }
  const expected = secrets.map((secret) => Buffer.from(signatureOf(secret, id, timestamp, body)));
  const matches = signatures.some((signature) => {
    const given = Buffer.from(signature);
    return expected.some((right) => right.length === given.length && timingSafeEqual(right, given));
  });
  if (!matches) {
    throw new NotAuthentic(`no signature in ${SIGNATURE} is right`, {
      cause: { code: 'signature_wrong', header: SIGNATURE },
    });
  }
  const skew = Math.floor(receivedAt.getTime() / 1000) - Number(timestamp);
  if (Math.abs(skew) <= TOLERANCE_S) return;
  const code = skew > 0 ? 'signature_too_old' : 'signature_ahead';
  throw new NotAuthentic(
    `the signature is right, but ${TIMESTAMP} is over ${TOLERANCE_S} s ${skew > 0 ? 'old' : 'ahead'}`,
    {
      cause: { code, header: TIMESTAMP, seconds: TOLERANCE_S, isRight: true },
    },
  );
}

/**
 * Lists the signatures of version 1 in a header, as `v1,<base64>`. A sender, a proxy or our own joining of repeated headers
 * may put commas or white space between its parts.
 */
function signaturesIn(header: string): string[] {
  return Array.from(header.matchAll(/(?<![^\s,])v1\s*,\s*([^\s,]+)/g), ([, base64 = '']) => `v1,${base64}`);
}

function required(headers: Webhook['headers'], header: string): string {
  const value = headers[header];
  if (value === undefined || value === '') {
    const svix = header.replace('webhook-', 'svix-');
    const hint = headers[svix] === undefined ? '' : `: send ${svix} under this name too`;
    throw new NotAuthentic(`the header ${header} is missing${hint}`, { cause: { code: 'signature_missing', header } });
  }
  return value;
}
