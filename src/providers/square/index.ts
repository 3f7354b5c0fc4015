import type { Provider } from '../../core/domain/provider.ts';
import { check } from './check.ts';
import { connect } from './connect.ts';
import { createOrder } from './create-order.ts';
import { grantSeed } from './obtain-token.ts';
import { Settings } from './payloads.ts';
import { readStatus } from './read-status.ts';
import { renewConnection } from './renew-connection.ts';
import { translateWebhook, webhookAuth } from './translate-webhook.ts';

/** Square: https://developer.squareup.com/docs/orders-api/what-it-does */
export const square: Provider<Settings> = {
  integration: 'square',
  settings: Settings,
  // Square deduplicates by idempotency keys.
  deduplicates: true,
  // Square does not publish for how long it keeps a key. A day is our guess.
  deduplicatesForS: 24 * 3600,
  createOrder,
  readStatus,
  translateWebhook,
  webhookAuth,
  check,
  connect,
  renewConnection,
  grantSeed,
  needsPublicUrl: ({ notificationUrl }) => notificationUrl === undefined,
  account: ({ baseUrl, locationId }) => `${baseUrl} ${locationId}`,
};
