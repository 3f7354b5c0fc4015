import pg from 'pg';
import { dropOldPartitions } from '../../../src/core/retention/retention-rules.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { cell, compareInTurn, type Compared, type Comparison } from './compare-in-turn.ts';
import type { BenchDatabase } from '../stage/prepare-bench-database.ts';
import { seedOrders } from '../load/seed-orders.ts';
import { setLiveStage } from '../stage/set-live-stage.ts';
import type { Contest } from '../variants/start-contest.ts';

const EMPTY = cell('service', 64);
const AGED = cell('service', 64, { years: true });
const COMPARISONS: readonly Comparison[] = [
  { figure: 'yearsVsNone', of: AGED, against: EMPTY, by: 'perSecond' },
  { figure: 'yearsP99', of: AGED, against: EMPTY, by: 'p99Ms' },
];
const SECONDS = 6;

/** Measures webhooks with years of past orders behind them, in turn with an empty database. */
export function compareAged(
  contest: Contest,
  about: { rounds: number },
  say: (line: string) => void,
): Promise<Compared> {
  return compareInTurn(contest, COMPARISONS, { ...about, seconds: SECONDS }, say);
}

const PER_SECOND = 500;
const TURN_S = 20;
const WEBHOOKS = PER_SECOND * TURN_S;
const DROPS = 5;

/**
 * Drops the oldest five months of past orders, one after the other, during webhooks, in turn with webhooks alone.
 * @returns the longest wait of a webhook, from its due time, with and without a drop
 */
export async function measureDrops(
  postgres: { url: string },
  database: BenchDatabase,
  say: (line: string) => void,
): Promise<{ dropLongestMs: number; dropQuietLongestMs: number }> {
  const stage = await setLiveStage(postgres.url, database);
  const { pool, flushPool } = openDatabase(database.databaseUrl, 4, () => {});
  const longest = { drop: [] as number[], quiet: [] as number[] };
  try {
    // The service itself drops nothing.
    await stage.startService('service', { HISTORY_DAYS: '3650' });
    // Two turns warm up. After only one, the first drop seems to delay webhooks by 200 ms.
    for (let turn = -2; turn < 2 * DROPS; turn += 1) {
      const kind = turn >= 0 && turn % 2 === 0 ? 'drop' : 'quiet';
      await seedOrders(stage.databaseUrl, stage.senders, WEBHOOKS);
      const begin = await stage.sign({ perSecond: PER_SECOND, webhooks: WEBHOOKS });
      const oldest = kind === 'drop' ? await oldestMonth(stage.client) : undefined;
      const processors = stage.watchProcessors();
      const offering = begin();
      const began = performance.now();
      if (oldest !== undefined) {
        const dropped = await dropOldPartitions(pool, 'past_orders', oldest.daysAgo);
        if (dropped.length !== 1) throw new Error(`${dropped.length} months were dropped`);
      }
      const tookS = (performance.now() - began) / 1_000;
      if (tookS > TURN_S) throw new Error(`the drop took ${tookS.toFixed(0)} s, longer than the webhooks`);
      const { answers, p99Ms, longestMs, lateMs } = await offering;
      if (answers['200'] !== WEBHOOKS) throw new Error(`not all webhooks got 200: ${JSON.stringify(answers)}`);
      if (turn >= 0) longest[kind].push(longestMs);
      say(
        `  ${kind === 'drop' ? `a month dropped in ${tookS.toFixed(1)} s` : 'no drop'}: longest wait ${longestMs.toFixed(0)} ms, ` +
          `p99 ${p99Ms.toFixed(1)} ms, sent late by ${lateMs.toFixed(1)} ms; ${processors()}`,
      );
    }
    return { dropLongestMs: Math.max(...longest.drop), dropQuietLongestMs: Math.max(...longest.quiet) };
  } finally {
    await Promise.all([stage.stop(), pool.end(), flushPool.end()]);
  }
}

/** @returns the days after which the oldest month of past orders, and no other, is dropped */
async function oldestMonth(client: pg.Client): Promise<{ daysAgo: number }> {
  const { rows } = await client.query<{ daysAgo: number }>(
    `SELECT (now() AT TIME ZONE 'UTC')::date - (min(to_date(right(relname, 6), 'YYYYMM')) + interval '1 month')::date AS "daysAgo"
     FROM pg_class WHERE relkind = 'r' AND relname ~ '^past_orders_\\d{6}$'`,
  );
  if (rows[0] === undefined) throw new Error('there is no month of past orders');
  return rows[0];
}
