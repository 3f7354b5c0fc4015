import { balanceBooks, emptyBooks } from './balance-books.ts';
import type { ClientLoad } from './apply-from-clients.ts';
import type { Plan } from './choose-request.ts';
import { forkChild, type Child } from './fork-child.ts';
import type { Load } from './generate-load.ts';
import { imageEnvironment } from './image-environment.ts';
import { prepareBenchDatabase, type Sender } from './prepare-bench-database.ts';
import { seedOrders } from './seed-orders.ts';
import type { Measured } from './summarize.ts';
import type { Variant } from './variants.ts';

/** One measurement of a round. */
export type Cell = {
  /** `transactions`: the service's statement from plain database clients, one event and one commit at a time. */
  variant: Variant | 'transactions';
  connections: number;
  plan: Plan;
  orders: number;
};

export type Contest = {
  /** Takes about `seconds`, checks included. */
  measure(cell: Cell, seconds: number): Promise<Measured>;
  stop(): Promise<void>;
};

export const ORDERS = 51_200;
const LOCATIONS = 20;
/** Requests of a cell's first measurement: a second of the slowest variant. */
const FIRST_REQUESTS = 1_024;

type Field = {
  databaseUrl: string;
  senders: Sender[];
  /** Requests so far about its orders, all of which were moved alike. */
  sent: number;
  variants: Map<Variant, { child: Child; port: number }>;
};

/**
 * Keeps every variant in a process of its own, all on one Postgres, so that each is warm at its turn. Each size of the
 * orders table has its own database.
 */
export async function startContest(serverUrl: string): Promise<Contest> {
  const generator = forkChild('generate-load.ts');
  const clients = forkChild('apply-from-clients.ts');
  const fields = new Map<number, Field>();
  const lastRates = new Map<string, number>();

  const fieldOf = async (orders: number): Promise<Field> => {
    const known = fields.get(orders);
    if (known !== undefined) return known;
    const prepared = await prepareBenchDatabase(serverUrl, { name: `bench_${orders}`, locations: LOCATIONS });
    const field = { ...prepared, sent: 0, variants: new Map() };
    fields.set(orders, field);
    await seedOrders(field.databaseUrl, field.senders, orders);
    return field;
  };

  const portOf = async (field: Field, variant: Variant): Promise<number> => {
    const known = field.variants.get(variant);
    if (known !== undefined) return known.port;
    const child = forkChild('serve-variant.ts', [variant, field.databaseUrl], imageEnvironment());
    const { port } = await child.ask<{ port: number }>(field.senders);
    field.variants.set(variant, { child, port });
    return port;
  };

  return {
    async measure({ variant, connections, plan, orders }, seconds) {
      const field = await fieldOf(orders);
      const name = `${variant} ${connections} ${plan} ${orders}`;
      const rate = lastRates.get(name);
      const wanted = rate === undefined ? FIRST_REQUESTS : rate * seconds;
      // Equal shares per connection, and no more than there are moves.
      const share = Math.ceil(Math.min(wanted, 4 * orders) / connections);
      const requests = share * connections;
      // Large tables take too long to refill: their moves continue where they ended.
      if (orders === ORDERS) {
        await seedOrders(field.databaseUrl, field.senders, orders);
        field.sent = 0;
      }
      const before = await emptyBooks(field.databaseUrl);
      const load = { senders: field.senders, requests, orders, from: field.sent, plan };
      let measured: Measured;
      if (variant === 'transactions') {
        const about: ClientLoad = { ...load, databaseUrl: field.databaseUrl, clients: connections };
        measured = await clients.ask<Measured>(about);
      } else {
        const port = await portOf(field, variant);
        measured = await generator.ask<Measured>({ ...load, port, connections } satisfies Load);
      }
      const { answers } = measured;
      if (variant === 'bare') {
        if (answers['200'] !== requests) throw new Error(`bare Fastify refused some: ${JSON.stringify(answers)}`);
      } else {
        await balanceBooks(field.databaseUrl, { ...before, from: field.sent, requests, answers, plan });
        field.sent += requests;
      }
      lastRates.set(name, measured.perSecond);
      return measured;
    },
    async stop() {
      const served = [...fields.values()].flatMap((field) => [...field.variants.values()]);
      await Promise.all([generator, clients, ...served.map(({ child }) => child)].map((child) => child.stop()));
    },
  };
}
