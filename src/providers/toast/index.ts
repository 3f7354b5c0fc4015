import type { Provider } from '../../core/domain/provider.ts';
import { check } from './check.ts';
import { connect } from './connect.ts';
import { createOrder } from './create-order.ts';
import { Settings } from './payloads.ts';
import { translateWebhook, webhookAuth } from './translate-webhook.ts';
import { checkOrder } from './write-order.ts';

/**
 * Toast, by its orders API (2.9.0) and its webhooks: https://doc.toasttab.com/openapi/orders/overview/,
 * https://doc.toasttab.com/doc/devguide/apiWebhookBasics.html
 */
export const toast: Provider<Settings> = {
  integration: 'toast',
  settings: Settings,
  deduplicates: true,
  createOrder,
  checkOrder,
  translateWebhook,
  webhookAuth,
  check,
  connect,
  account: ({ baseUrl, restaurantGuid, namingAuthority = '' }) => `${baseUrl} ${restaurantGuid} ${namingAuthority}`,
};
