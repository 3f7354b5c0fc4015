import { timingSafeEqual } from 'node:crypto';
import { NotAuthentic } from '../../core/domain/errors.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import { ID, SIGNATURE, signatureOf, TIMESTAMP } from '../../core/domain/standard-webhooks.ts';
import type { WebhookAuth } from '../../core/domain/webhook-auth.ts';

export const webhookAuth = {
  kind: 'signature',
  header: SIGNATURE,
  settings: ['secret'],
  optional: true,
  previousSetting: 'previousSecret',
} satisfies WebhookAuth;

// guard: named-headers
/** The signature covers both headers. */
export const webhookHeaders: readonly string[] = [ID, TIMESTAMP];
/** Maximum difference in seconds between a timestamp and our clock, as in the libraries of Standard Webhooks. */
const TOLERANCE_S = 300;

/**
 * Verifies a webhook signed with any of the secrets.
 * @throws NotAuthentic that names the missing or wrong part
 */
export function verify(secrets: readonly string[], { headers, body, receivedAt }: Webhook): void {
  const id = required(headers, ID);
  const timestamp = required(headers, TIMESTAMP);
  const signatures = signaturesIn(required(headers, webhookAuth.header));

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
    const { header } = webhookAuth;
    throw new NotAuthentic(`no signature in ${header} is right`, { cause: { code: 'signature_wrong', header } });
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
export function signaturesIn(header: string): string[] {
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
