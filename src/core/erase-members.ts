import type { ClientBase, Pool } from 'pg';
import { inBatches } from './in-batches.ts';
import { LOCK_ERASE_MEMBERS } from './locks.ts';

/** Few, since their orders are locked meanwhile. */
const BATCH = 100;
/** As long as an event can wait for its order at the most, in whole days and one for a night between. */
const DAYS_WAITED = 8;

/**
 * Erases member data `retentionDays` days after the end of its order, and what an operator was told about orders that
 * failed before they were fetched. One process at a time, in batches that each commit: a crash between two loses nothing.
 * @returns how many orders were erased
 */
export async function eraseMembers(pool: Pool, retentionDays: number): Promise<number> {
  const batches = { lock: LOCK_ERASE_MEMBERS, batch: BATCH };
  const orders = await inBatches(pool, batches, async (client) => {
    const { rows } = await client.query<{ service_order_id: string }>(
      `SELECT service_order_id FROM orders
       WHERE erased_at IS NULL AND ended_at < now() - make_interval(days => $1::int)
       ORDER BY ended_at LIMIT ${BATCH}`,
      [retentionDays],
    );
    return eraseOrders(
      client,
      rows.map((row) => row.service_order_id),
    );
  });
  await inBatches(pool, batches, async (client) => {
    const { rowCount } = await client.query(
      `UPDATE placements SET problem = NULL
       WHERE service_order_id = ANY (ARRAY(
         SELECT service_order_id FROM placements
         WHERE location_id IS NULL AND problem IS NOT NULL AND finished_at < now() - make_interval(days => $1::int)
         ORDER BY finished_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))`,
      [retentionDays],
    );
    return rowCount ?? 0;
  });
  return orders;
}

/**
 * Erases, in one of `inBatches`' transactions, all that may tell of the member of these orders; those that have not
 * ended, are erased, or are somebody's at this moment are left as they are: to wait for one would keep webhooks about
 * all the others waiting. The order itself stays, as a tombstone: it is not fetched again, and what
 * a webhook still says about it moves it and is not kept (see `applyDeliveries`).
 * @returns how many were erased
 */
export async function eraseOrders(client: ClientBase, serviceOrderIds: readonly string[]): Promise<number> {
  if (serviceOrderIds.length === 0) return 0;
  // Events that wait come before orders, as where they are re-driven.
  await client.query(
    `UPDATE parked_events e SET reason = NULL
     FROM provider_orders p JOIN orders o USING (service_order_id)
     WHERE p.service_order_id = ANY ($1::text[]) AND o.ended_at IS NOT NULL AND e.location_id = p.location_id
       AND e.integration = p.integration AND e.provider_order_id = p.provider_order_id`,
    [serviceOrderIds],
  );
  const { rows } = await client.query<{ service_order_id: string }>(
    `SELECT service_order_id FROM orders
     WHERE service_order_id = ANY ($1::text[]) AND ended_at IS NOT NULL AND erased_at IS NULL
     FOR UPDATE SKIP LOCKED`,
    [serviceOrderIds],
  );
  if (rows.length === 0) return 0;
  await client.query(ERASE, [rows.map((row) => row.service_order_id)]);
  return rows.length;
}

/** Of a delivery, all that came with it. That it came, when, and what became of it stays. */
const BLANK = `body = '', headers = '{}', sealed = NULL, reason = NULL`;

/** Blanks deliveries that turned out to be about erased orders. */
export async function blankDeliveries(
  client: ClientBase,
  deliveries: readonly { delivery_day: string; location_id: string; delivery_id: string }[],
): Promise<void> {
  await client.query(
    `UPDATE deliveries d SET ${BLANK}
     FROM unnest($1::date[], $2::text[], $3::uuid[]) AS k(day, location_id, id)
     WHERE d.day = k.day AND d.location_id = k.location_id AND d.id = k.id`,
    [
      deliveries.map((delivery) => delivery.delivery_day),
      deliveries.map((delivery) => delivery.location_id),
      deliveries.map((delivery) => delivery.delivery_id),
    ],
  );
}

/**
 * A statement of its own, after the lock: it sees whatever was committed about these orders. A delivery is found by
 * its day, which is that of its events, or some days before for one that waited; a webhook and its replays, whatever
 * became of them, have the same body.
 */
const ERASE = `
  WITH contents AS (
    DELETE FROM order_contents WHERE service_order_id = ANY ($1::text[])
  ), history AS (
    UPDATE status_events SET reason = NULL WHERE service_order_id = ANY ($1::text[]) AND reason IS NOT NULL
  ), live AS (
    UPDATE outbox SET reason = NULL WHERE service_order_id = ANY ($1::text[]) AND reason IS NOT NULL
  ), forward AS (
    UPDATE placements SET problem = NULL WHERE service_order_id = ANY ($1::text[]) AND problem IS NOT NULL
  ), calls AS (
    UPDATE placement_attempts SET error = NULL WHERE service_order_id = ANY ($1::text[]) AND error IS NOT NULL
  ), heard AS MATERIALIZED (
    SELECT d.day, d.location_id, d.id, coalesce(d.replay_of, d.id) AS root,
           (coalesce(d.first_received_at, d.received_at) AT TIME ZONE 'UTC')::date AS root_day
    FROM (SELECT DISTINCT o.location_id, e.delivery_id, (e.recorded_at AT TIME ZONE 'UTC')::date - ago AS day
          FROM status_events e JOIN orders o USING (service_order_id) CROSS JOIN generate_series(-1, ${DAYS_WAITED}) AS ago
          WHERE e.service_order_id = ANY ($1::text[]) AND e.delivery_id IS NOT NULL) AS k
    JOIN deliveries d ON d.day = k.day AND d.location_id = k.location_id AND d.id = k.delivery_id
  ), webhooks AS (
    UPDATE deliveries d SET ${BLANK}
    FROM (SELECT day, location_id, id FROM heard
          UNION SELECT root_day, location_id, root FROM heard
          UNION SELECT r.day, r.location_id, r.id
                FROM heard h JOIN deliveries r ON r.replay_of = h.root AND r.day >= h.root_day) AS k
    WHERE d.day = k.day AND d.location_id = k.location_id AND d.id = k.id
  )
  UPDATE orders SET reason = NULL, erased_at = now() WHERE service_order_id = ANY ($1::text[])`;
