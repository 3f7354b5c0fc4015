import type { Provider } from '../../core/domain/provider.ts';
import { authorisation } from './authorisation.ts';
import { cancelOrder } from './cancel-order.ts';
import { check, connect, renewConnection } from './connect.ts';
import { createOrder } from './create-order.ts';
import { grantSeed } from './obtain-token.ts';
import { Application, Settings } from './payloads.ts';
import { readStatus } from './read-status.ts';
import { translateWebhook, webhookAuth } from './translate-webhook.ts';

/** Square: https://developer.squareup.com/docs/orders-api/what-it-does */
export const square: Provider<Settings> = {
  integration: 'square',
  settings: Settings,
  application: Application,
  // Square deduplicates by idempotency keys.
  deduplicates: true,
  // Square does not publish how long it stores a key. A day is our assumption.
  deduplicatesForS: 24 * 3600,
  menuOnly: true,
  createOrder,
  cancelOrder,
  // `cancelOrder` first reads whether the order is cancelled, and "you can reattempt it with the same idempotency key":
  // https://developer.squareup.com/reference/square/orders/update-order
  deduplicatesCancels: true,
  readStatus,
  translateWebhook,
  webhookAuth,
  check,
  connect,
  authorisation,
  renewConnection,
  grantSeed,
  needsPublicUrl: ({ notificationUrl }) => notificationUrl === undefined,
  account: ({ baseUrl, locationId }) => `${baseUrl} ${locationId}`,
};
