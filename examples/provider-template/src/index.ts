import type { Provider } from 'expediter-kit';
import { check } from './check.ts';
import { connect } from './connect.ts';
import { createOrder } from './create-order.ts';
import { Settings } from './payloads.ts';
import { translateWebhook, webhookAuth } from './translate-webhook.ts';

/** Acme POS, API version 1. */
const acme: Provider<Settings> = {
  integration: 'acme',
  settings: Settings,
  // "Orders": one ticket per Idempotency-Key, for good.
  deduplicates: true,
  createOrder,
  translateWebhook,
  webhookAuth,
  check,
  connect,
  account: ({ baseUrl, storeId }) => `${baseUrl} ${storeId}`,
};
export default acme;
