import { setTimeout as sleep } from 'node:timers/promises';
import { PubSub } from '@google-cloud/pubsub';
import pg from 'pg';
import { until } from '../../../world/processes/until.ts';
import { compileService } from '../stage/compile-service.ts';
import { forkChild, type Child } from '../stage/fork-child.ts';
import type { Load } from '../load/generate-load.ts';
import type { Offered, Steady } from '../load/offer-steadily.ts';
import { prepareBenchDatabase, type Sender } from '../stage/prepare-bench-database.ts';
import { seedOrders } from '../load/seed-orders.ts';
import type { Published } from '../stage/serve-pubsub.ts';
import { startService, type Service } from '../stage/start-service.ts';
import { median, type Measured } from './summarize.ts';

export type SpillMeasurement = {
  /** Webhooks per second that are answered 200 while Postgres is down. */
  spilledPerSecond: number;
  /** Webhooks per second that are applied from the spill while live webhooks arrive. */
  spillDrainedPerSecond: number;
  /** The p99 of live webhooks while the spill is drained, against the p99 without a drain. */
  spillLiveP99: number;
  /** Throughput with the spill configured against without it, while Postgres is available. */
  spillOnVsOff: number;
};

const PROJECT = 'bench';
const TOPIC = 'order-status';
const SPILL = { SPILL_TOPIC: 'spill' };
/** So many that none sends more than its share, because refusals are not the subject. */
const LOCATIONS = 100;
const CONNECTIONS = 64;
/** Webhooks of one outage. */
const SPILLED = 400 * CONNECTIONS;
const LIVE_PER_SECOND = 200;
const LIVE_S = 8;
const LIVE = LIVE_PER_SECOND * LIVE_S;
/** Webhooks of each measurement with the spill on or off. */
const COMPARED = 320 * CONNECTIONS;
const WARM_UP_MS = 1_500;
const AWAY_WITHIN_MS = 10_000;
const DRAINED_WITHIN_MS = 120_000;
/** The pause is long, because each look counts rows, which takes Postgres some time. */
const LOOK_EVERY_MS = 500;

type Stage = { databaseUrl: string; senders: Sender[]; server: pg.Client; client: pg.Client; generator: Child };

/** Measures one process of the service, with its own Pub/Sub, during and after outages of Postgres. */
export async function measureSpill(
  postgres: { url: string },
  about: { rounds: number },
  say: (line: string) => void,
): Promise<SpillMeasurement> {
  const main = await compileService();
  const pubsub = forkChild('stage/serve-pubsub.ts', [PROJECT, TOPIC]);
  const generator = forkChild('load/generate-load.ts');
  const { databaseUrl, senders } = await prepareBenchDatabase(postgres.url, {
    name: 'bench_spill',
    locations: LOCATIONS,
  });
  const [server, client] = [new pg.Client(postgres.url), new pg.Client(databaseUrl)];
  await Promise.all([server.connect(), client.connect()]);
  const stage = { databaseUrl, senders, server, client, generator };
  try {
    const { host } = await pubsub.ask<Published>({});
    await openSpill(host);
    const env = {
      DATABASE_URL: databaseUrl,
      GOOGLE_CLOUD_PROJECT: PROJECT,
      STATUS_TOPIC: TOPIC,
      PUBSUB_EMULATOR_HOST: host,
    };
    const on = await startService(main, { ...env, ...SPILL });
    try {
      const rounds: Omit<SpillMeasurement, 'spillOnVsOff'>[] = [];
      for (let nth = 0; nth <= about.rounds; nth += 1) rounds.push(await playOutage(stage, on, say));
      // The first round warms up.
      const counted = rounds.slice(1);
      const off = await startService(main, env);
      try {
        const spillOnVsOff = await compare(stage, { on, off }, about.rounds, say);
        return {
          spilledPerSecond: median(counted.map((round) => round.spilledPerSecond)),
          spillDrainedPerSecond: median(counted.map((round) => round.spillDrainedPerSecond)),
          spillLiveP99: median(counted.map((round) => round.spillLiveP99)),
          spillOnVsOff,
        };
      } finally {
        await off.stop();
      }
    } finally {
      await on.stop();
    }
  } finally {
    await Promise.all([server.end(), client.end(), pubsub.stop(), generator.stop()]);
  }
}

async function openSpill(host: string): Promise<void> {
  const client = new PubSub({ projectId: PROJECT, apiEndpoint: host, emulatorMode: true });
  const [topic] = await client.createTopic(SPILL.SPILL_TOPIC);
  await topic.createSubscription('spill-drain');
  await client.close();
}

async function playOutage(
  stage: Stage,
  { url }: Service,
  say: (line: string) => void,
): Promise<Omit<SpillMeasurement, 'spillOnVsOff'>> {
  await seedOrders(stage.databaseUrl, stage.senders, SPILLED + 2 * LIVE);
  const quiet = await offerLive(stage, url, SPILLED);
  const alone = await quiet.begin();
  await quiet.stop();
  const { begin, stop } = await offerLive(stage, url, SPILLED + LIVE);

  await allowConnections(stage, false);
  await until(async () => (await healthOf(url)) === 'down', AWAY_WITHIN_MS);
  const spilled = await generate(stage, url, SPILLED);
  await allowConnections(stage, true);
  await until(async () => (await healthOf(url)) === 'up', AWAY_WITHIN_MS);

  const began = performance.now();
  // After an outage, connections are opened and statements are planned. That costs the same with or without a drain, so
  // it is not measured.
  const live = sleep(WARM_UP_MS).then(begin);
  const accepted = spilled.answers['200'] ?? 0;
  // Only spilled webhooks have `first_received_at`. A webhook that was answered 500 may have been spilled anyway.
  for (let drained = 0; drained < accepted;) {
    if (performance.now() - began > DRAINED_WITHIN_MS) throw new Error(`only ${drained} webhooks were drained`);
    await sleep(LOOK_EVERY_MS);
    const { rows } = await stage.client.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM webhooks WHERE first_received_at IS NOT NULL',
    );
    drained = rows[0]?.count ?? 0;
  }
  const seconds = (performance.now() - began) / 1_000;
  const beside = await live;
  await stop();
  const round = {
    spilledPerSecond: (spilled.perSecond * accepted) / SPILLED,
    spillDrainedPerSecond: accepted / seconds,
    spillLiveP99: beside.p99Ms / alone.p99Ms,
  };
  say(
    `  spilled ${round.spilledPerSecond.toFixed(0)} a second, p99 ${spilled.p99Ms.toFixed(0)} ms, ` +
      `${JSON.stringify(spilled.answers)}; drained ${round.spillDrainedPerSecond.toFixed(0)} a second; ` +
      `live p99 ${beside.p99Ms.toFixed(1)} ms, ${alone.p99Ms.toFixed(1)} without it, ${JSON.stringify(beside.answers)}`,
  );
  return round;
}

/** Both services take the same load in turn. */
async function compare(
  stage: Stage,
  { on, off }: Record<'on' | 'off', Service>,
  rounds: number,
  say: (line: string) => void,
): Promise<number> {
  const ratios: number[] = [];
  for (let nth = 0; nth <= 2 * rounds; nth += 1) {
    const inTurn = nth % 2 === 0 ? ([on, off] as const) : ([off, on] as const);
    const rates = new Map<Service, number>();
    for (const service of inTurn) {
      await seedOrders(stage.databaseUrl, stage.senders, COMPARED);
      const { answers, perSecond } = await generate(stage, service.url, COMPARED);
      if (answers['200'] !== COMPARED) throw new Error(`not all were answered 200: ${JSON.stringify(answers)}`);
      rates.set(service, perSecond);
    }
    ratios.push((rates.get(on) ?? Number.NaN) / (rates.get(off) ?? Number.NaN));
    say(`  on ${rates.get(on)?.toFixed(0)}, off ${rates.get(off)?.toFixed(0)} webhooks a second`);
  }
  return median(ratios.slice(1));
}

async function generate({ senders, generator }: Stage, url: string, requests: number): Promise<Measured> {
  const about = { connections: CONNECTIONS, requests, from: 0, plan: 'spread', orders: requests } as const;
  return generator.ask<Measured>({ senders, port: Number(new URL(url).port), ...about } satisfies Load);
}

/** @param from the number of the first order that it moves */
async function offerLive(
  { senders }: Stage,
  url: string,
  from: number,
): Promise<{ begin: () => Promise<Offered>; stop: () => Promise<void> }> {
  const sender = forkChild('load/offer-steadily.ts');
  await sender.ask({ url, senders, perSecond: LIVE_PER_SECOND, webhooks: LIVE, from } satisfies Steady);
  return { begin: () => sender.ask<Offered>({}), stop: () => sender.stop() };
}

async function allowConnections({ server, client }: Stage, isAllowed: boolean): Promise<void> {
  await server.query(`ALTER DATABASE bench_spill ALLOW_CONNECTIONS ${isAllowed}`);
  if (isAllowed) return;
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  await server.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'bench_spill' AND pid <> $1`,
    [rows[0]?.pid],
  );
}

async function healthOf(url: string): Promise<string> {
  const { database } = (await (await fetch(`${url}/readyz`)).json()) as { database: string };
  return database;
}
