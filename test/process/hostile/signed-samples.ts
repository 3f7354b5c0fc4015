import { KitchenOrder } from '../../../src/core/domain/order.ts';
import type { Provider, Registry, Webhook } from '../../../src/core/domain/provider.ts';
import { boundedFetch } from '../../../src/core/egress/bounded-fetch.ts';
import { sign } from '../../../src/core/domain/standard-webhooks.ts';
import { inMemoryCredentials } from '../../providers/in-memory-credentials.ts';
import { SIMULATORS, type PosName } from '../../simulators/index.ts';
import { sampleOrder } from '../../support/sample-order.ts';
import { MARKER, SECRET, statusText } from './hostile-input.ts';

/** What the fuzz needs to know of a provider: settings that sign, and webhooks as its POS would sign them. */
export type SignedSamples = {
  settings: unknown;
  webhooks: readonly Webhook[];
  /** The parts of a webhook that its signature covers or is; none where the vendor signs nothing. */
  signedHeaders: readonly string[];
};

export const NOW = new Date('2026-01-31T18:30:00Z');
const URL_CALLED = 'https://expediter.example.com/webhook/pos/club-1?token=t-1';

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

const STANDARD: SignedSamples = {
  settings: { ordersUrl: 'http://127.0.0.1:9/orders', secret: SECRET },
  webhooks: [
    standardWebhook(statusText({ thirdPartyReference: `${MARKER}-2`, occurredAt: '2026-01-31T18:30:00Z' })),
    standardWebhook(statusText({ id: 'é🍕', status: 'CANCELLED', reason: null })),
    standardWebhook(`{"eventType":"menu.changed","menu":"${MARKER}"}`),
  ],
  signedHeaders: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
};

/** The reports about one order, from the first to the last, as the vendor's simulator sends them. */
async function simulated(name: PosName, provider: Provider): Promise<SignedSamples> {
  const pos = await SIMULATORS[name]();
  try {
    const settings = provider.settings.parse(pos.settings);
    const credentials = inMemoryCredentials(() => NOW);
    const order = KitchenOrder.parse(sampleOrder({ type: 'delivery', callOutCode: 'K472' }));
    const signal = AbortSignal.timeout(10_000);
    await provider.createOrder(order, { settings, now: NOW, signal, credentials, fetch: boundedFetch() });
    const [ticket] = pos.tickets;
    if (ticket === undefined) throw new Error(`${name} took no order: ${pos.refusals.join('; ')}`);
    const { kind, header = '' } = provider.webhookAuth ?? {};
    return {
      settings,
      webhooks: pos.lifeOf('delivery').map((status) => {
        const { headers, body } = pos.sign(URL_CALLED, ticket, status);
        return { headers, body, url: URL_CALLED, receivedAt: NOW, verified: false };
      }),
      signedHeaders: kind === 'signature' ? [header] : [],
    };
  } finally {
    await pos.stop();
  }
}

/** One entry for every provider of the registry: a test says which is missing. */
export async function signSamples(registry: Registry): Promise<ReadonlyMap<string, SignedSamples>> {
  const samples = new Map<string, SignedSamples>([['standard', STANDARD]]);
  for (const [name, provider] of registry) {
    if (name !== 'standard' && name in SIMULATORS) samples.set(name, await simulated(name as PosName, provider));
  }
  return samples;
}
