import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { processorMsAt, PROCESSOR } from '../../../src/cli/plan-installation.ts';
import type { Status } from '../../../src/core/domain/lifecycle.ts';
import type { Postgres } from '../../../world/postgres/start-postgres.ts';
import { until } from '../../../world/processes/until.ts';
import { compileService } from '../stage/compile-service.ts';
import { forkChild } from '../stage/fork-child.ts';
import type { Evening, EveningResult } from '../load/offer-evening.ts';
import { prepareBenchDatabase } from '../stage/prepare-bench-database.ts';
import { postgresMs, processorMs } from './processor-ms.ts';
import { seedOrders } from '../load/seed-orders.ts';
import type { Happened, OutsideWorld } from '../stage/serve-outside-world.ts';
import { setLiveStage } from '../stage/set-live-stage.ts';
import { startUsualPostgres } from '../stage/start-bench-postgres.ts';
import { startService, type Service } from '../stage/start-service.ts';
import { median, percentile } from './summarize.ts';

export type CostMeasurement = {
  /** Microseconds of Node and Postgres for a webhook and its live message. */
  messageUs: number;
  /** Processor hours of a million orders at 40 orders a second. */
  millionHours: number;
  costWebhookP99Ms: number;
  /** From the commit of a live message until it was published. */
  costLiveP99Ms: number;
  /** How far the processor time at the worst load is from the plan's, relative to the machine's speed. */
  planDeviation: number;
};

/** Without batches, an order costs more than the plan says. */
const SMALL = 1;
const LOADS = [5, 15, 40, 80, 120];
/** 10,000 clubs with 100 orders a day in their busiest hour. */
const USUAL = 40;
const BATCHED = { perSecond: 2_000, seconds: 10 };
const LOAD_S = 36;

/** Measures what orders cost in processor time. */
export async function measureCost(about: { rounds: number }, say: (line: string) => void): Promise<CostMeasurement> {
  // Checkpoints and autovacuum run as usual, because their time is a part of the cost.
  const postgres = await startUsualPostgres();
  try {
    const messageUs = await measureMessages(postgres, about.rounds, say);
    const costs = await measureCosts(postgres, { ...about, seconds: LOAD_S, ordersPerSecond: [SMALL, ...LOADS] }, say);
    const usual = costs.filter((each) => each.ordersPerSecond === USUAL);
    return {
      messageUs,
      millionHours: hoursPerMillion(usual),
      costWebhookP99Ms: median(usual.map((each) => each.webhookP99Ms)),
      costLiveP99Ms: median(usual.map((each) => each.liveP99Ms)),
      planDeviation: deviationFromPlan(
        costs.filter(({ ordersPerSecond }) => ordersPerSecond > SMALL),
        say,
      ),
    };
  } finally {
    await postgres.stop();
  }
}

/** Measures webhooks about known orders, each with a live message, so many that they come in batches. */
async function measureMessages(postgres: Postgres, rounds: number, say: (line: string) => void): Promise<number> {
  const stage = await setLiveStage(postgres.url);
  const spent: number[] = [];
  const { perSecond, seconds } = BATCHED;
  const webhooks = perSecond * seconds;
  try {
    // The first round warms up.
    for (let round = 0; round <= rounds; round += 1) {
      const service = await stage.startService('service');
      await seedOrders(stage.databaseUrl, stage.senders, webhooks);
      const begin = await stage.sign({ perSecond, webhooks });
      const [node, server] = [processorMs(service.pid), postgresMs(postgres.pid)];
      const { answers } = await begin();
      if (answers['200'] !== webhooks)
        throw new Error(`${perSecond} a second are too many: ${JSON.stringify(answers)}`);
      await until(async () => (await stage.client.query('SELECT FROM outbox LIMIT 1')).rowCount === 0);
      const [nodeUs, postgresUs] = [processorMs(service.pid) - node, postgresMs(postgres.pid) - server].map(
        (each) => (each / webhooks) * 1_000,
      ) as [number, number];
      if (round > 0) spent.push(nodeUs + postgresUs);
      say(`  ${perSecond} webhooks a second: Node ${nodeUs.toFixed(0)} µs, Postgres ${postgresUs.toFixed(0)} µs`);
    }
  } finally {
    await stage.stop();
  }
  return median(spent);
}

/** What one process and its Postgres used for a load, with everything on. */
type Cost = {
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
const OPERATOR_TOKEN = 'L8SVOS0l4ZdJ29WS2C1Jvq4UmDjkVNCa18EdkP00Fp4';
const SCRAPE_EVERY_MS = 15_000;

/**
 * Measures a process at several loads, with orders from their signal to their last webhook.
 * @param about.seconds the length of each load
 */
async function measureCosts(
  postgres: Postgres,
  about: { rounds: number; seconds: number; ordersPerSecond: readonly number[] },
  say: (line: string) => void,
): Promise<Cost[]> {
  const main = await compileService();
  const world = forkChild('stage/serve-outside-world.ts', [String(LOCATIONS)]);
  const sender = forkChild('load/offer-evening.ts');
  try {
    const { env, pos } = await world.ask<OutsideWorld>({});
    const { databaseUrl, senders } = await prepareBenchDatabase(postgres.url, {
      name: 'bench_cost',
      locations: LOCATIONS,
      pos,
    });
    await age(databaseUrl);
    const costs: Cost[] = [];
    let first = 0;
    for (let round = 0; round < about.rounds; round += 1) {
      for (const ordersPerSecond of about.ordersPerSecond) {
        const service = await startService(main, {
          ...env,
          DATABASE_URL: databaseUrl,
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
    return costs;
  } finally {
    await Promise.all([world.stop(), sender.stop()]);
  }
}

/** Processor hours per million orders. */
const hoursPerMillion = (costs: readonly Cost[]): number =>
  median(costs.map((each) => ((each.nodeMs + each.postgresMs) / each.ordersPerSecond / 3_600) * 1_000));

function describe(costs: readonly Cost[]): string {
  const of = (what: keyof Cost): string => median(costs.map((each) => each[what])).toFixed(1);
  return (
    `${of('ordersPerSecond')} orders a second: ${hoursPerMillion(costs).toFixed(3)} h a million; ` +
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

/** Locations and tokens are a day old, as they usually are: new ones are read again and again. */
async function age(databaseUrl: string): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query(
    `UPDATE webhook_tokens SET created_at = created_at - interval '1 day';
     UPDATE locations SET updated_at = updated_at - interval '1 day'`,
  );
  await client.end();
}

/** Compares each load with the plan. The median of all ratios is the speed of this machine. */
function deviationFromPlan(costs: readonly Cost[], say: (line: string) => void): number {
  const loads = [...Map.groupBy(costs, ({ ordersPerSecond }) => ordersPerSecond)];
  const ratios = loads.map(([load, rounds]) => {
    const planned = processorMsAt(PROCESSOR.node, load) + processorMsAt(PROCESSOR.postgres, load);
    return { load, ratio: median(rounds.map((each) => each.nodeMs + each.postgresMs)) / planned };
  });
  const speed = median(ratios.map(({ ratio }) => ratio));
  for (const { load, ratio } of ratios) say(`  ${load} orders a second: ${(ratio / speed).toFixed(2)} of the plan`);
  say(`  this machine takes ${speed.toFixed(2)} of the planned time`);
  return Math.max(...ratios.map(({ ratio }) => Math.abs(ratio / speed - 1)));
}
