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
 * order as JSON: its rows by table. Orders are sorted by id. After a crash, the next run goes on from the files that are
 * there. A file may have more orders than the table, which an order leaves if it was never read and is signalled again.
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
    if (rows.length === 0) break;
    // BigQuery loads JSON with gzip, and with no other compression.
    const gzip = createGzip();
    const [made] = await Promise.all([buffer(gzip), pipeline(linesOf(rows), gzip)]);
    const name = `${folderOf(month)}/part-${String(parts.length).padStart(6, '0')}.ndjson.gz`;
    const bytes = (await store.write(name, made)) ? made : ((await store.read(name)) ?? made);
    const ids = await idsIn(bytes).catch(() => new Set<string>());
    const [first = '', last = ''] = [[...ids][0], [...ids].at(-1)];
    const inTable = await idsInTable(client, month, parts.at(-1)?.last, last);
    // guard: own-parts
    if (inTable.length === 0 || !inTable.every((id) => ids.has(id))) throw otherThan(store, name);
    parts.push({ name, orders: ids.size, bytes: bytes.length, sha256: sha256(bytes), first, last });
  }
  const { rows } = await client.query<{ schema: string }>('SELECT max(name) AS schema FROM schema_migrations');
  const orders = parts.reduce((sum, part) => sum + part.orders, 0);
  const manifest: Manifest = { format: 1, month, orders, schema: rows[0]?.schema ?? '', parts };
  const isWritten = await store.write(manifestOf(month), Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`));
  if (!isWritten) throw otherThan(store, manifestOf(month));
  return manifest;
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

/** @throws Error if a file is not as it was written, or if the files lack an order of the table */
async function verifyMonth(
  client: ClientBase,
  store: ArchiveStore,
  { month, orders, parts }: Manifest,
  stopping: AbortSignal | undefined,
): Promise<void> {
  let [archived, after] = [0, ''];
  for (const part of parts) {
    stopping?.throwIfAborted();
    const bytes = await store.read(part.name);
    if (bytes === undefined || sha256(bytes) !== part.sha256)
      throw new Error(`${store.urlOf(part.name)} is not as it was written`);
    const ids = await idsIn(bytes);
    const inTable = await idsInTable(client, month, after, part.last);
    // guard: archived-before-drop
    if (!inTable.every((id) => ids.has(id))) throw otherThan(store, part.name);
    after = part.last;
    archived += ids.size;
  }
  const isWhole = archived === orders && (await idsInTable(client, month, after)).length === 0;
  if (!isWhole) throw otherThan(store, manifestOf(month));
}

/** Reads the ids of the orders that a month's table has after one order, up to another. */
async function idsInTable(client: ClientBase, month: string, after = '', last?: string): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT service_order_id AS id FROM past_orders
     WHERE month = ($1 || '-01')::date AND service_order_id > $2 AND ($3::text IS NULL OR service_order_id <= $3)`,
    [month, after, last ?? null],
  );
  return rows.map(({ id }) => id);
}

async function idsIn(part: Buffer): Promise<Set<string>> {
  const ids = new Set<string>();
  for (const line of (await gunzip(part)).toString().trimEnd().split('\n')) {
    ids.add((JSON.parse(line) as { service_order_id: string }).service_order_id);
    if (ids.size % TURN === 0) await immediate();
  }
  return ids;
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
