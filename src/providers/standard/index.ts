import type { Provider } from '../../core/domain/provider.ts';
import { cancelOrder, createOrder } from './send-order.ts';
import { forge, suggestFix } from './suggest-fix.ts';
import { NewSettings, Settings } from './payloads.ts';
import { readKitchen, readStatus, translateWebhook } from './read-events.ts';
import { ID } from '../../core/domain/standard-webhooks.ts';
import { webhookAuth, webhookHeaders } from './sign.ts';

/** A POS with our own format, or a bridge. It gets orders as JSON and sends `order.status` and `kitchen.status`. */
export const standard: Provider<Settings> = {
  integration: 'standard',
  settings: Settings,
  newSettings: NewSettings,
  deduplicates: true,
  createOrder,
  cancelOrder,
  canCancel: ({ cancelUrl }) => cancelUrl !== undefined,
  deduplicatesCancels: true,
  readStatus,
  translateWebhook,
  readKitchen,
  usesExtraMinutes: true,
  webhookAuth,
  webhookHeaders,
  account: ({ ordersUrl }) => ordersUrl,
  builtForUs: { idHeader: ID, forge, suggestFix },
};
