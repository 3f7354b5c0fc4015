/** Inserts the orders of a small stage: current and old ones. */
import type pg from 'pg';
import { RANK_END, RANK_SENT } from '../../src/core/domain/lifecycle.ts';

/** Inserts orders as if they had been placed and sent. */
export async function seedOrders(
  pool: pg.Pool,
  prefix: string,
  count: number,
  locationOf: (nth: number) => string,
): Promise<void> {
  const nths = Array.from({ length: count }, (_, nth) => nth);
  await pool.query(
    `INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence)
     SELECT id, 'K472', location_id, 'standard', 'pickup', ${RANK_SENT}, 2 FROM unnest($1::text[], $2::text[]) AS o(id, location_id)`,
    [nths.map((nth) => `${prefix}${nth}`), nths.map(locationOf)],
  );
}

/** Inserts old orders with all their stored data: contents, histories, and webhooks of three days. */
export async function seedPast(pool: pg.Pool, count: number): Promise<void> {
  await pool.query(
    `WITH past AS (
       SELECT nth, 'past-' || nth AS id, gen_random_uuid() AS webhook_id, current_date + nth % 3 - 1 AS day
       FROM generate_series(1, $1::int) AS nth
     ), o AS (
       INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence, ended_at)
       SELECT id, 'K472', 'club', 'standard', 'pickup', ${RANK_END}, 7, now() FROM past
     ), c AS (
       INSERT INTO order_contents (service_order_id, contents)
       SELECT id, jsonb_build_object('member', jsonb_build_object('name', repeat('x', 500))) FROM past
     ), e AS (
       INSERT INTO status_events (service_order_id, webhook_id, status, native_status, outcome, sequence)
       SELECT id, webhook_id, 'completed', 'COMPLETED', 'applied', 7 FROM past
     )
     INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome)
     SELECT day, 'club', webhook_id, 'standard', now(), '{}', convert_to(repeat('x', 400), 'UTF8'), 1, 'applied'
     FROM past`,
    [count],
  );
  await pool.query('ANALYZE');
}

export async function allGone(pool: pg.Pool, say: (line: string) => void): Promise<void> {
  const { rows } = await pool.query<{ contents: number; webhooks: number }>(
    `SELECT (SELECT count(*)::int FROM order_contents) AS contents,
            (SELECT count(*)::int FROM webhooks WHERE location_id = 'club') AS webhooks`,
  );
  say(`  left of the past: ${JSON.stringify(rows[0])}`);
}
