import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import type { Pool } from 'pg';
import { WrongSchema, checkSchema } from '../../database/check-schema.ts';
import type { Config } from '../../config/config.ts';
import { databaseClock, type DatabaseClock } from '../../core/postgres/database-clock.ts';
import { ensureWebhookPartitions } from '../../core/postgres/ensure-webhook-partitions.ts';
import { watchDatabase, type DatabaseWatch } from '../../core/postgres/watch-database.ts';
import { openDatabase } from '../../database/open-database.ts';
import { explainDatabaseError } from '../../database/explain-database-error.ts';

const RETRY_MS = 1_000;
/** The reason why Postgres cannot be used is logged again at this interval. */
const REPORT_AGAIN_MS = 60_000;

export type Database = {
  pool: Pool;
  flushPool: Pool;
  clock: DatabaseClock;
  watch: DatabaseWatch;
  /** Registers a listener. It is called when Postgres is first reached, becomes unavailable, or is available again. */
  onChange(listener: (isAway: boolean) => void): void;
  /**
   * Resolves when Postgres can be used and `load` has read from it. Until then it logs why Postgres cannot be used.
   * @throws WrongSchema if the schema does not fit this version, because waiting would not help
   */
  ready(load: () => Promise<unknown>, stopping: AbortSignal): Promise<void>;
  close(): Promise<unknown>;
};

declare module 'fastify' {
  interface FastifyInstance {
    database: Database;
  }
}

/** Opens the pools. They connect at the first query. */
export const database = fp(
  async (app: FastifyInstance, config: Pick<Config, 'DATABASE_URL' | 'POOL_SIZE'>) => {
    const reportRefused = unlessRepeated((words) => app.log.error(words));
    const { pool, flushPool } = openDatabase(config.DATABASE_URL, config.POOL_SIZE, (error) => {
      if (error instanceof WrongSchema) reportRefused(`a new connection to Postgres was refused: ${error.message}`);
      else app.log.warn({ err: error }, 'lost an idle connection to Postgres');
    });
    const clock = databaseClock(pool);
    const listeners: ((isAway: boolean) => void)[] = [];
    app.decorate('database', {
      pool,
      flushPool,
      clock,
      watch: watchDatabase(flushPool, (isAway) => {
        for (const listener of listeners) listener(isAway);
      }),
      onChange: (listener) => void listeners.push(listener),
      ready: (load, stopping) => databaseReady({ pool, clock, load }, app.log, stopping),
      close: () => Promise.all([pool.end(), flushPool.end()]),
    });
  },
  { name: 'database' },
);

/** @returns a function that logs words at once, when they change, and then periodically */
function unlessRepeated(log: (words: string) => void): (words: string) => void {
  let logged = { words: '', at: 0 };
  return (words) => {
    if (words === logged.words && performance.now() - logged.at < REPORT_AGAIN_MS) return;
    logged = { words, at: performance.now() };
    log(words);
  };
}

/** Waits for Postgres without a time limit. Logs the reason at once, when it changes, and then periodically. */
async function databaseReady(
  { pool, clock, load }: { pool: Pool; clock: DatabaseClock; load: () => Promise<unknown> },
  log: FastifyBaseLogger,
  stopping: AbortSignal,
): Promise<void> {
  const report = unlessRepeated((words) => log.error(words));
  while (!stopping.aborted) {
    try {
      await clock.follow();
      await checkSchema(pool);
      await ensureWebhookPartitions(pool);
      await load();
      return;
    } catch (error) {
      if (error instanceof WrongSchema) throw error;
      const { found, toDo } = explainDatabaseError(error);
      report(`Postgres cannot be used; retrying every second: ${found}; ${toDo}`);
      await sleep(RETRY_MS, undefined, { signal: stopping }).catch(() => {});
    }
  }
  throw new Error('stopped before Postgres could be reached');
}
