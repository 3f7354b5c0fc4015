import type { Provider } from '../../core/provider.ts';
import { connect } from './connect.ts';
import { createOrder } from './create-order.ts';
import { Settings } from './payloads.ts';
import { translateWebhook } from './translate-webhook.ts';

/** Lightspeed Restaurant K-Series, by its Online Ordering ("Order and Pay") API: https://api-docs.lsk.lightspeed.app */
export const lightspeedK: Provider<Settings> = {
  integration: 'lightspeed-k',
  settings: Settings,
  deduplicates: true,
  createOrder,
  translateWebhook,
  connect,
};
