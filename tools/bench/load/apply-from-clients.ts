/**
 * Runs the service's statement from plain database clients, one event per commit, without HTTP, in its own process.
 * Each message is a `ClientLoad` and is answered with the result. The process ends when its parent disconnects.
 */
import pg from 'pg';
import { uuidV7 } from '../../../src/core/domain/uuid-v7.ts';
import { applyWebhooks } from '../../../src/core/statuses/apply-webhooks.ts';
import type { TranslatedWebhook } from '../../../src/core/domain/webhook.ts';
import { chooseRequest } from '../measure/choose-request.ts';
import type { Load } from './generate-load.ts';
import { orderId, senderOf } from './seed-orders.ts';
import { summarize, type Measured } from '../measure/summarize.ts';

export type ClientLoad = Omit<Load, 'port' | 'connections'> & { databaseUrl: string; clients: number };

async function applyFromClients(load: ClientLoad): Promise<Measured> {
  const latencies: number[] = [];
  const webhooks = Array.from({ length: load.requests }, (_, g) => translateRequest(load, g));
  const clients = await Promise.all(
    Array.from({ length: load.clients }, async () => {
      const options = '-c synchronous_commit=on -c enable_seqscan=off -c plan_cache_mode=force_generic_plan';
      const client = new pg.Client({ connectionString: load.databaseUrl, options });
      await client.connect();
      // An empty call plans the statement. The service's connections have done that long before a measurement.
      await applyWebhooks(client, []);
      return client;
    }),
  );
  const began = performance.now();
  await Promise.all(
    clients.map(async (client, nth) => {
      for (let g = nth; g < load.requests; g += load.clients) {
        const webhook = webhooks[g];
        if (webhook === undefined) return;
        const sent = performance.now();
        await applyWebhooks(client, [webhook]);
        latencies.push(performance.now() - sent);
      }
    }),
  );
  const milliseconds = performance.now() - began;
  await Promise.all(clients.map((client) => client.end()));
  return summarize(latencies, milliseconds, { 200: latencies.length });
}

/** Translates the g-th request as the service would. */
function translateRequest({ senders, plan, orders, from }: ClientLoad, g: number): TranslatedWebhook {
  const { body, headers } = chooseRequest(senders, plan, orders, from + g);
  const { order } = JSON.parse(body) as { order: { thirdPartyReference: string; id: string; status: 'received' } };
  const { locationId } = senderOf(senders, nthOf(order.thirdPartyReference));
  return {
    id: uuidV7(),
    locationId,
    integration: 'standard',
    receivedAt: new Date(),
    headers: {
      host: '127.0.0.1:8080',
      'content-length': String(Buffer.byteLength(body)),
      ...headers,
    },
    body: Buffer.from(body),
    truncated: false,
    events: [
      {
        serviceOrderId: order.thirdPartyReference,
        providerOrderId: order.id,
        status: order.status,
        nativeStatus: order.status,
        occurredAt: '2026-01-31T18:30:00Z',
      },
    ],
  };
}

function nthOf(id: string): number {
  return Number(id.slice(orderId(0).indexOf('0')));
}

process.on('message', (load: ClientLoad) => {
  void applyFromClients(load).then((measured) => process.send?.(measured));
});
