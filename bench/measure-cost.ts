import { setTimeout as sleep } from 'node:timers/promises';
import { totalmem } from 'node:os';
import pg from 'pg';
import { startPostgres } from '../test/support/start-postgres.ts';
import { compileService } from './compile-service.ts';
import { forkChild } from './fork-child.ts';
import type { Evening, EveningResult } from './offer-evening.ts';
import { prepareBenchDatabase } from './prepare-bench-database.ts';
import { postgresMs, processorMs } from './processor-ms.ts';
import type { Happened, OutsideWorld } from './serve-outside-world.ts';
import type { Status } from '../src/core/domain/lifecycle.ts';
import { startService, type Service } from './start-service.ts';
import { median, percentile } from './summarize.ts';

export const LIVE_ORDERS = ['key', 'sequence'] as const;
export type LiveOrder = (typeof LIVE_ORDERS)[number];

/** What one process and its Postgres used for a load, with everything on. */
export type Cost = {
  liveOrder: LiveOrder;
  ordersPerSecond: number;
  /** Processor milliseconds per second. */
  nodeMs: number;
  postgresMs: number;
  webhookP99Ms: number;
  /** From the commit of a live message until it was published. */
  liveP50Ms: number;
  liveP99Ms: number;
};

const LOCATIONS = 500;
/** An order has five webhooks, of which one repeats a status, and six live messages. */
const MOVES: readonly Status[] = ['received', 'in_progress', 'ready', 'ready', 'completed'];
/** The first third of each load warms up. */
const THIRDS = 3;
const OPERATOR_TOKEN = 'operator-of-the-benchmark-with-a-token-long-enough';
const SCRAPE_EVERY_MS = 15_000;

/**
 * Measures what orders cost in processor time at several loads, with ordering keys and with sequences, in turn.
 * @param about.seconds the length of each load
 */
export async function measureCosts(
  about: { rounds: number; seconds: number; ordersPerSecond: readonly number[]; liveOrders?: readonly LiveOrder[] },
  say: (line: string) => void,
): Promise<Cost[]> {
  const main = await compileService();
  // Checkpoints and autovacuum run as usual, because their time is a part of the cost.
  const postgres = await startPostgres({
    settings: { fsync: 'on', max_connections: '100', shared_buffers: `${Math.floor(totalmem() / 4 / 2 ** 20)}MB` },
  });
  const world = forkChild('serve-outside-world.ts', [String(LOCATIONS)]);
  const sender = forkChild('offer-evening.ts');
  try {
    const { env, pos } = await world.ask<OutsideWorld>({});
    const { databaseUrl, senders } = await prepareBenchDatabase(postgres.url, {
      name: 'bench_cost',
      locations: LOCATIONS,
      pos,
    });
    await run(
      databaseUrl,
      `UPDATE webhook_tokens SET created_at = created_at - interval '1 day'; UPDATE locations SET updated_at = updated_at - interval '1 day'`,
    );
    const costs: Cost[] = [];
    let first = 0;
    for (let round = 0; round < about.rounds; round += 1) {
      for (const ordersPerSecond of about.ordersPerSecond) {
        for (const liveOrder of about.liveOrders ?? LIVE_ORDERS) {
          const service = await startService(main, {
            ...env,
            DATABASE_URL: databaseUrl,
            LIVE_ORDER: liveOrder,
            OPERATOR_TOKEN,
          });
          const scraping = scrape(service);
          try {
            const { seconds } = about;
            const evening = { ordersPerSecond, webhooksPerSecond: MOVES.length * ordersPerSecond };
            const playing = sender.ask<EveningResult>({
              url: service.url,
              senders,
              seconds,
              ...evening,
              first,
              moves: MOVES,
              early: false,
            } satisfies Evening);
            first += seconds * ordersPerSecond;
            await sleep((seconds * 1_000) / THIRDS);
            await world.ask<Happened>({});
            const [began, node, server] = [performance.now(), processorMs(service.pid), postgresMs(postgres.pid)];
            const { webhooks, p99Ms } = await playing;
            const passed = (performance.now() - began) / 1_000;
            const cost = {
              liveOrder,
              ordersPerSecond,
              nodeMs: (processorMs(service.pid) - node) / passed,
              postgresMs: (postgresMs(postgres.pid) - server) / passed,
              webhookP99Ms: Math.max(...p99Ms.slice(1)),
            };
            await sleep(500);
            const { lagsMs, published } = await world.ask<Happened>({});
            costs.push({ ...cost, liveP50Ms: percentile(lagsMs, 0.5), liveP99Ms: percentile(lagsMs, 0.99) });
            say(`  ${describe(costs.slice(-1))}; webhooks ${JSON.stringify(webhooks)}, ${published} messages`);
          } finally {
            scraping.stop();
            await service.stop();
          }
        }
      }
    }
    return costs;
  } finally {
    await Promise.all([world.stop(), sender.stop()]);
    await postgres.stop();
  }
}

/** Processor hours per million orders. */
export const hoursPerMillion = (costs: readonly Cost[]): number =>
  median(costs.map((each) => ((each.nodeMs + each.postgresMs) / each.ordersPerSecond / 3_600) * 1_000));

function describe(costs: readonly Cost[]): string {
  const of = (what: keyof Omit<Cost, 'liveOrder'>): string => median(costs.map((each) => each[what])).toFixed(1);
  return (
    `${costs[0]?.liveOrder}, ${of('ordersPerSecond')} orders a second: ${hoursPerMillion(costs).toFixed(3)} h a million; ` +
    `a second: Node ${of('nodeMs')} ms, Postgres ${of('postgresMs')} ms; webhooks p99 ${of('webhookP99Ms')} ms; ` +
    `live p50 ${of('liveP50Ms')} ms, p99 ${of('liveP99Ms')} ms`
  );
}

function scrape({ url }: Service): { stop(): void } {
  const timer = setInterval(() => {
    void fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } }).then((answer) =>
      answer.text(),
    );
  }, SCRAPE_EVERY_MS);
  return { stop: () => clearInterval(timer) };
}

async function run(databaseUrl: string, sql: string): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query(sql);
  await client.end();
}
