import pg from 'pg';
import { balanceBooks, emptyBooks } from './balance-books.ts';
import type { ClientLoad } from './apply-from-clients.ts';
import type { Plan } from './choose-request.ts';
import { forkChild, type Child } from './fork-child.ts';
import type { Generated, Load } from './generate-load.ts';
import { imageEnvironment } from './image-environment.ts';
import { balancePeer, emptyPeer } from './peers/balance-peer.ts';
import { isPeer, type Peer } from './peers/peers.ts';
import { prepareBenchDatabase, type Sender } from './prepare-bench-database.ts';
import { postgresMs, processorMs } from './processor-ms.ts';
import { seedHistory, seedOrders } from './seed-orders.ts';
import type { Measured } from './summarize.ts';
import type { Variant } from './variants.ts';

/** One measurement of a round. */
export type Cell = {
  /** `transactions`: the service's statement from plain database clients, one event and one commit at a time. */
  variant: Variant | Peer | 'transactions';
  connections: number;
  plan: Plan;
  orders: number;
  locations: number;
  /** Of the order that is sent whole, about; 0 if only what the service reads is sent. */
  bodyBytes: number;
  /** Events of each order that came before. */
  history: number;
};

export type Measurement = Measured & {
  /** The processor time of each webhook, in microseconds; NaN where it cannot be told. */
  nodeUs: number;
  postgresUs: number;
  senderUs: number;
  /** What each webhook takes on disk, with its places in indexes; NaN without a database. */
  diskBytes: number;
};

export type Contest = {
  /** Takes about `seconds`, checks included. */
  measure(cell: Cell, seconds: number): Promise<Measurement>;
  stop(): Promise<void>;
};

export const ORDERS = 51_200;
export const LOCATIONS = 20;
/** Requests of a cell's first measurement: a second of the slowest variant. */
const FIRST_REQUESTS = 1_024;

type Served = { child: Child; port: number };

type Field = {
  databaseUrl: string;
  senders: Sender[];
  /** Requests so far about its orders, all of which were moved alike. */
  sent: number;
  variants: Map<Variant | Peer, Served>;
};

/**
 * Keeps every variant in a process of its own, all on one Postgres, so that each is warm at its turn. Each number of
 * orders and of locations has its own database.
 */
export async function startContest(postgres: { url: string; pid: number }): Promise<Contest> {
  const generator = forkChild('generate-load.ts');
  const clients = forkChild('apply-from-clients.ts');
  const fields = new Map<string, Field>();
  const lastRates = new Map<string, number>();

  const fieldOf = async ({ orders, locations }: Cell): Promise<Field> => {
    const name = `bench_${orders}_${locations}`;
    const known = fields.get(name);
    if (known !== undefined) return known;
    const prepared = await prepareBenchDatabase(postgres.url, { name, locations });
    const field = { ...prepared, sent: 0, variants: new Map() };
    fields.set(name, field);
    await seedOrders(field.databaseUrl, field.senders, orders);
    return field;
  };

  const servedBy = async (field: Field, variant: Variant | Peer): Promise<Served> => {
    const known = field.variants.get(variant);
    if (known !== undefined) return known;
    const program = isPeer(variant) ? 'peers/serve-peer.ts' : 'serve-variant.ts';
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
      // Equal shares per connection, and no more than there are moves.
      const share = Math.ceil(Math.min(wanted, 4 * orders) / connections);
      const requests = share * connections;
      // Large tables take too long to refill: their moves continue where they ended.
      if (orders <= ORDERS) {
        await seedOrders(databaseUrl, senders, orders);
        field.sent = 0;
      }
      const books = await emptyBooks(databaseUrl);
      if (history > 0) await seedHistory(databaseUrl, orders, history);
      const load = { senders, requests, orders, from: field.sent, plan, bodyBytes };
      const served = variant === 'transactions' ? undefined : await servedBy(field, variant);
      if (isPeer(variant)) await emptyPeer(databaseUrl, variant);
      // Plain clients prepare and connect meanwhile, so what that takes tells nothing.
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
