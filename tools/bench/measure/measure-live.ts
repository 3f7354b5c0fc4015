import { setTimeout as sleep } from 'node:timers/promises';
import { rankOf } from '../../../src/core/domain/lifecycle.ts';
import { until } from '../../../world/processes/until.ts';
import { findSustained } from './find-sustained.ts';
import { orderId, seedOrders } from '../load/seed-orders.ts';
import { setLiveStage, type LiveStage } from '../stage/set-live-stage.ts';
import { percentile } from './summarize.ts';

export type LiveMeasurement = {
  /** The highest rate of live messages, one per webhook, at which the outbox does not grow. */
  sustainedEventsPerSecond: number;
  /** The rate at which a service that has just started publishes a backlog. */
  drainPerSecond: number;
  /** From the commit of a change to the arrival of its live message at a subscriber. */
  liveLagP50Ms: number;
  liveLagP99Ms: number;
};

export type LiveLengths = {
  /** Seconds of each tried rate. */
  stepS: number;
  /** Rows in the outbox when the service starts. */
  backlog: number;
  /** Seconds of the measurement of lags, after its warm-up. */
  lagS: number;
};

const STEPS = { coarse: 500, fine: 125 };
const WARM_UP_S = 5;
const LAG_PER_SECOND = 1_000;
/** The share of one second's rows that may be in the outbox at the end, because they are being published. */
const UNDER_WAY_S = 0.25;
/** The share of the rate by which the outbox may seem to grow, because the number of unpublished rows fluctuates. */
const SLOPE = 0.02;
/** If a sender is later than this, it does not keep its pace. */
const LATE_MS = 100;
const SETTLED_WITHIN_S = 60;

/**
 * Measures the relay of one process of the service, with its own Pub/Sub.
 * @param postgres a running Postgres with fsync
 */
export async function measureLive(
  postgres: { url: string },
  about: LiveLengths,
  say: (line: string) => void,
): Promise<LiveMeasurement> {
  const stage = await setLiveStage(postgres.url);
  try {
    await stage.startService();
    await tryRate(stage, STEPS.coarse, WARM_UP_S, () => {});
    const holds = (perSecond: number): Promise<boolean> => tryRate(stage, perSecond, about.stepS, say);
    const sustainedEventsPerSecond = await findSustained(holds, STEPS);
    await stage.stopService();
    const drainPerSecond = await measureDrain(stage, about.backlog, say);
    const lags = await measureLags(stage, about.lagS, say);
    return { sustainedEventsPerSecond, drainPerSecond, ...lags };
  } finally {
    await stage.stop();
  }
}

/** @returns whether the outbox stayed flat, every webhook was answered and the sender kept its pace */
async function tryRate(
  stage: LiveStage,
  perSecond: number,
  seconds: number,
  say: (line: string) => void,
): Promise<boolean> {
  const webhooks = perSecond * seconds;
  await seedOrders(stage.databaseUrl, stage.senders, webhooks);
  const begin = await stage.sign({ perSecond, webhooks });
  const before = await stage.published();
  const processors = stage.watchProcessors();

  const offering = begin();
  const sizes = await sampleEachSecond(offering, () => outboxSize(stage));
  const { answers, lateMs } = await offering;
  const spent = processors();
  const left = await outboxSize(stage);

  const sent = answers['200'] ?? 0;
  const { repeats } = await settle(stage, before, sent);
  // The first second is left out, because the outbox fills to its normal level then.
  const slope = slopeOf(sizes.slice(1));
  const isFlat =
    sent === webhooks &&
    repeats === 0 &&
    lateMs <= LATE_MS &&
    left <= UNDER_WAY_S * perSecond &&
    slope <= SLOPE * perSecond;
  say(
    `  ${perSecond} a second: ${isFlat ? 'flat' : 'not flat'}; outbox ${sizes.join(' ')}, at the end ${left}, ` +
      `slope ${slope.toFixed(1)}; ${JSON.stringify(answers)}, sent ${lateMs.toFixed(0)} ms late; ` +
      `${repeats} repeats; ${spent}`,
  );
  return isFlat;
}

/** @returns rows a second, from the first row published to the last */
async function measureDrain(stage: LiveStage, rows: number, say: (line: string) => void): Promise<number> {
  await seedOrders(stage.databaseUrl, stage.senders, rows);
  // These are the rows that webhooks leave while no process publishes.
  await stage.client.query(
    `WITH moved AS (
       UPDATE orders SET rank = ${rankOf('received')}, sequence = sequence + 1, updated_at = now()
       RETURNING service_order_id, sequence, rank, provider_order_id
     ), history AS (
       INSERT INTO status_events (service_order_id, status, native_status, outcome, sequence, provider_order_id,
                                  occurred_at)
       SELECT service_order_id, 'received', 'received', 'applied', sequence, provider_order_id, now() FROM moved
     )
     INSERT INTO outbox (service_order_id, sequence, rank, provider_order_id, occurred_at)
     SELECT service_order_id, sequence, rank, provider_order_id, now() FROM moved`,
  );
  const before = await stage.published();
  await stage.startService();
  const processors = stage.watchProcessors();
  const first = await until(async () => {
    const left = await outboxSize(stage);
    return left < rows && { left, at: performance.now() };
  });
  await untilEmpty(stage);
  const perSecond = (first.left * 1_000) / (performance.now() - first.at);
  const spent = processors();
  const { repeats } = await settle(stage, before, rows);
  say(`  backlog: ${Math.round(perSecond)} a second; ${repeats} repeats; ${spent}`);
  return perSecond;
}

/** Measures the lag of every message of an even load, without the first seconds, in which code is compiled. */
async function measureLags(
  stage: LiveStage,
  seconds: number,
  say: (line: string) => void,
): Promise<Pick<LiveMeasurement, 'liveLagP50Ms' | 'liveLagP99Ms'>> {
  const webhooks = LAG_PER_SECOND * (WARM_UP_S + seconds);
  await seedOrders(stage.databaseUrl, stage.senders, webhooks);
  const begin = await stage.sign({ perSecond: LAG_PER_SECOND, webhooks });
  const receive = await stage.listen({ messages: webhooks, withinS: WARM_UP_S + seconds + SETTLED_WITHIN_S });
  const before = await stage.published();
  const processors = stage.watchProcessors();
  const sending = begin().then((offered) => {
    if (offered.answers['200'] === webhooks) return offered;
    throw new Error(`${LAG_PER_SECOND} a second are too many: ${JSON.stringify(offered.answers)}`);
  });
  const [{ lateMs }, { lags }] = await Promise.all([sending, receive()]);
  const spent = processors();
  const { repeats } = await settle(stage, before, webhooks);

  const warm = orderId(LAG_PER_SECOND * WARM_UP_S);
  const counted = Object.entries(lags).flatMap(([order, lag]) => (order >= warm ? [lag] : []));
  const [p50, p99] = [percentile(counted, 0.5), percentile(counted, 0.99)];
  say(
    `  lag at ${LAG_PER_SECOND} a second: p50 ${p50} ms, p99 ${p99} ms, worst ${Math.max(...counted)} ms, ` +
      `of ${counted.length}; sent ${lateMs.toFixed(0)} ms late; ${repeats} repeats; ${spent}`,
  );
  return { liveLagP50Ms: p50, liveLagP99Ms: p99 };
}

/**
 * Waits until everything is published, and checks the result.
 * @param before messages that the topic had before
 * @param moves orders that were moved
 * @throws if an order was not moved, or a message was lost
 */
async function settle(stage: LiveStage, before: number, moves: number): Promise<{ repeats: number }> {
  await untilEmpty(stage);
  const { rows } = await stage.client.query<{ applied: number }>(
    "SELECT count(*)::int AS applied FROM status_events WHERE outcome = 'applied'",
  );
  const applied = rows[0]?.applied;
  const published = (await stage.published()) - before;
  if (applied !== moves || published < moves) {
    throw new Error(`of ${moves} moves ${applied} were applied and ${published} published`);
  }
  return { repeats: published - moves };
}

async function sampleEachSecond(during: Promise<unknown>, sample: () => Promise<number>): Promise<number[]> {
  const samples: number[] = [];
  for (;;) {
    const isOver = await Promise.race([sleep(1_000, false), during.then(() => true)]);
    if (isOver) return samples;
    samples.push(await sample());
  }
}

async function untilEmpty({ client }: LiveStage): Promise<void> {
  // Does not count the rows, because so many counts would use a large part of a processor in Postgres.
  await until(async () => (await client.query('SELECT FROM outbox LIMIT 1')).rowCount === 0, SETTLED_WITHIN_S * 1_000);
}

async function outboxSize({ client }: LiveStage): Promise<number> {
  const { rows } = await client.query<{ size: number }>('SELECT count(*)::int AS size FROM outbox');
  return rows[0]?.size ?? 0;
}

/** How much the best-fitting straight line (least squares) rises from one value to the next. */
function slopeOf(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  let [rise, run] = [0, 0];
  for (const [at, value] of values.entries()) {
    rise += (at - middle) * (value - mean);
    run += (at - middle) ** 2;
  }
  return rise / run;
}
