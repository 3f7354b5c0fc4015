import type { Provider } from '../../core/domain/provider.ts';
import { cancelOrder, createOrder } from './send-order.ts';
import { forge, suggestFix } from './suggest-fix.ts';
import { NewSettings, Settings } from './payloads.ts';
import { readStatus, translateWebhook } from './read-events.ts';
import { ID, webhookAuth, webhookHeaders } from './sign.ts';

/** A POS with our own format, or a bridge to a POS. It gets orders as JSON and sends `order.status` webhooks. */
export const standard: Provider<Settings> = {
  integration: 'standard',
  settings: Settings,
  newSettings: NewSettings,
  deduplicates: true,
  createOrder,
  cancelOrder,
  deduplicatesCancels: true,
  readStatus,
  translateWebhook,
  webhookAuth,
  webhookHeaders,
  account: ({ ordersUrl }) => ordersUrl,
  builtForUs: { idHeader: ID, forge, suggestFix },
};
