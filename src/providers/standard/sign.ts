import { ID, SIGNATURE, TIMESTAMP } from '../../core/domain/standard-webhooks.ts';
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
