import type { Provider } from '../../core/domain/provider.ts';
import { check, connect } from './connect.ts';
import { createOrder } from './create-order.ts';
import { grantSeed, tokenOf } from './call-lightspeed.ts';
import { readStatus } from './read-status.ts';
import { Settings } from './payloads.ts';
import { readKitchen, translateWebhook, webhookAuth } from './translate-webhook.ts';
import { checkOrder } from './write-order.ts';

/** Lightspeed Restaurant K-Series, by its Online Ordering ("Order and Pay") API: https://api-docs.lsk.lightspeed.app */
export const lightspeedK: Provider<Settings> = {
  integration: 'lightspeed-k',
  settings: Settings,
  application: Settings.pick({ baseUrl: true, tokenUrl: true, clientId: true, clientSecret: true }),
  deduplicates: true,
  createOrder,
  readStatus,
  checkOrder,
  translateWebhook,
  readKitchen,
  webhookAuth,
  check,
  connect,
  // A refresh token expires after 14 days without use. The access token lasts an hour, so a daily call renews both.
  renewConnection: (context) => context.credentials.accessToken(tokenOf(context)),
  grantSeed,
  account: ({ baseUrl, businessLocationId }) => `${baseUrl} ${businessLocationId}`,
};
