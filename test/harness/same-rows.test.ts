import pg from 'pg';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import type { ClientLoad } from '../../tools/bench/load/apply-from-clients.ts';
import { balanceBooks, emptyBooks } from '../../tools/bench/measure/balance-books.ts';
import { forkChild, type Child } from '../../tools/bench/stage/fork-child.ts';
import type { Load } from '../../tools/bench/load/generate-load.ts';
import { prepareBenchDatabase, type Sender } from '../../tools/bench/stage/prepare-bench-database.ts';
import { orderId, seedOrders } from '../../tools/bench/load/seed-orders.ts';
import { MOVES, signRequest, type SignedRequest } from '../../tools/bench/load/sign-request.ts';
import type { Measured } from '../../tools/bench/measure/summarize.ts';

// A comparison is of ways to do the same: all that counts as one has to leave the same rows behind.

const ORDERS = 64;
const LOCATIONS = 3;

const NAMES = ['service', 'one-statement', 'naive', 'bare', 'transactions'] as const;
type Name = (typeof NAMES)[number];

type Place = { databaseUrl: string; senders: Sender[]; child: Child; port: number };
const places = {} as Record<Name, Place>;
let generator: Child;

beforeAll(async () => {
  generator = forkChild('load/generate-load.ts');
  await Promise.all(
    NAMES.map(async (name) => {
      const database = `bench_rows_${name.replace('-', '_')}`;
      const prepared = await prepareBenchDatabase(inject('postgresUrl'), { name: database, locations: LOCATIONS });
      if (name === 'transactions') {
        places[name] = { ...prepared, child: forkChild('load/apply-from-clients.ts'), port: 0 };
        return;
      }
      const child = forkChild('variants/serve-variant.ts', [name, prepared.databaseUrl]);
      const { port } = await child.ask<{ port: number }>(prepared.senders);
      places[name] = { ...prepared, child, port };
    }),
  );
});
afterAll(() =>
  Promise.all([generator, ...Object.values(places).map(({ child }) => child)].map((child) => child.stop())),
);

async function post(port: number, { path, headers, body }: SignedRequest): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body });
  expect(response.status).toBe(200);
  return ((await response.json()) as { outcome: string }).outcome;
}

/** All that a webhook writes, apart from ids and times; of a time, whether there is one. */
async function rowsOf({ databaseUrl }: Place): Promise<Record<string, unknown[]>> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const read = async (sql: string): Promise<unknown[]> =>
    (await client.query<{ row: unknown }>(sql)).rows.map(({ row }) => row);
  const signed = `'{webhook-id,webhook-timestamp,webhook-signature,host}'::text[]`;
  const tables = {
    webhooks: await read(
      `SELECT to_jsonb(d) - '{id,received_at,headers,sealed}'::text[] || jsonb_build_object(
                'headers', headers - ${signed}, 'sealed', sealed IS NOT NULL,
                'names', (SELECT jsonb_agg(name ORDER BY name) FROM jsonb_object_keys(headers) AS name)) AS row
       FROM webhooks d ORDER BY body, outcome`,
    ),
    history: await read(
      `SELECT to_jsonb(e) - '{event_id,webhook_id,recorded_at}'::text[] || jsonb_build_object(
                'webhook', (SELECT d.outcome FROM webhooks d WHERE d.id = e.webhook_id)) AS row
       FROM status_events e ORDER BY service_order_id, event_id`,
    ),
    orders: await read(
      `SELECT to_jsonb(o) - '{created_at,updated_at,ended_at}'::text[] || jsonb_build_object(
                'ended', ended_at IS NOT NULL, 'updated', updated_at > created_at) AS row
       FROM orders o ORDER BY service_order_id`,
    ),
    outbox: await read(
      `SELECT to_jsonb(b) - 'applied_at' AS row FROM outbox b
       ORDER BY service_order_id, sequence`,
    ),
    others: await read(
      `SELECT jsonb_build_array((SELECT count(*) FROM provider_orders), (SELECT count(*) FROM parked_events),
                                (SELECT count(*) FROM placements)) AS row`,
    ),
  };
  await client.end();
  return tables;
}

it('the service, one statement and the naive variant write the same rows for the same webhooks', async () => {
  const told = {} as Record<string, string[]>;
  const rows = {} as Record<string, Record<string, unknown[]>>;
  const play = async (variant: Name): Promise<void> => {
    const { databaseUrl, senders, port } = places[variant];
    await seedOrders(databaseUrl, senders, ORDERS);
    const outcomes: string[] = [];
    for (const request of [
      signRequest(senders, 0, 'received'),
      signRequest(senders, 0, 'received'),
      signRequest(senders, 0, 'ready', { reason: 'sooner than we thought' }),
      signRequest(senders, 0, 'in_progress'),
      signRequest(senders, 0, 'completed', { occurredAt: undefined }),
      signRequest(senders, 0, 'en_route'),
      signRequest(senders, 1, 'cancelled', { reason: 'out of dough' }),
      signRequest(senders, 2, 'fried'),
      signRequest(senders, 3, 'received', { thirdPartyReference: `${orderId(3)}\0`, id: '\0' }),
      signRequest(senders, 4, 'received', { thirdPartyReference: orderId(5) }),
      signRequest(senders, 6, 'received', { thirdPartyReference: 'nobody knows it' }),
    ]) {
      outcomes.push(await post(port, request));
    }
    // And at once, so that the service takes some of them together.
    for (const move of MOVES) {
      const nths = Array.from({ length: 30 }, (_, nth) => 20 + nth);
      outcomes.push(...(await Promise.all(nths.map((nth) => post(port, signRequest(senders, nth, move))))));
    }
    told[variant] = outcomes;
    rows[variant] = await rowsOf(places[variant]);
  };
  await Promise.all((['service', 'one-statement', 'naive'] as const).map(play));
  expect(told['service']?.slice(0, 11).join(' ')).toBe(
    'applied duplicate applied stale applied stale applied ignored dropped unmatched unmatched',
  );
  expect(rows['service']?.['webhooks']?.length).toBe(11 + 150);
  expect(rows['service']?.['outbox']?.length).toBe(4 + 150);
  for (const variant of ['one-statement', 'naive']) {
    expect(told[variant], variant).toEqual(told['service']);
    expect(rows[variant], variant).toEqual(rows['service']);
  }
});

it('all variants that store webhooks have the same rows and balanced books after a load', async () => {
  const requests = MOVES.length * ORDERS;
  const load = { requests, from: 0, plan: 'spread', orders: ORDERS } as const;
  const connections = 8;
  const rows = {} as Record<string, Record<string, unknown[]>>;
  for (const name of NAMES) {
    const { databaseUrl, senders, child, port } = places[name];
    await seedOrders(databaseUrl, senders, ORDERS);
    const before = await emptyBooks(databaseUrl);
    const about = { ...load, senders };
    const { answers, perSecond } = await (name === 'transactions'
      ? child.ask<Measured>({ ...about, databaseUrl, clients: connections } satisfies ClientLoad)
      : generator.ask<Measured>({ ...about, port, connections } satisfies Load));
    expect(answers, name).toEqual({ 200: requests });
    expect(perSecond, name).toBeGreaterThan(0);
    const balanced = balanceBooks(databaseUrl, { ...before, ...load, answers });
    if (name === 'bare') await expect(balanced).rejects.toThrow('do not balance');
    else await balanced;
    rows[name] = await rowsOf(places[name]);
  }
  for (const name of ['one-statement', 'naive', 'transactions']) expect(rows[name], name).toEqual(rows['service']);
});
