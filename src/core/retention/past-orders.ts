import { setImmediate as immediate } from 'node:timers/promises';
import type { ClientBase, Pool } from 'pg';
import { statusAt, type Status } from '../domain/lifecycle.ts';
import type { Log } from '../domain/log.ts';
import { inBatchOrOneByOne, LOCK_MOVE_ORDERS, restSince } from '../postgres/transactions.ts';
import { packOrder, readerOf, type Reader } from './pack-order.ts';

/** Orders per batch. They stay locked for the whole batch, but a webhook about such an old order is rare. */
export const MOVE_BATCH = 200;
/** Days from an erasure to the move. Whatever began before the erasure has ended. */
export const REST_DAYS = 1;

/** Days from the end of a month of past orders to its drop. Its orders were current for the other days. */
export function daysPast(about: { HISTORY_DAYS: number; PII_RETENTION_DAYS: number }): number {
  return Math.max(0, about.HISTORY_DAYS - about.PII_RETENTION_DAYS - REST_DAYS);
}

type Candidate = { serviceOrderId: string; signalledAt: string };

/**
 * Moves orders to `past_orders` a day after their member data was erased, so that the tables of open and recent orders
 * stay small. All rows of an order become one packed row there. An order stays while something about it is unfinished.
 * One process at a time does this, in batches that each commit, so a crash loses nothing.
 * @param about.log receives the orders that could not be moved; the next round tries them again
 * @returns the number of orders moved
 */
export async function movePastOrders(
  pool: Pool,
  piiDays: number,
  about: { log?: Log; stopping?: AbortSignal } = {},
): Promise<number> {
  const days = piiDays + REST_DAYS;
  let moved = 0;
  let after: Candidate | undefined;
  for (;;) {
    const began = performance.now();
    const oldest = await oldestOrders(pool, days, after);
    const count = about.stopping?.aborted ? undefined : await moveBatch(pool, days, oldest, about.log);
    if (count === undefined) return moved;
    moved += count;
    after = oldest.at(-1);
    if (oldest.length < MOVE_BATCH) return moved;
    await restSince(began);
  }
}

function moveBatch(
  pool: Pool,
  days: number,
  orders: readonly Candidate[],
  log: Log | undefined,
): Promise<number | undefined> {
  return inBatchOrOneByOne(
    pool,
    LOCK_MOVE_ORDERS,
    orders,
    (client, some) => moveOrders(client, days, some),
    (order, err) => log?.error({ serviceOrderId: order?.serviceOrderId, err }, 'a past order could not be moved'),
  );
}

/** Each batch starts after the last order of the previous batch, so orders that stay are passed over. */
async function oldestOrders(pool: Pool, days: number, after: Candidate | undefined): Promise<Candidate[]> {
  const { rows } = await pool.query<Candidate>(
    `SELECT service_order_id AS "serviceOrderId", signalled_at::text AS "signalledAt" FROM placements
     WHERE signalled_at < now() - make_interval(days => $1::int)
       AND ($2::timestamptz IS NULL OR (signalled_at, service_order_id) > ($2::timestamptz, $3::text))
     ORDER BY signalled_at, service_order_id LIMIT ${MOVE_BATCH}`,
    [days, after?.signalledAt ?? null, after?.serviceOrderId ?? null],
  );
  return rows;
}

type Past = {
  service_order_id: string;
  location_id: string | null;
  provider_order_id: string | null;
  signalled_at: string;
  state: string;
  rank: number | null;
  last_notified_sequence: number;
  rows: string;
};

const THIS_MONTH = `date_trunc('month', now() AT TIME ZONE 'UTC')::date`;

async function moveOrders(client: ClientBase, days: number, candidates: readonly Candidate[]): Promise<number> {
  if (candidates.length === 0) return 0;
  const { rows: past } = await client.query<Past>(
    `SELECT service_order_id, location_id, provider_order_id, signalled_at::text, state, rank,
            last_notified_sequence, rows
     FROM take_past_orders($1::int, $2::text[])`,
    [days, candidates.map((each) => each.serviceOrderId)],
  );
  if (past.length === 0) return 0;
  const packed: Buffer[] = [];
  for (const [nth, { rows }] of past.entries()) {
    packed.push(packOrder(rows));
    // Webhooks are answered in between.
    if (nth % 20 === 0) await immediate();
  }
  await client.query(`SELECT ensure_past_orders_partition(${THIS_MONTH})`);
  const { rowCount } = await client.query(
    `INSERT INTO past_orders (month, service_order_id, location_id, provider_order_id, signalled_at, state, rank,
                              last_notified_sequence, packed)
     SELECT ${THIS_MONTH}, r.service_order_id, r.location_id, r.provider_order_id, r.signalled_at, r.state, r.rank,
            r.last_notified_sequence, u.packed
     FROM json_populate_recordset(NULL::past_orders, $1::json) AS r
     JOIN unnest($2::text[], $3::bytea[]) AS u (id, packed) ON u.id = r.service_order_id`,
    [JSON.stringify(past.map(({ rows: _rows, ...about }) => about)), past.map((each) => each.service_order_id), packed],
  );
  if (rowCount !== past.length) throw new Error(`${rowCount} of ${past.length} orders were packed`);
  return past.length;
}

/**
 * SQL that ends the placement of a late signal about a past order, so that the order is not placed a second time. An order
 * that was never read may be placed. It is true for a past order.
 */
export const forgetPastOrder = (serviceOrderId: string, leaseId: string): string =>
  `forget_past_order(${serviceOrderId}, ${leaseId})`;

/** Finds a past order. @returns a reader of its rows, or undefined if there is none */
export async function findPastOrder(pool: Pool, serviceOrderId: string): Promise<Reader | undefined> {
  const { rows } = await pool.query<{ packed: Buffer }>(
    'SELECT packed FROM past_orders WHERE service_order_id = $1 ORDER BY month DESC LIMIT 1',
    [serviceOrderId],
  );
  return rows[0] && readerOf(pool, [rows[0].packed]);
}

/** What is left of a past order whose month was dropped. */
export type Tombstone = { locationId: string; status: Status | null; month: string };

/** @returns the tombstone. Its month is that of the move, such as 2027-01 */
export async function findTombstone(pool: Pool, serviceOrderId: string): Promise<Tombstone | undefined> {
  const { rows } = await pool.query<{ locationId: string; rank: number; month: string }>(
    `SELECT location_id AS "locationId", rank, to_char(month, 'YYYY-MM') AS month FROM find_tombstone($1)`,
    [serviceOrderId],
  );
  return rows[0] && { locationId: rows[0].locationId, status: statusAt(rows[0].rank), month: rows[0].month };
}
