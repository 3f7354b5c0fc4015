import type { Provider } from 'expediter-kit';
import { cancelOrder } from './cancel-order.ts';
import { check } from './check.ts';
import { connect } from './connect.ts';
import { createOrder } from './create-order.ts';
import { Settings } from './payloads.ts';
import { translateWebhook, webhookAuth } from './translate-webhook.ts';

/** Acme POS, API version 1. */
const acme: Provider<Settings> = {
  integration: 'acme',
  settings: Settings,
  // "Orders": Acme makes one ticket per Idempotency-Key, without a time limit.
  deduplicates: true,
  createOrder,
  cancelOrder,
  // "Voids": a repeated void gets the same answer.
  deduplicatesCancels: true,
  translateWebhook,
  webhookAuth,
  check,
  connect,
  account: ({ baseUrl, storeId }) => `${baseUrl} ${storeId}`,
};
export default acme;
