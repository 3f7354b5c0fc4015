import pg from 'pg';
import { balanceBooks, emptyBooks } from '../measure/balance-books.ts';
import type { ClientLoad } from '../load/apply-from-clients.ts';
import type { Plan } from '../measure/choose-request.ts';
import { forkChild, type Child } from '../stage/fork-child.ts';
import type { Generated, Load } from '../load/generate-load.ts';
import { imageEnvironment } from '../stage/image-environment.ts';
import { balancePeer, emptyPeer } from '../peers/balance-peer.ts';
import { isPeer, type Peer } from '../peers/peers.ts';
import { prepareBenchDatabase, type BenchDatabase, type Sender } from '../stage/prepare-bench-database.ts';
import { postgresMs, processorMs } from '../measure/processor-ms.ts';
import { seedHistory, seedOrders } from '../load/seed-orders.ts';
import type { Measured } from '../measure/summarize.ts';
import type { Variant } from './variants.ts';

/** One measurement of a round. */
export type Cell = {
  /** `transactions`: plain database clients run the service's statement, one event per commit. */
  variant: Variant | Peer | 'transactions';
  connections: number;
  plan: Plan;
  orders: number;
  locations: number;
  /** The approximate size of a whole order in the body; 0 sends only the fields that the service reads. */
  bodyBytes: number;
  /** The number of earlier events of each order. */
  history: number;
  /** In the database with years of past orders. */
  years: boolean;
};

export type Measurement = Measured & {
  /** The processor time per webhook, in microseconds; NaN if it cannot be measured. */
  nodeUs: number;
  postgresUs: number;
  senderUs: number;
  /** The bytes on disk per webhook, with its index entries; NaN without a database. */
  diskBytes: number;
};

export type Contest = {
  /** Measures a cell for about `seconds`, with all checks. */
  measure(cell: Cell, seconds: number): Promise<Measurement>;
  stop(): Promise<void>;
};

export const ORDERS = 51_200;
export const LOCATIONS = 20;
/** The number of requests in the first measurement of a cell. The slowest variant needs a second for them. */
const FIRST_REQUESTS = 1_024;

type Served = { child: Child; port: number };

type Field = {
  databaseUrl: string;
  senders: Sender[];
  /** The number of requests so far on its orders, which all have moved equally often. */
  sent: number;
  variants: Map<Variant | Peer, Served>;
};

/**
 * Runs every variant in its own process, all on one Postgres, so that each is already warm at its turn. There is a
 * database for each number of orders and locations.
 * @param aged the database with years of past orders, if a cell needs it
 */
export async function startContest(postgres: { url: string; pid: number }, aged?: BenchDatabase): Promise<Contest> {
  const generator = forkChild('load/generate-load.ts');
  const clients = forkChild('load/apply-from-clients.ts');
  const fields = new Map<string, Field>();
  const lastRates = new Map<string, number>();

  const fieldOf = async ({ orders, locations, years }: Cell): Promise<Field> => {
    const name = years ? 'bench_years' : `bench_${orders}_${locations}`;
    const known = fields.get(name);
    if (known !== undefined) return known;
    const prepared = (years && aged) || (await prepareBenchDatabase(postgres.url, { name, locations }));
    const field = { ...prepared, sent: 0, variants: new Map() };
    fields.set(name, field);
    await seedOrders(field.databaseUrl, field.senders, orders);
    return field;
  };

  const servedBy = async (field: Field, variant: Variant | Peer): Promise<Served> => {
    const known = field.variants.get(variant);
    if (known !== undefined) return known;
    const program = isPeer(variant) ? 'peers/serve-peer.ts' : 'variants/serve-variant.ts';
    const child = forkChild(program, [variant, field.databaseUrl], imageEnvironment());
    const served = { child, ...(await child.ask<{ port: number }>(field.senders)) };
    field.variants.set(variant, served);
    return served;
  };

  return {
    async measure(cell, seconds) {
      const { variant, connections, plan, orders, bodyBytes, history } = cell;
      const field = await fieldOf(cell);
      const { databaseUrl, senders } = field;
      const name = JSON.stringify(cell);
      const rate = lastRates.get(name);
      const wanted = rate === undefined ? FIRST_REQUESTS : rate * seconds;
      // All connections send the same number of requests, and no more than the orders have moves.
      const share = Math.ceil(Math.min(wanted, 4 * orders) / connections);
      const requests = share * connections;
      // Large tables take too long to refill, so the moves of their orders continue where the last load ended.
      if (orders <= ORDERS) {
        await seedOrders(databaseUrl, senders, orders);
        field.sent = 0;
      }
      const books = await emptyBooks(databaseUrl);
      if (history > 0) await seedHistory(databaseUrl, orders, history);
      const load = { senders, requests, orders, from: field.sent, plan, bodyBytes };
      const served = variant === 'transactions' ? undefined : await servedBy(field, variant);
      if (isPeer(variant)) await emptyPeer(databaseUrl, variant);
      // Plain clients also connect and prepare during this time, so their processor time means nothing.
      const spent = (): { nodeMs: number; postgresMs: number } => ({
        nodeMs: served === undefined ? Number.NaN : processorMs(served.child.pid),
        postgresMs: served === undefined ? Number.NaN : postgresMs(postgres.pid),
      });
      const before = spent();
      const measured =
        served === undefined
          ? await clients.ask<Measured>({ ...load, databaseUrl, clients: connections } satisfies ClientLoad)
          : await generator.ask<Generated>({ ...load, port: served.port, connections } satisfies Load);
      const after = spent();
      const { answers } = measured;
      if (variant === 'bare') {
        if (answers['200'] !== requests) throw new Error(`bare Fastify refused some: ${JSON.stringify(answers)}`);
      } else if (isPeer(variant)) {
        await balancePeer(databaseUrl, variant, { requests, answers });
      } else {
        const about = { ...books, history: history * orders, from: field.sent, requests, answers, plan };
        await balanceBooks(databaseUrl, about);
        field.sent += requests;
      }
      lastRates.set(name, measured.perSecond);
      const eachUs = (name: keyof typeof after): number => ((after[name] - before[name]) * 1_000) / requests;
      return {
        senderUs: Number.NaN,
        ...measured,
        nodeUs: eachUs('nodeMs'),
        postgresUs: eachUs('postgresMs'),
        diskBytes: variant === 'bare' || isPeer(variant) ? Number.NaN : (await sizeOfWebhooks(databaseUrl)) / requests,
      };
    },
    async stop() {
      const served = [...fields.values()].flatMap((field) => [...field.variants.values()]);
      await Promise.all([generator, clients, ...served.map(({ child }) => child)].map((child) => child.stop()));
    },
  };
}

async function sizeOfWebhooks(databaseUrl: string): Promise<number> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const { rows } = await client.query<{ bytes: number }>(
    `SELECT sum(pg_total_relation_size(relid))::float8 AS bytes FROM pg_partition_tree('webhooks')`,
  );
  await client.end();
  return rows[0]?.bytes ?? Number.NaN;
}
