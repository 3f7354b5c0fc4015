import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { moveClock, prepareClock } from '../../../world/processes/move-clock.ts';
import { compileService } from '../stage/compile-service.ts';
import { forkChild } from '../stage/fork-child.ts';
import type { Evening, EveningResult } from '../load/offer-evening.ts';
import { prepareBenchDatabase } from '../stage/prepare-bench-database.ts';
import { residentMb } from './resident-mb.ts';
import type { Happened, OutsideWorld } from '../stage/serve-outside-world.ts';
import { MOVES } from '../load/sign-request.ts';
import { startUsualPostgres } from '../stage/start-bench-postgres.ts';
import { startService } from '../stage/start-service.ts';
import { median } from './summarize.ts';

export type EveningMeasurement = {
  /** The last third of the time against the first third: the p99 of webhooks, and the median resident memory. */
  eveningP99: number;
  eveningMemory: number;
  /** For the table or index that grew most: its bytes per row at the end against those in the first third. */
  eveningBloat: number;
};

const LOCATIONS = 50;
const ORDERS_PER_SECOND = 20;
const WEBHOOKS_PER_SECOND = 300;
/** Postgres's clock is moved ahead in the middle of the run, so that the next hourly work finds partitions to drop. */
const JUMP = { after: 0.5, days: 4 };
const KEPT_DAYS = '2';
const SAMPLE_EVERY_MS = 10_000;
/** Locations whose POS hangs or fails all the time. */
const ILL = 2;
/** When Postgres is restarted. */
const RESTART_AFTER = 0.4;
/** Smaller relations do not count, because a few more pages would already be a large share of them. */
const LEAST_BYTES = 4 * 2 ** 20;
/** A relation counts as if it had at least this many rows, because a queue is mostly empty. */
const LEAST_ROWS = 1_000;

type Relation = { name: string; bytes: number; rows: number; dead: number };
/** Open sockets of the service, memory that the backends of Postgres do not share, and rows to be vacuumed. */
type Others = { sockets: number; backendsMb: number; deadRows: number };

/**
 * Watches one process of the service and its Postgres during an evening with a steady load: orders and their webhooks,
 * sales of tills, early webhooks that are redriven, POS systems that hang or fail, a restart of Postgres, and retention,
 * for which the clock is moved.
 * @param about.minutes 90 or more, so that the hourly work runs twice
 */
export async function measureEvening(
  about: { minutes: number },
  say: (line: string) => void,
): Promise<EveningMeasurement> {
  const seconds = about.minutes * 60;
  const main = await compileService();
  // Checkpoints and autovacuum run as usual here, unlike in the other parts.
  const postgres = await startUsualPostgres();
  const world = forkChild('stage/serve-outside-world.ts', [String(LOCATIONS), String(ILL)]);
  const sender = forkChild('load/offer-evening.ts');
  try {
    const { env, pos } = await world.ask<OutsideWorld>({});
    const { databaseUrl, senders } = await prepareBenchDatabase(postgres.url, {
      name: 'bench_evening',
      locations: LOCATIONS,
      pos,
      prepare: prepareClock,
    });
    const service = await startService(main, {
      ...env,
      DATABASE_URL: databaseUrl,
      WEBHOOK_RETENTION_DAYS: KEPT_DAYS,
      PII_RETENTION_DAYS: KEPT_DAYS,
    });
    try {
      const jump = { atS: Math.round(seconds * JUMP.after), days: JUMP.days };
      const load = { ordersPerSecond: ORDERS_PER_SECOND, webhooksPerSecond: WEBHOOKS_PER_SECOND };
      const playing = sender.ask<EveningResult>({
        url: service.url,
        senders,
        seconds,
        ...load,
        jump,
        moves: MOVES,
        early: true,
      } satisfies Evening);
      const moving = sleep(jump.atS * 1_000).then(() => moveClock(databaseUrl, jump));
      const restarting = sleep(seconds * RESTART_AFTER * 1_000).then(() => postgres.restart());
      const sizes = watchSizes();
      const memory: number[] = [];
      const others: Others[] = [];
      const began = performance.now();
      let atFirst: Map<string, number> | undefined;
      let tickets = 0;
      while (performance.now() - began < seconds * 1_000) {
        await sleep(SAMPLE_EVERY_MS);
        memory.push(residentMb(service.pid));
        // Postgres may be restarting.
        const seen = await relationsOf(databaseUrl).catch(() => []);
        sizes.note(seen);
        const deadRows = seen.reduce((sum, { dead }) => sum + dead, 0);
        if (seen.length > 0) {
          others.push({ sockets: socketsOf(service.pid), backendsMb: backendsMb(postgres.pid), deadRows });
        }
        tickets += (await world.ask<Happened>({})).tickets.length;
        if (performance.now() - began >= (seconds * 1_000) / 3) atFirst ??= sizes.bytesPerRow();
      }
      const result = await playing;
      await Promise.all([moving, restarting]);
      const third = Math.floor(memory.length / 3);
      const [firstMb, lastMb] = [median(memory.slice(0, third)), median(memory.slice(-third))];
      const growth = [...sizes.bytesPerRow()].map(([name, bytes]) => ({
        name,
        by: bytes / (atFirst?.get(name) ?? bytes),
      }));
      const worst = growth.toSorted((a, b) => b.by - a.by);
      const [firstP99 = Number.NaN, , lastP99 = Number.NaN] = result.p99Ms;
      say(
        `  webhooks ${JSON.stringify(result.webhooks)}, signals ${JSON.stringify(result.signals)}, tickets ${tickets}`,
      );
      say(`  p99 by third: ${result.p99Ms.map((each) => each.toFixed(1)).join(', ')} ms`);
      say(`  resident memory: ${firstMb.toFixed(0)} MB in the first third, ${lastMb.toFixed(0)} in the last`);
      for (const what of ['sockets', 'backendsMb', 'deadRows'] as const) {
        const eighths = Array.from({ length: 8 }, (_, nth) =>
          median(others.map((each) => each[what]).slice((nth * others.length) / 8, ((nth + 1) * others.length) / 8)),
        );
        say(`  ${what}, medians of eighths: ${eighths.map((each) => each.toFixed(0)).join(', ')}`);
      }
      for (const { name, by } of worst.slice(0, 10)) say(`  ${name}: ${by.toFixed(2)} times the bytes a row`);
      return {
        eveningP99: lastP99 / firstP99,
        eveningMemory: lastMb / firstMb,
        eveningBloat: worst[0]?.by ?? Number.NaN,
      };
    } finally {
      await service.stop();
    }
  } finally {
    await Promise.all([world.stop(), sender.stop()]);
    await postgres.stop();
  }
}

/** Stores the latest size and the highest number of rows of each relation: space that rows once used is no bloat. */
function watchSizes(): { note(relations: readonly Relation[]): void; bytesPerRow(): Map<string, number> } {
  const known = new Map<string, { bytes: number; rows: number }>();
  return {
    note(relations) {
      for (const { name, bytes, rows } of relations) {
        known.set(name, { bytes, rows: Math.max(rows, known.get(name)?.rows ?? LEAST_ROWS) });
      }
    },
    bytesPerRow: () =>
      new Map(
        [...known].flatMap(([name, { bytes, rows }]) => (bytes < LEAST_BYTES ? [] : [[name, bytes / rows] as const])),
      ),
  };
}

/** Reads the sizes and rows of tables and indexes. The partitions of a table count as one. */
async function relationsOf(databaseUrl: string): Promise<Relation[]> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    const { rows } = await client.query<Relation>(
      `SELECT regexp_replace(c.relname, '_\\d{8}', '') AS name,
              sum(CASE c.relkind WHEN 'r' THEN pg_table_size(c.oid) ELSE pg_relation_size(c.oid) END)::float8 AS bytes,
              sum(s.n_live_tup)::float8 AS rows,
              sum(CASE c.relkind WHEN 'r' THEN s.n_dead_tup ELSE 0 END)::float8 AS dead
       FROM pg_class c
       LEFT JOIN pg_index i ON i.indexrelid = c.oid
       JOIN pg_stat_user_tables s ON s.relid = coalesce(i.indrelid, c.oid)
       WHERE c.relkind IN ('r', 'i') AND s.schemaname = 'expediter'
       GROUP BY 1`,
    );
    return rows;
  } finally {
    await client.end();
  }
}

function socketsOf(pid: number): number {
  const opened = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return '';
    }
  });
  return opened.filter((each) => each.startsWith('socket:')).length;
}

function backendsMb(postmaster: number): number {
  const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').trim().split(' ');
  const kilobytes = children.map((pid) => {
    try {
      return Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
    } catch {
      return 0;
    }
  });
  return kilobytes.reduce((sum, each) => sum + (each || 0), 0) / 1_000;
}
