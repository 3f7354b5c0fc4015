import { createHmac, timingSafeEqual } from 'node:crypto';
import { NotAuthentic } from '../../core/domain/errors.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import type { WebhookAuth } from '../../core/domain/webhook-auth.ts';

// Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

export const webhookAuth = {
  kind: 'signature',
  header: 'webhook-signature',
  settings: ['secret'],
  optional: true,
  previousSetting: 'previousSecret',
} satisfies WebhookAuth;

export const ID = 'webhook-id';
export const TIMESTAMP = 'webhook-timestamp';
// guard: named-headers
/** The signature covers both headers. */
export const webhookHeaders: readonly string[] = [ID, TIMESTAMP];
const PREFIX = 'whsec_';
/** Maximum difference in seconds between a timestamp and our clock, as in the libraries of Standard Webhooks. */
const TOLERANCE_S = 300;

/** True for a key of 24 to 64 bytes in base64, with or without the prefix `whsec_`. */
export function isSecret(secret: string): boolean {
  const key = keyOf(secret);
  return key.length >= 24 && key.length <= 64 && key.toString('base64') === withoutPrefix(secret);
}

/** @returns the header `webhook-signature`, with one signature per secret, because the POS may know only one of them */
export function sign(secrets: readonly string[], id: string, timestamp: string, body: string | Buffer): string {
  return secrets.map((secret) => `v1,${digest(secret, id, timestamp, body)}`).join(' ');
}

/**
 * Verifies a webhook signed with any of the secrets.
 * @throws NotAuthentic that names the missing or wrong part
 */
export function verify(secrets: readonly string[], { headers, body, receivedAt }: Webhook): void {
  const id = required(headers, ID);
  const timestamp = required(headers, TIMESTAMP);
  const signatures = required(headers, webhookAuth.header).split(' ');

  if (!/^\d{1,12}$/.test(timestamp)) {
    throw new NotAuthentic(`${TIMESTAMP} is not a number of seconds`, {
      cause: { code: 'signature_time_unreadable', header: TIMESTAMP },
    });
  }
  const skew = Math.floor(receivedAt.getTime() / 1000) - Number(timestamp);
  if (Math.abs(skew) > TOLERANCE_S) {
    throw new NotAuthentic(`${TIMESTAMP} is over ${TOLERANCE_S} s ${skew > 0 ? 'old' : 'ahead'}`, {
      cause: {
        code: skew > 0 ? 'signature_too_old' : 'signature_ahead',
        header: TIMESTAMP,
        seconds: TOLERANCE_S,
      },
    });
  }

  const expected = secrets.map((secret) => Buffer.from(`v1,${digest(secret, id, timestamp, body)}`));
  const matches = signatures.some((signature) => {
    const given = Buffer.from(signature);
    return expected.some((right) => right.length === given.length && timingSafeEqual(right, given));
  });
  if (!matches) {
    const { header } = webhookAuth;
    throw new NotAuthentic(`no signature in ${header} is right`, { cause: { code: 'signature_wrong', header } });
  }
}

function required(headers: Webhook['headers'], header: string): string {
  const value = headers[header];
  if (value === undefined || value === '') {
    throw new NotAuthentic(`the header ${header} is missing`, { cause: { code: 'signature_missing', header } });
  }
  return value;
}

function digest(secret: string, id: string, timestamp: string, body: string | Buffer): string {
  return createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest('base64');
}

export function keyOf(secret: string): Buffer {
  return Buffer.from(withoutPrefix(secret), 'base64');
}

function withoutPrefix(secret: string): string {
  return secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
}
