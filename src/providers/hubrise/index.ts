import type { Provider } from '../../core/domain/provider.ts';
import { cancelOrder } from './cancel-order.ts';
import { authorisation, check, connect } from './connect.ts';
import { createOrder } from './create-order.ts';
import { findOrder, readStatus } from './read-status.ts';
import { Application, Settings } from './payloads.ts';
import { readKitchen, translateWebhook, webhookAuth } from './translate-webhook.ts';
import { writeOrder } from './write-order.ts';

/** HubRise, a hub in front of some hundred POS systems: https://www.hubrise.com/developers */
export const hubrise: Provider<Settings> = {
  integration: 'hubrise',
  settings: Settings,
  application: Application,
  deduplicates: false,
  createOrder,
  // Any item map and any time will do, because they do not change which orders writeOrder refuses.
  checkOrder: (order) => void writeOrder(order, {}, new Date(order.placedAt)),
  findOrder,
  cancelOrder,
  // Setting a status again changes nothing.
  deduplicatesCancels: true,
  readStatus,
  translateWebhook,
  readKitchen,
  webhookAuth,
  check,
  connect,
  authorisation,
  // The account has the token: a connection sees only its own private refs, so another could not find our orders.
  account: ({ baseUrl, accessToken = '' }) => `${baseUrl} ${accessToken}`,
};
