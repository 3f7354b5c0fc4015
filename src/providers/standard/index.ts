import type { Provider } from '../../core/domain/provider.ts';
import { cancelOrder } from './cancel-order.ts';
import { createOrder } from './create-order.ts';
import { forge } from './forge.ts';
import { mend } from './mend.ts';
import { NewSettings, Settings } from './payloads.ts';
import { readStatus } from './read-status.ts';
import { ID, webhookAuth, webhookHeaders } from './sign.ts';
import { translateWebhook } from './translate-webhook.ts';

/** A POS, or a bridge to one, that speaks our own format: orders out as JSON, `order.status` webhooks back. */
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
  builtForUs: { idHeader: ID, forge, mend },
};
