import type { Provider } from '../../core/domain/provider.ts';
import { check } from './check.ts';
import { connect } from './connect.ts';
import { createOrder } from './create-order.ts';
import { findOrder } from './find-order.ts';
import { Settings } from './payloads.ts';
import { translateWebhook, webhookAuth } from './translate-webhook.ts';

/** HubRise, a hub in front of some hundred POS systems: https://www.hubrise.com/developers */
export const hubrise: Provider<Settings> = {
  integration: 'hubrise',
  settings: Settings,
  deduplicates: false,
  createOrder,
  findOrder,
  translateWebhook,
  webhookAuth,
  check,
  connect,
  // A connection sees only its own private refs.
  account: ({ baseUrl, accessToken }) => `${baseUrl} ${accessToken}`,
};
