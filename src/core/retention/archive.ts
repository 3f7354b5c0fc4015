import { createHash } from 'node:crypto';
import { setImmediate as immediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createGzip, gunzip as gunzipWithCallback } from 'node:zlib';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { ClientBase, Pool } from 'pg';
import { z } from 'zod';
import { statusAt } from '../domain/lifecycle.ts';
import { compareTexts } from '../domain/order.ts';
import { inBatch, LOCK_ARCHIVE } from '../postgres/transactions.ts';
import { unpackOrder } from './pack-order.ts';

/** Files of the archive, in a bucket or a folder. */
export type ArchiveStore = {
  /**
   * Writes a whole file once. A reader sees all of it or nothing. Has no effect if the file is there with these bytes.
   * @returns false if the file is there with other bytes
   */
  write(name: string, bytes: Buffer): Promise<boolean>;
  /** @returns undefined if there is no such file */
  read(name: string): Promise<Buffer | undefined>;
  urlOf(name: string): string;
};

/** Orders per file. A file of 5,000 takes 2 MB, and is searched in 0.1 s. */
const PART = 5_000;

const Part = z.object({
  name: z.string(),
  orders: z.int(),
  bytes: z.int(),
  sha256: z.string(),
  first: z.string(),
  last: z.string(),
});
type Part = z.infer<typeof Part>;

/** The contents of a month. It is written last, so a month without it is not complete. */
const Manifest = z.object({
  format: z.literal(1),
  month: z.string(),
  orders: z.int(),
  /** The newest migration of the database that the rows come from. */
  schema: z.string(),
  parts: z.array(Part),
});
type Manifest = z.infer<typeof Manifest>;

const folderOf = (month: string): string => `past_orders/month=${month}`;
const manifestOf = (month: string): string => `${folderOf(month)}/manifest.json`;

/**
 * Writes a month of past orders to the archive, reads it back and compares it with the table. A line of a file is one
 * order as JSON: its rows by table. Orders are sorted by id. After a crash, the next run writes the same files again.
 * @param month such as 2027-01. No order is moved to it any more
 * @param about.perPart orders of a file
 * @param about.stopping ends the work with an error, and the next process goes on
 * @returns false if another process does so
 * @throws Error if the archive is not what the table has. Then the month must not be dropped
 */
export async function archiveMonth(
  pool: Pool,
  store: ArchiveStore,
  month: string,
  about: { perPart?: number; stopping?: AbortSignal } = {},
): Promise<boolean> {
  const done = await inBatch(pool, LOCK_ARCHIVE, async (client) => {
    // The transaction is only for the lock. Between its statements, it waits for the archive.
    await client.query('SET LOCAL idle_in_transaction_session_timeout = 0');
    const manifest = (await readManifest(store, month)) ?? (await writeMonth(client, store, month, about));
    await verifyMonth(client, store, manifest, about.stopping);
    return true;
  });
  return done === true;
}

type Row = {
  service_order_id: string;
  location_id: string | null;
  state: string;
  rank: number | null;
  packed: Buffer;
};

async function writeMonth(
  client: ClientBase,
  store: ArchiveStore,
  month: string,
  { perPart = PART, stopping }: { perPart?: number; stopping?: AbortSignal },
): Promise<Manifest> {
  const parts: Part[] = [];
  for (;;) {
    stopping?.throwIfAborted();
    const { rows } = await client.query<Row>(
      `SELECT service_order_id, location_id, state, rank, packed FROM past_orders
       WHERE month = ($1 || '-01')::date AND service_order_id > $2 ORDER BY service_order_id LIMIT $3`,
      [month, parts.at(-1)?.last ?? '', perPart],
    );
    const [first, last] = [rows[0], rows.at(-1)];
    if (first === undefined || last === undefined) break;
    // BigQuery loads JSON with gzip, and with no other compression.
    const gzip = createGzip();
    const [bytes] = await Promise.all([buffer(gzip), pipeline(linesOf(rows), gzip)]);
    const name = `${folderOf(month)}/part-${String(parts.length).padStart(6, '0')}.ndjson.gz`;
    await writeOnce(store, name, bytes);
    parts.push({
      name,
      orders: rows.length,
      bytes: bytes.length,
      sha256: sha256(bytes),
      first: first.service_order_id,
      last: last.service_order_id,
    });
  }
  const { rows } = await client.query<{ schema: string }>('SELECT max(name) AS schema FROM schema_migrations');
  const orders = parts.reduce((sum, part) => sum + part.orders, 0);
  const manifest: Manifest = { format: 1, month, orders, schema: rows[0]?.schema ?? '', parts };
  await writeOnce(store, manifestOf(month), Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`));
  return manifest;
}

async function writeOnce(store: ArchiveStore, name: string, bytes: Buffer): Promise<void> {
  if (!(await store.write(name, bytes))) throw otherThan(store, name);
}

const otherThan = (store: ArchiveStore, name: string): Error =>
  new Error(`${store.urlOf(name)} has other orders than this database: does another installation use this archive?`);

/** Webhooks are answered after so many orders. */
const TURN = 20;

async function* linesOf(rows: readonly Row[]): AsyncGenerator<string> {
  for (let at = 0; at < rows.length; at += TURN) {
    yield rows
      .slice(at, at + TURN)
      .map(lineOf)
      .join('');
    await immediate();
  }
}

function lineOf({ service_order_id, location_id, state, rank, packed }: Row): string {
  const status = rank === null ? null : statusAt(rank);
  const about = JSON.stringify({ service_order_id, location_id, state, status });
  // Postgres writes a line break between two rows. In a text of JSON it would be escaped.
  return `${about.slice(0, -1)},${unpackOrder(packed).trim().slice(1).replaceAll('\n', ' ')}\n`;
}

/** @throws Error if a file is not as it was written, or has other orders than the table */
async function verifyMonth(
  client: ClientBase,
  store: ArchiveStore,
  manifest: Manifest,
  stopping: AbortSignal | undefined,
): Promise<void> {
  const inTable = await client.query<{ orders: number }>(
    `SELECT count(*)::int AS orders FROM past_orders WHERE month = ($1 || '-01')::date`,
    [manifest.month],
  );
  let ok = inTable.rows[0]?.orders === manifest.orders;
  for (const part of manifest.parts) {
    stopping?.throwIfAborted();
    const bytes = await store.read(part.name);
    if (bytes === undefined || sha256(bytes) !== part.sha256)
      throw new Error(`${store.urlOf(part.name)} is not as it was written`);
    const { rows } = await client.query<{ id: string }>(
      `SELECT service_order_id AS id FROM past_orders
       WHERE month = ($1 || '-01')::date AND service_order_id BETWEEN $2 AND $3 ORDER BY service_order_id`,
      [manifest.month, part.first, part.last],
    );
    const ids: string[] = [];
    for (const line of (await gunzip(bytes)).toString().trimEnd().split('\n')) {
      ids.push((JSON.parse(line) as { service_order_id: string }).service_order_id);
      if (ids.length % TURN === 0) await immediate();
    }
    ok &&= ids.length === rows.length && ids.every((id, nth) => id === rows[nth]?.id);
  }
  if (!ok) throw otherThan(store, manifestOf(manifest.month));
}

/**
 * Finds an order in a month of the archive.
 * @returns its rows as JSON, and the URL of its file; undefined if the month or the order is not there
 */
export async function findArchived(
  store: ArchiveStore,
  month: string,
  serviceOrderId: string,
): Promise<{ rows: string; url: string } | undefined> {
  const manifest = await readManifest(store, month);
  const part = manifest?.parts.find(
    ({ first, last }) => compareTexts(first, serviceOrderId) <= 0 && compareTexts(serviceOrderId, last) <= 0,
  );
  const bytes = part && (await store.read(part.name));
  if (part === undefined || bytes === undefined) return undefined;
  const lines = await gunzip(bytes);
  const isFirst = part.first === serviceOrderId;
  // Only a line begins like this after a line break. The rows within a line do not.
  const at = isFirst ? 0 : lines.indexOf(`\n{"service_order_id":${JSON.stringify(serviceOrderId)},`) + 1;
  if (at === 0 && !isFirst) return undefined;
  return { rows: lines.subarray(at, lines.indexOf('\n', at)).toString(), url: store.urlOf(part.name) };
}

async function readManifest(store: ArchiveStore, month: string): Promise<Manifest | undefined> {
  const bytes = await store.read(manifestOf(month));
  return bytes && Manifest.parse(JSON.parse(bytes.toString()));
}

const gunzip = promisify(gunzipWithCallback);
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
