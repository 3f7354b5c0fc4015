import { Agent, request } from 'node:http';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storeOrderRef } from '../../../src/core/placements/store-order-ref.ts';
import { STATUSES, rankOf, type Status } from '../../../src/core/domain/lifecycle.ts';
import { redriveParked } from '../../../src/core/statuses/redrive-parked.ts';
import { startSystem, statusWebhook, type System } from '../../support/start-system.ts';
import { until } from '../../support/until.ts';

/** Others each time. */
const MULTISETS = 80;
const ORDERS_OF_EACH = 10;
const SEED = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

/** What the POS says: by our id, by its own, or by both; a POS may number one order twice. */
type Said = { status: Status; ours: boolean; pos?: 'a' | 'b' | undefined };
/** Or createOrder's answer, which names POS id a. */
type Step = Said | 'answer';

const said: fc.Arbitrary<Said> = fc
  .record({ status: fc.constantFrom(...STATUSES), ours: fc.boolean(), pos: fc.constantFrom('a', 'b', undefined) })
  .filter(({ ours, pos }) => ours || pos !== undefined);

/** Some events, each perhaps repeated, and the answer somewhere among them. */
const multiset: fc.Arbitrary<Step[]> = fc
  .array(fc.tuple(said, fc.integer({ min: 1, max: 2 })), { minLength: 1, maxLength: 4 })
  .map((events) => ['answer', ...events.flatMap(([event, times]) => Array.from({ length: times }, () => event))]);

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
let system: System;
let urls: string[];

beforeAll(async () => {
  system = await startSystem({ processes: 2, env: { LOG_LEVEL: 'fatal' } });
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  const url = await system.webhookUrl('club-1');
  urls = system.urls.map((base) => url.replace(system.urls[0] ?? '', base));
});
afterAll(async () => {
  agent.destroy();
  await system?.stop();
});

/** Without fetch, which would take most of the time. */
function send(url: string, body: object): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    });
    sent.on('error', reject).end(JSON.stringify(body));
  });
}

async function tell(serviceOrderId: string, steps: readonly Step[], process: number): Promise<void> {
  const posId = (name: 'a' | 'b'): string => `${name}-${serviceOrderId}`;
  for (const [index, step] of steps.entries()) {
    if (step === 'answer') {
      const { awaited } = await storeOrderRef(system.pool, serviceOrderId, 'standard', {
        providerOrderId: posId('a'),
      });
      for (const awaitedId of awaited) await redriveParked(system.pool, awaitedId);
      continue;
    }
    const body = statusWebhook({
      status: step.status,
      ...(step.ours && { serviceOrderId }),
      ...(step.pos && { providerOrderId: posId(step.pos) }),
    });
    expect(await send(urls[(index + process) % urls.length] ?? '', body)).toBe(200);
  }
}

/** What must come of it, whatever the order: the design's words, not the code's. */
function expected(steps: readonly Step[]): { rank: number; posIds: string[] } {
  const events = steps.filter((step) => step !== 'answer');
  const posIds = new Set(['a', ...events.flatMap((event) => (event.ours && event.pos) || [])]);
  const heard = events.filter((event) => event.ours || (event.pos !== undefined && posIds.has(event.pos)));
  return { rank: Math.max(10, ...heard.map((event) => rankOf(event.status))), posIds: [...posIds].sort() };
}

describe('the same events in any order give the same order', () => {
  it(`${MULTISETS} random multisets, each in ${ORDERS_OF_EACH} orders, over two processes (SEED=${SEED})`, async () => {
    const cases = fc.sample(multiset, { numRuns: MULTISETS, seed: SEED }).flatMap((steps, index) => {
      const orders = fc.sample(fc.shuffledSubarray(steps, { minLength: steps.length, maxLength: steps.length }), {
        numRuns: ORDERS_OF_EACH,
        seed: SEED + index,
      });
      return orders.map((order, nth) => ({ serviceOrderId: `any-${index}-${nth}`, order, nth }));
    });
    await system.query(
      `WITH p AS (INSERT INTO placements (service_order_id, location_id, deadline_at, requested_at, next_attempt_at)
                  SELECT id, 'club-1', now() + interval '1 h', now(), 'infinity' FROM unnest($1::text[]) AS id)
       INSERT INTO orders (service_order_id, location_id, fulfillment, sequence)
       SELECT id, 'club-1', 'delivery', 1 FROM unnest($1::text[]) AS id`,
      [cases.map((each) => each.serviceOrderId)],
    );
    const waiting = cases.values();
    await Promise.all(
      Array.from({ length: 48 }, async () => {
        for (const { serviceOrderId, order, nth } of waiting) await tell(serviceOrderId, order, nth);
      }),
    );
    // Events that were parked at the very moment their id was learnt are the sweep's.
    await until(async () => {
      const [left] = await system.query(
        `SELECT (SELECT count(*) FROM parked_events JOIN provider_orders USING (location_id, integration, provider_order_id))
              + (SELECT count(*) FROM outbox) AS n`,
      );
      return Number(left?.['n']) === 0;
    }, 60_000);

    const rows = await system.query(
      `SELECT o.service_order_id AS id, o.rank, o.sequence, p.state,
              (SELECT array_agg(left(provider_order_id, 1) ORDER BY provider_order_id) FROM provider_orders x WHERE x.service_order_id = o.service_order_id) AS "posIds"
       FROM orders o JOIN placements p USING (service_order_id)`,
    );
    const byId = new Map(rows.map((row) => [row['id'], row]));
    const live = Map.groupBy(system.pubsub.published('order-status'), (message) => message.orderingKey);
    for (const { serviceOrderId, order } of cases) {
      const row = byId.get(serviceOrderId);
      const wanted = expected(order);
      const sequences = (live.get(serviceOrderId) ?? []).map((message) => Number(message.attributes['sequence']));
      const what = `${serviceOrderId} (SEED=${SEED}) told ${JSON.stringify(order)}`;
      expect({ rank: row?.['rank'], posIds: row?.['posIds'], state: row?.['state'] }, what).toEqual({
        ...wanted,
        state: 'sent',
      });
      expect(sequences, what).toEqual(Array.from({ length: Number(row?.['sequence']) - 1 }, (_, i) => i + 2));
    }
  }, 120_000);
});
