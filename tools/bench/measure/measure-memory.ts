import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { compileService } from '../stage/compile-service.ts';
import { forkChild } from '../stage/fork-child.ts';
import { postWithAgent } from '../../../world/network/post-with-agent.ts';
import { prepareBenchDatabase, type Sender } from '../stage/prepare-bench-database.ts';
import { residentMb } from './resident-mb.ts';
import { seedOrders } from '../load/seed-orders.ts';
import type { OutsideWorld } from '../stage/serve-outside-world.ts';
import { MOVES, signRequest } from '../load/sign-request.ts';
import { startService } from '../stage/start-service.ts';
import { median } from './summarize.ts';

export type MemoryMeasurement = {
  /** The largest resident set after the first minute, in millions of bytes. */
  rssMb: number;
  /** True if the median of the last third of the time is at most slightly above the second third's. */
  isFlat: boolean;
};

const LOCATIONS = 200;
const CONNECTIONS = 256;
/** The rate. The relay keeps up with it, so that the service has no backlog. */
const PER_SECOND = 1_500;
const FIRST_S = 60;
const GROWTH = 1.05;

/**
 * Measures the resident set of one process of the service while 256 connections send webhooks that each move an order.
 * @param about.minutes at least two
 */
export async function measureMemory(
  postgres: { url: string },
  about: { minutes: number },
  say: (line: string) => void,
): Promise<MemoryMeasurement> {
  const main = await compileService();
  const world = forkChild('stage/serve-outside-world.ts', [String(LOCATIONS)]);
  try {
    const { env } = await world.ask<OutsideWorld>({});
    const { databaseUrl, senders } = await prepareBenchDatabase(postgres.url, {
      name: 'bench_memory',
      locations: LOCATIONS,
    });
    const seconds = about.minutes * 60;
    const orders = Math.ceil((seconds * PER_SECOND) / MOVES.length);
    await seedOrders(databaseUrl, senders, orders);
    const service = await startService(main, { ...env, DATABASE_URL: databaseUrl });
    try {
      const atStart = residentMb(service.pid);
      const sending = sendWebhooks(service.url, senders, { orders, seconds });
      const samples = await sample(service.pid, seconds);
      const answers = await sending;
      const left = await outboxSize(databaseUrl);
      const third = Math.floor(samples.length / 3);
      const [second, last] = [median(samples.slice(third, 2 * third)), median(samples.slice(2 * third))];
      const rssMb = Math.max(...samples.slice(FIRST_S));
      const isFlat = last <= GROWTH * second;
      say(
        `  ${rssMb.toFixed(0)} MB at most, ${atStart.toFixed(0)} at the start; ${isFlat ? 'flat' : 'not flat'}: median ` +
          `${second.toFixed(0)} MB in the second third, ${last.toFixed(0)} in the last; ${CONNECTIONS} connections, ` +
          `${Math.round(answers.sent / seconds)} webhooks a second (at most ${PER_SECOND}, so that the relay keeps ` +
          `up), answered ${JSON.stringify(answers.by)}; ${left} rows in the outbox at the end`,
      );
      return { rssMb, isFlat };
    } finally {
      await service.stop();
    }
  } finally {
    await world.stop();
  }
}

/** Samples every second, in MB. */
async function sample(pid: number, seconds: number): Promise<number[]> {
  const samples: number[] = [];
  while (samples.length < seconds) {
    await sleep(1_000);
    samples.push(residentMb(pid));
  }
  return samples;
}

/** Sends in a closed loop: a connection sends a webhook when it is due and the previous one has been answered. */
async function sendWebhooks(
  url: string,
  senders: readonly Sender[],
  about: { orders: number; seconds: number },
): Promise<{ sent: number; by: Record<string, number> }> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const answers = { sent: 0, by: {} as Record<string, number> };
  const began = performance.now();
  const connection = async (place: number): Promise<void> => {
    for (let nth = place; ; nth += CONNECTIONS) {
      const dueMs = (nth * 1_000) / PER_SECOND;
      if (dueMs >= about.seconds * 1_000) return;
      await sleep(Math.max(0, dueMs - (performance.now() - began)));
      // Signed only now, because a signature is valid for five minutes only.
      const move = MOVES[Math.floor(nth / about.orders)] ?? 'completed';
      const signed = signRequest(senders, nth % about.orders, move);
      const status = await postWithAgent(url + signed.path, agent, signed);
      answers.sent += 1;
      answers.by[status] = (answers.by[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, place) => connection(place)));
  agent.destroy();
  return answers;
}

async function outboxSize(databaseUrl: string): Promise<number> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    const { rows } = await client.query<{ count: number }>('SELECT count(*)::int AS count FROM outbox');
    return rows[0]?.count ?? Number.NaN;
  } finally {
    await client.end();
  }
}
