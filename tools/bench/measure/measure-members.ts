import { generateKeyPairSync } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../../world/processes/until.ts';
import type { Following, Heard } from '../load/follow-orders.ts';
import type { Child } from '../stage/fork-child.ts';
import type { Load } from '../load/generate-load.ts';
import type { Offered, Steady } from '../load/offer-steadily.ts';
import { residentMb } from './resident-mb.ts';
import { seedOrders } from '../load/seed-orders.ts';
import { setLiveStage, type LiveStage } from '../stage/set-live-stage.ts';
import { median, type Measured } from './summarize.ts';

export type MemberMeasurement = {
  /** The largest tried number of streams in one process, each of a different order, that all got their messages. */
  memberStreams: number;
  /** Resident memory per stream, with 10,000 streams, compared with the process without streams. */
  memberStreamKb: number;
  /** From a commit in another process to the arrival of the message at a phone. */
  memberLagP50Ms: number;
  memberLagP99Ms: number;
  /** Throughput of webhooks with 10,000 streams of unchanged orders, against the throughput without streams. */
  memberCost: number;
};

const AUDIENCE = 'bench';
const STREAMS = 10_000;
const MOST = 15_000;
const PER_SECOND = 500;
const LAG_PER_SECOND = 1_000;
const WARM_UP_S = 5;
const LAG_S = 20;
const CONNECTIONS = 64;
/** Webhooks of one turn. */
const COMPARED = 320 * CONNECTIONS;
/** Time in which V8 frees the memory of a load. */
const SETTLE_MS = 10_000;
const SAMPLES = 5;
const WITHIN_S = 60;

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const KEY = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
const ENVIRONMENT = {
  FOLLOW_TOKEN_KEYS: JSON.stringify({ keys: [publicKey.export({ format: 'jwk' })] }),
  FOLLOW_TOKEN_AUDIENCE: AUDIENCE,
  FOLLOW_STREAMS_MAX: String(MOST),
};

type Hold = (about: Pick<Following, 'streams' | 'messages' | 'from'>) => Promise<Heard>;

/**
 * Measures the streams of members: their memory, their delay, and what they cost the webhooks.
 * @param postgres a running Postgres with fsync
 */
export async function measureMembers(
  postgres: { url: string },
  about: { rounds: number },
  say: (line: string) => void,
): Promise<MemberMeasurement> {
  const stage = await setLiveStage(postgres.url);
  try {
    const held = await measureHeld(stage, say);
    const lags = await measureLags(stage, say);
    return { ...held, ...lags, memberCost: await measureCost(stage, about.rounds, say) };
  } finally {
    await stage.stop();
  }
}

async function measureHeld(
  stage: LiveStage,
  say: (line: string) => void,
): Promise<Pick<MemberMeasurement, 'memberStreams' | 'memberStreamKb'>> {
  await seedFollowed(stage, MOST);
  const { pid, hold } = await startFollowed(stage);
  await move(stage, STREAMS, 0);
  const idle = await settledMb(pid);

  const said: string[] = [];
  const holdMoving = async (streams: number, turn: number): Promise<{ settled: number; hasAll: boolean }> => {
    const began = performance.now();
    await hold({ streams });
    const openedS = (performance.now() - began) / 1_000;
    await move(stage, streams, turn);
    const loaded = residentMb(pid);
    const heard = await hold({ streams, messages: streams });
    const settled = await settledMb(pid);
    const { open } = await hold({ streams });
    said.push(
      `${open} streams of ${streams}, opened in ${openedS.toFixed(1)} s, heard ${heard.messages} messages, ` +
        `${heard.wrong} wrong; ${loaded.toFixed(0)} MB after the load, ${settled.toFixed(0)} settled: ` +
        `${kbOf(settled - idle, streams)} kB a stream`,
    );
    return { settled, hasAll: open === streams && heard.messages === streams && heard.wrong === 0 };
  };
  const many = await holdMoving(STREAMS, 1);
  const most = await holdMoving(MOST, 2);
  say(`  ${idle.toFixed(0)} MB idle; ${said.join('; ')}`);
  return {
    memberStreams: most.hasAll ? MOST : many.hasAll ? STREAMS : 0,
    memberStreamKb: Number(kbOf(many.settled - idle, STREAMS)),
  };
}

/** Measures the delay between two processes: one has the streams, the other applies the webhooks. */
async function measureLags(
  stage: LiveStage,
  say: (line: string) => void,
): Promise<Pick<MemberMeasurement, 'memberLagP50Ms' | 'memberLagP99Ms'>> {
  await seedFollowed(stage, STREAMS);
  const { hold } = await startFollowed(stage);
  await stage.startService('other', ENVIRONMENT);
  await hold({ streams: STREAMS });
  const webhooks = LAG_PER_SECOND * (WARM_UP_S + LAG_S);
  const begin = await stage.sign({ perSecond: LAG_PER_SECOND, webhooks, orders: STREAMS });
  const processors = stage.watchProcessors();
  const warming = hold({ streams: STREAMS, messages: LAG_PER_SECOND * WARM_UP_S });
  const [{ answers, lateMs }, warm] = await Promise.all([begin(), warming]);
  const spent = processors();
  await settled(stage);
  // On a busy machine, some webhooks are refused and some are stale, so the applied ones are counted.
  const { rows } = await stage.client.query<{ applied: number }>(
    "SELECT count(*)::int AS applied FROM status_events WHERE outcome = 'applied'",
  );
  const messages = (rows[0]?.applied ?? Number.NaN) - warm.messages;
  const heard = await hold({ streams: STREAMS, messages });
  await stage.stopService('other');
  if (heard.messages !== messages || warm.wrong + heard.wrong > 0 || heard.open !== STREAMS) {
    throw new Error(`${messages} messages were expected: ${JSON.stringify({ warm, heard, answers })}`);
  }
  say(
    `  lag at ${LAG_PER_SECOND} a second, ${STREAMS} streams: p50 ${heard.p50Ms} ms, p99 ${heard.p99Ms} ms, ` +
      `worst ${heard.worstMs} ms, of ${messages}; the phones' own delay was ${heard.lateMs.toFixed(0)} ms; ` +
      `sent ${lateMs.toFixed(0)} ms late, ${JSON.stringify(answers)}; ${spent}`,
  );
  return { memberLagP50Ms: heard.p50Ms, memberLagP99Ms: heard.p99Ms };
}

async function measureCost(stage: LiveStage, rounds: number, say: (line: string) => void): Promise<number> {
  const { url, hold } = await startFollowed(stage);
  const generator = await stage.start('load/generate-load');
  const load = { senders: stage.senders, port: portOf(url), connections: CONNECTIONS, plan: 'spread' } as const;
  const ratios: number[] = [];
  // The first pair warms up. The order alternates, so that a change of the machine's speed affects both.
  for (let nth = 0; nth <= rounds; nth += 1) {
    const rates = new Map<number, number>();
    for (const streams of nth % 2 === 0 ? [0, STREAMS] : [STREAMS, 0]) {
      // The first COMPARED orders move. The others do not change and are followed.
      await seedFollowed(stage, COMPARED + STREAMS);
      await hold({ streams, from: COMPARED });
      const about = { requests: COMPARED, from: 0, orders: COMPARED };
      const { answers, perSecond } = await generator.ask<Measured>({ ...load, ...about } satisfies Load);
      if (answers['200'] !== COMPARED) throw new Error(`not all were answered 200: ${JSON.stringify(answers)}`);
      const { open, messages } = await hold({ streams });
      if (open !== streams || messages > 0) throw new Error(`${open} streams of ${streams} heard ${messages} messages`);
      rates.set(streams, perSecond);
      await settled(stage);
      await hold({ streams: 0 });
    }
    const [beside = Number.NaN, alone = Number.NaN] = [rates.get(STREAMS), rates.get(0)];
    ratios.push(beside / alone);
    say(`  with ${STREAMS} streams ${beside.toFixed(0)}, without ${alone.toFixed(0)} webhooks a second`);
  }
  return median(ratios.slice(1));
}

/** Starts a process of the service, and a process with phones. */
async function startFollowed(stage: LiveStage): Promise<{ url: string; pid: number; hold: Hold }> {
  const { url, pid } = await stage.startService('service', ENVIRONMENT);
  const phones: Child = await stage.start('load/follow-orders');
  const about = { port: portOf(url), key: KEY, audience: AUDIENCE, withinS: WITHIN_S };
  return { url, pid, hold: (more) => phones.ask<Heard>({ ...about, ...more } satisfies Following) };
}

/** Seeds orders in their state after the placement: the messages `placed` and `sent` are published. */
async function seedFollowed(stage: LiveStage, count: number): Promise<void> {
  await seedOrders(stage.databaseUrl, stage.senders, count);
  await stage.client.query(`
    TRUNCATE live_messages;
    INSERT INTO placements (service_order_id, location_id, state, deadline_at, provider_order_id, finished_at)
    SELECT service_order_id, location_id, 'sent', now(), provider_order_id, now() FROM orders;
    INSERT INTO live_messages (service_order_id, sequence, rank, applied_at, published_at)
    SELECT service_order_id, told.sequence, told.rank, created_at, created_at
    FROM orders, (VALUES (1, 0), (2, 10)) AS told (sequence, rank)`);
  await stage.client.query('VACUUM (ANALYZE) placements, live_messages');
}

/** Moves each order once. */
async function move(stage: LiveStage, orders: number, turn: number): Promise<void> {
  const load = { perSecond: PER_SECOND, webhooks: orders, orders, from: turn * orders } satisfies Partial<Steady>;
  const { answers }: Offered = await (await stage.sign(load))();
  if (answers['200'] !== orders) throw new Error(`${PER_SECOND} a second are too many: ${JSON.stringify(answers)}`);
  await settled(stage);
}

async function settled({ client }: LiveStage): Promise<void> {
  await until(async () => (await client.query('SELECT FROM outbox LIMIT 1')).rowCount === 0, WITHIN_S * 1_000);
}

async function settledMb(pid: number): Promise<number> {
  await sleep(SETTLE_MS);
  const samples: number[] = [];
  while (samples.length < SAMPLES) {
    await sleep(1_000);
    samples.push(residentMb(pid));
  }
  return median(samples);
}

function kbOf(mb: number, streams: number): string {
  return ((mb * 1_000) / streams).toFixed(1);
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}
