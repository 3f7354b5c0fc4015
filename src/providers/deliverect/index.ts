import type { Provider } from '../../core/domain/provider.ts';
import { cancelOrder, createOrder } from './send-order.ts';
import { check } from './obtain-token.ts';
import { connect } from './connect.ts';
import { Settings } from './payloads.ts';
import { readKitchen, translateWebhook, webhookAuth } from './translate-webhook.ts';
import { writeOrder } from './write-order.ts';

/** Deliverect's Channel API, a hub in front of many POS systems. Operators read docs/providers/deliverect.md. */
export const deliverect: Provider<Settings> = {
  integration: 'deliverect',
  settings: Settings,
  application: Settings.pick({ baseUrl: true, clientId: true, clientSecret: true }),
  // Deliverect refuses a repeat as a duplicate: https://help.deliverect.com/en/articles/7979014-order-statuses
  deduplicates: true,
  // From 48 h after the pickup, Deliverect may take the same channelOrderId for a new order.
  deduplicatesForS: 48 * 3600,
  createOrder,
  // Any settings and any time will do, because they do not change which orders writeOrder refuses.
  checkOrder: (order) =>
    void writeOrder(order, { itemMap: {}, deliveredBy: 'restaurant', channelName: '' }, new Date(order.placedAt)),
  // Deliverect documents no deduplication of cancels, so a cancel without an answer is not repeated.
  cancelOrder,
  translateWebhook,
  readKitchen,
  usesExtraMinutes: true,
  webhookAuth,
  check,
  connect,
  account: ({ baseUrl, channelName, channelLinkId }) => `${baseUrl} ${channelName} ${channelLinkId}`,
};
