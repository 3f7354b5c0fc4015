import type { Provider } from '../../core/provider.ts';
import { connect } from './connect.ts';
import { createOrder } from './create-order.ts';
import { Settings } from './payloads.ts';
import { translateWebhook } from './translate-webhook.ts';

/** Square: https://developer.squareup.com/docs/orders-api/what-it-does */
export const square: Provider<Settings> = {
  integration: 'square',
  settings: Settings,
  // By its idempotency keys.
  deduplicates: true,
  createOrder,
  translateWebhook,
  connect,
  needsPublicUrl: ({ notificationUrl }) => notificationUrl === undefined,
  account: ({ baseUrl, locationId }) => `${baseUrl} ${locationId}`,
};
