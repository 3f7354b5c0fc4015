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

  const expected = secrets.map((secret) => Buffer.from(signatureOf(secret, id, timestamp, body)));
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
