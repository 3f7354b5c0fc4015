import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { packOrder } from '../../src/core/retention/pack-order.ts';
import { chance } from './chance.ts';
import { startDatabase } from './start-pair.ts';

export type ArchiveResult = {
  /** Months that were archived, and their orders. */
  months: number;
  orders: number;
  /** Processes killed before the manifest was written, before the month was dropped, and just after that. */
  killsWriting: number;
  killsDropping: number;
  killsAfter: number;
  lost: number;
  doubled: number;
};

const KILLS = 50;
const ORDERS = 2_000;
const PER_PART = 40;
const MONTH = '2025-03';
const TABLE = 'past_orders_202503';
/** Processes that may be needed for one month. */
const MOST = 100;

/** Kills processes by SIGKILL at 50 random moments while they archive and drop a month, and reads what is there. */
export async function runArchive(
  seed: number,
  print: (line: string) => void,
): Promise<{ result: ArchiveResult; complaints: string[] }> {
  const postgres = await startDatabase();
  const client = new pg.Client(postgres.url);
  const complaints: string[] = [];
  const kills = { killsWriting: 0, killsDropping: 0, killsAfter: 0 };
  const killed = (): number => Object.values(kills).reduce((sum, each) => sum + each);
  const counts = { lost: 0, doubled: 0 };
  let months = 0;
  let tries = 0;
  /** The time that the work takes if nobody dies. */
  let takesMs = Number.NaN;
  try {
    await client.connect();
    for (; killed() < KILLS; months += 1) {
      const folder = await mkdtemp(join(tmpdir(), 'chaos-archive-'));
      const args = [postgres.url, pathToFileURL(folder).href, MONTH, String(PER_PART)];
      const ids = await seedMonth(client, months);
      for (let nth = 0; ; nth += 1) {
        if (nth === MOST) throw new Error(`${MOST} processes did not archive the month`);
        tries += 1;
        // The first month measures the time.
        const isKilled = months > 0 && killed() < KILLS;
        const { died, tookMs } = await archive(args, isKilled ? takesMs * chance(seed, 'kill', tries) : undefined);
        if (months === 0) takesMs = tookMs;

        const inTable = await count(client, `SELECT count(*)::int FROM past_orders WHERE month = '${MONTH}-01'`);
        const archived = await readArchive(folder, complaints);
        const found = new Set(archived);
        if (archived === undefined || inTable > 0) counts.lost += ids.length - inTable;
        if (archived !== undefined) {
          counts.lost += ids.filter((id) => !found.has(id)).length;
          counts.doubled += archived.length - found.size;
        }
        if (died) kills[archived === undefined ? 'killsWriting' : inTable > 0 ? 'killsDropping' : 'killsAfter'] += 1;
        if (inTable === 0) break;
      }
      const buried = await count(client, 'SELECT count(*)::int FROM unnest($1::text[]) AS id, find_tombstone(id)', ids);
      const stones = await count(client, 'SELECT coalesce(sum(length(entries)) / 16, 0)::int FROM tombstones');
      const tables = await count(client, `SELECT count(*)::int FROM pg_class WHERE relname = '${TABLE}'`);
      if (buried !== ids.length || stones !== ids.length || tables !== 0)
        complaints.push(`${ids.length} orders have ${stones} tombstones, of which ${buried} are found`);
      await rm(folder, { recursive: true });
    }
    print(`seed ${seed}: each month takes ${takesMs.toFixed(0)} ms if nobody dies`);
  } finally {
    await client.end();
    await postgres.stop();
  }
  const wrong = Object.entries(counts).filter(([, each]) => each !== 0);
  complaints.push(...wrong.map(([name, each]) => `${each} orders are ${name}`));
  return { result: { months, orders: months * ORDERS, ...kills, ...counts }, complaints };
}

/**
 * Runs the work once.
 * @param afterMs when it is killed, from its begin
 * @returns whether that was before its end, and the milliseconds that it took
 */
async function archive(
  args: readonly string[],
  afterMs: number | undefined,
): Promise<{ died: boolean; tookMs: number }> {
  const child = fork(new URL('archive-month.ts', import.meta.url), args);
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  await once(child, 'message');
  const began = performance.now();
  if (afterMs !== undefined) {
    await Promise.race([sleep(afterMs), exited]);
    child.kill('SIGKILL');
  }
  const [code, signal] = await exited;
  if (code !== 0 && signal !== 'SIGKILL')
    throw new Error(`the month was not archived: it ended with ${code ?? signal}`);
  return { died: signal === 'SIGKILL', tookMs: performance.now() - began };
}

/** Past orders of a month that is over. No tombstone is left from before. @returns their ids */
async function seedMonth(client: pg.Client, nth: number): Promise<string[]> {
  const ids = Array.from({ length: ORDERS }, (_, order) => `order-${nth}-${String(order).padStart(6, '0')}`);
  await client.query('TRUNCATE tombstones');
  await client.query(`SELECT ensure_past_orders_partition('${MONTH}-01')`);
  await client.query(
    `INSERT INTO past_orders (month, service_order_id, location_id, signalled_at, state, rank, last_notified_sequence, packed)
     SELECT '${MONTH}-01', id, 'club-' || left(md5(id), 1), now(), 'sent', 60, 2, $2 FROM unnest($1::text[]) AS id`,
    [ids, packOrder('{"orders":[{"rank":60}]}')],
  );
  return ids;
}

/** @returns the ids of all lines of the files that the manifest names; undefined without a manifest */
async function readArchive(folder: string, complaints: string[]): Promise<string[] | undefined> {
  const files = await readdir(folder, { recursive: true });
  const manifest = files.find((file) => file.endsWith('manifest.json'));
  if (manifest === undefined) return undefined;
  const { orders, parts } = JSON.parse(await readFile(join(folder, manifest), 'utf8')) as Manifest;
  const names = new Set(parts.map(({ name }) => name));
  complaints.push(
    ...files.filter((file) => file.endsWith('.gz') && !names.has(file)).map((file) => `a strange ${file}`),
  );
  const ids: string[] = [];
  for (const part of parts) {
    const bytes = await readFile(join(folder, part.name));
    const lines = gunzipSync(bytes).toString().trimEnd().split('\n');
    if (createHash('sha256').update(bytes).digest('hex') !== part.sha256 || lines.length !== part.orders)
      complaints.push(`${part.name} is not what the manifest says`);
    ids.push(...lines.map((line) => (JSON.parse(line) as { service_order_id: string }).service_order_id));
  }
  if (ids.length !== orders) complaints.push(`the manifest says ${orders} orders, and ${ids.length} are in the files`);
  return ids;
}

type Manifest = { orders: number; parts: { name: string; orders: number; sha256: string }[] };

async function count(client: pg.Client, sql: string, ids?: readonly string[]): Promise<number> {
  const { rows } = await client.query<Record<string, number>>(sql, ids && [ids]);
  return Object.values(rows[0] ?? {})[0] ?? Number.NaN;
}
