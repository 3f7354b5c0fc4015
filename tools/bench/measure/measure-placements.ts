import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { until } from '../../../world/processes/until.ts';
import { compileService } from '../stage/compile-service.ts';
import { findSustained } from './find-sustained.ts';
import { forkChild, type Child } from '../stage/fork-child.ts';
import { prepareBenchDatabase } from '../stage/prepare-bench-database.ts';
import { pushSignals } from '../load/push-signals.ts';
import type { Happened, OutsideWorld } from '../stage/serve-outside-world.ts';
import { startService } from '../stage/start-service.ts';
import { percentile } from './summarize.ts';

export type PlacementMeasurement = {
  /** The highest rate of signals at which the number of unsent orders does not increase. */
  placementsPerSecond: number;
  /** From a push to the request at the POS. */
  placementP50Ms: number;
  placementP99Ms: number;
  /** From the push of a cancel to the request at the POS. */
  cancelP99Ms: number;
};

export type PlacementLengths = {
  /** Seconds of each tried rate. */
  stepS: number;
  /** Seconds of the measurement of latencies, after its warm-up. */
  latencyS: number;
};

type Stage = {
  url: string;
  client: pg.Client;
  world: Child;
  /** The number of orders so far, which is also the number of the next one. */
  pushed: number;
};

type Pass = {
  /** Times of each order, in milliseconds since 1970. */
  sentAt: number[];
  ticketAt: number[];
  answers: Record<string, number>;
  /** POSTs of orders. */
  requests: number;
  /** The outside world's share of one processor. */
  cpu: number;
};

const LOCATIONS = 200;
const STEPS = { coarse: 100, fine: 25 };
const WARM_UP_S = 3;
const LATENCY_PER_SECOND = 20;
/** The share of one second's orders that may be unsent at the end. */
const UNDER_WAY_S = 0.25;
/** How much the unsent orders may increase each second, as a share of one second's orders. */
const SLOPE = 0.02;
/** The unsent orders are counted at this many moments in each fifth of a step. */
const MOMENTS = 20;
const SETTLED_WITHIN_MS = 120_000;

/**
 * Measures how fast one process of the service places orders at 200 locations whose POS answers after 50 ms.
 * @param postgres a running Postgres with fsync
 */
export async function measurePlacements(
  postgres: { url: string },
  about: PlacementLengths,
  say: (line: string) => void,
): Promise<PlacementMeasurement> {
  const main = await compileService();
  const world = forkChild('stage/serve-outside-world.ts', [String(LOCATIONS)]);
  try {
    const { env, pos } = await world.ask<OutsideWorld>({});
    const { databaseUrl } = await prepareBenchDatabase(postgres.url, {
      name: 'bench_placements',
      locations: LOCATIONS,
      pos,
    });
    const service = await startService(main, { ...env, DATABASE_URL: databaseUrl });
    const client = new pg.Client(databaseUrl);
    try {
      await client.connect();
      const stage = { url: service.url, client, world, pushed: 0 };
      const latencies = await measureLatencies(stage, about.latencyS, say);
      const cancels = await measureCancels(stage, about.latencyS, say);
      const holds = (perSecond: number): Promise<boolean> => tryRate(stage, perSecond, about.stepS, say);
      return { placementsPerSecond: await findSustained(holds, STEPS), ...latencies, ...cancels };
    } finally {
      await client.end();
      await service.stop();
    }
  } finally {
    await world.stop();
  }
}

async function measureLatencies(
  stage: Stage,
  seconds: number,
  say: (line: string) => void,
): Promise<Pick<PlacementMeasurement, 'placementP50Ms' | 'placementP99Ms'>> {
  const { sentAt, ticketAt, cpu } = await pass(stage, LATENCY_PER_SECOND, WARM_UP_S + seconds);
  const latencies = sentAt.map((at, nth) => (ticketAt[nth] ?? Number.NaN) - at).slice(WARM_UP_S * LATENCY_PER_SECOND);
  const [p50, p99] = [percentile(latencies, 0.5), percentile(latencies, 0.99)];
  say(
    `  ${LATENCY_PER_SECOND} a second: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ` +
      `at most ${Math.max(...latencies).toFixed(1)} ms of ${latencies.length}; the outside world ${percent(cpu)}`,
  );
  return { placementP50Ms: p50, placementP99Ms: p99 };
}

/** Signals the orders of the first pass again. The platform returns them as cancelled then. */
async function measureCancels(
  stage: Stage,
  seconds: number,
  say: (line: string) => void,
): Promise<Pick<PlacementMeasurement, 'cancelP99Ms'>> {
  const { sentAt } = await pushSignals(stage.url, {
    first: WARM_UP_S * LATENCY_PER_SECOND,
    perSecond: LATENCY_PER_SECOND,
    seconds,
  });
  await settled(stage.client);
  const { cancels } = await stage.world.ask<Happened>({});
  const cancelledAt = new Map(cancels.toReversed());
  const latencies = sentAt.map((at, nth) => (cancelledAt.get(WARM_UP_S * LATENCY_PER_SECOND + nth) ?? Number.NaN) - at);
  if (latencies.some(Number.isNaN)) throw new Error('an order was never cancelled at its POS');
  const p99 = percentile(latencies, 0.99);
  say(
    `  ${LATENCY_PER_SECOND} cancels a second: p50 ${percentile(latencies, 0.5).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
  );
  return { cancelP99Ms: p99 };
}

/** @returns true if the service keeps up with the rate */
async function tryRate(
  stage: Stage,
  perSecond: number,
  seconds: number,
  say: (line: string) => void,
): Promise<boolean> {
  const { sentAt, ticketAt, answers, requests, cpu } = await pass(stage, perSecond, seconds);
  const began = sentAt[0] ?? Number.NaN;
  const end = sentAt.at(-1) ?? Number.NaN;
  const underWay = (at: number): number => countUntil(sentAt, at) - countUntil(ticketAt, at);
  // The mean over a fifth of the step, because the count at a single moment is random.
  const inFifth = (nth: number): number =>
    meanOf(
      Array.from({ length: MOMENTS }, (_, moment) => underWay(began + ((nth + moment / MOMENTS) / 5) * (end - began))),
    );
  const [middle, last] = [inFifth(2), inFifth(4)];
  const slope = (last - middle) / ((2 / 5) * seconds);
  const isFlat =
    answers['204'] === sentAt.length &&
    requests === sentAt.length &&
    underWay(end) <= UNDER_WAY_S * perSecond &&
    slope <= SLOPE * perSecond;
  say(
    `  ${perSecond} a second: ${isFlat ? 'sustained' : 'not sustained'}; under way ${middle.toFixed(0)} in the middle, ` +
      `${last.toFixed(0)} in the last fifth, ${underWay(end)} at the end; ${JSON.stringify(answers)}, ${requests - sentAt.length} repeats, ` +
      `all at the POS after ${((Math.max(...ticketAt) - end) / 1_000).toFixed(2)} s; the outside world ${percent(cpu)}`,
  );
  return isFlat;
}

/**
 * Pushes signals and waits until the service has nothing left to do.
 * @throws Error if an order has no ticket or two, is not stored as sent, or lacks one of its two live messages
 */
async function pass(stage: Stage, perSecond: number, seconds: number): Promise<Pass> {
  const first = stage.pushed;
  stage.pushed += perSecond * seconds;
  await stage.world.ask<Happened>({});
  const { sentAt, answers } = await pushSignals(stage.url, { first, perSecond, seconds });
  const happened = [await stage.world.ask<Happened>({})];
  await settled(stage.client);
  happened.push(await stage.world.ask<Happened>({}));

  const ticketAt: number[] = [];
  let tickets = 0;
  for (const [nth, at] of happened.flatMap((each) => each.tickets)) {
    ticketAt[nth - first] = at;
    tickets += 1;
  }
  const sum = (count: (each: Happened) => number): number => happened.reduce((all, each) => all + count(each), 0);
  const published = sum((each) => each.published);
  const orders = Object.keys(ticketAt).length;
  const sent = await sentOf(stage.client);
  if (orders !== sentAt.length || tickets !== orders || sent !== stage.pushed || published < 2 * orders) {
    const books = { pushed: sentAt.length, orders, tickets, published, sentInAll: sent, pushedInAll: stage.pushed };
    throw new Error(`the books do not balance: ${JSON.stringify(books)}`);
  }
  return { sentAt, ticketAt, answers, requests: sum((each) => each.requests), cpu: happened[0]?.cpu ?? Number.NaN };
}

/** Waits until the service has nothing left to place, to refresh, to cancel and to publish. */
async function settled(client: pg.Client): Promise<void> {
  await until(async () => {
    await sleep(200);
    const { rows } = await client.query<{ open: number }>(
      `SELECT (SELECT count(*)::int FROM placements WHERE finished_at IS NULL)
            + (SELECT count(*)::int FROM refreshes)
            + (SELECT count(*)::int FROM cancellations WHERE finished_at IS NULL)
            + (SELECT count(*)::int FROM outbox) AS open`,
    );
    return rows[0]?.open === 0;
  }, SETTLED_WITHIN_MS);
}

async function sentOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ sent: number }>(
    `SELECT count(*)::int AS sent FROM placements WHERE state = 'sent'`,
  );
  return rows[0]?.sent ?? Number.NaN;
}

/** Counts the times up to `at`. */
function countUntil(times: readonly number[], at: number): number {
  return times.filter((time) => time <= at).length;
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function percent(share: number): string {
  return `${Math.round(100 * share)} % of a core`;
}
