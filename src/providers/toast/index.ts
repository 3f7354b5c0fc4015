import type { Provider } from '../../core/domain/provider.ts';
import { cancelOrder } from './cancel-order.ts';
import { check, connect } from './connect.ts';
import { WITHIN_S } from './call-toast.ts';
import { createOrder, findOrder } from './create-order.ts';
import { Settings } from './payloads.ts';
import { readStatus } from './read-status.ts';
import { readKitchen, translateWebhook, webhookAuth } from './translate-webhook.ts';
import { checkOrder } from './write-order.ts';

/**
 * Toast, by its orders API (2.9.0) and its webhooks: https://doc.toasttab.com/openapi/orders/overview/,
 * https://doc.toasttab.com/doc/devguide/apiWebhookBasics.html
 */
export const toast: Provider<Settings> = {
  integration: 'toast',
  settings: Settings,
  application: Settings.pick({ baseUrl: true, clientId: true, clientSecret: true }),
  deduplicates: true,
  // Time for a login (at most 10 s), the price, the order, and a search after a refusal. A cancel needs no more.
  attemptWithinS: 10 + 3 * WITHIN_S,
  menuOnly: true,
  createOrder,
  findOrder,
  cancelOrder,
  // Toast refuses a second void ("The order is not already voided"), and cancelOrder then reads that the order is void.
  deduplicatesCancels: true,
  readStatus,
  checkOrder,
  translateWebhook,
  readKitchen,
  webhookAuth,
  check,
  // It asks the orders API for the restaurant's newest order.
  checkProvesOrders: true,
  connect,
  account: ({ baseUrl, restaurantGuid, namingAuthority = '' }) => `${baseUrl} ${restaurantGuid} ${namingAuthority}`,
};
