import type { Webhook } from '../../src/core/provider.ts';
import { sign } from '../../src/providers/standard/sign.ts';
import { MARKER, statusText } from './hostile-input.ts';
import { SECRET } from './secrets.ts';

/** What the fuzz needs to know of a provider: settings that sign, and webhooks as its POS would sign them. */
export type SignedSamples = {
  settings: unknown;
  webhooks: readonly Webhook[];
  /** The parts of a webhook that its signature covers or is. */
  signedHeaders: readonly string[];
};

export const NOW = new Date('2026-01-31T18:30:00Z');

function standardWebhook(text: string): Webhook {
  const body = Buffer.from(text);
  const timestamp = String(NOW.getTime() / 1000);
  return {
    headers: {
      'content-type': 'application/json',
      'webhook-id': 'm-1',
      'webhook-timestamp': timestamp,
      'webhook-signature': sign([SECRET], 'm-1', timestamp, body),
    },
    body,
    url: '',
    receivedAt: NOW,
    verified: false,
  };
}

/** One entry for every provider of the registry: a test says which is missing. */
export const SIGNED_SAMPLES: ReadonlyMap<string, SignedSamples> = new Map([
  [
    'standard',
    {
      settings: { ordersUrl: 'http://127.0.0.1:9/orders', secret: SECRET },
      webhooks: [
        standardWebhook(statusText({ thirdPartyReference: `${MARKER}-2`, occurredAt: '2026-01-31T18:30:00Z' })),
        standardWebhook(statusText({ id: 'é🍕', status: 'CANCELLED', reason: null })),
        standardWebhook(`{"eventType":"menu.changed","menu":"${MARKER}"}`),
      ],
      signedHeaders: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
    },
  ],
]);
