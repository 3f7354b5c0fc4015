import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase, Pool, QueryResult } from 'pg';
import { inBatches, inBatchOrOneByOne, LOCK_ERASE_MEMBERS, restSince } from '../postgres/transactions.ts';
import type { Log } from '../domain/log.ts';
import type { PlacementState } from '../domain/placement.ts';

/** Orders per batch. They are few, because they stay locked for the whole batch. */
export const ERASE_BATCH = 100;
/**
 * Time limit of a statement. Webhooks about these orders wait for it, and other webhooks behind them. So it must be
 * below the 1.4 s that the endpoint waits.
 */
const PATIENCE_MS = 1_000;
/**
 * SQL for the days on which the webhook of an event `e` may be stored. Its UUIDv7 has the time of arrival, by the clock
 * of the machine that received it. The event may have been recorded long after that. If the clock was wrong, the day is
 * near the day on which the event was recorded.
 */
export const WEBHOOK_DAYS = `LATERAL (
  SELECT day + around AS day
  FROM (VALUES
    ((to_timestamp(('x' || translate(left(e.webhook_id::text, 13), '-', ''))::bit(48)::bigint / 1000.0) AT TIME ZONE 'UTC')::date),
    ((e.recorded_at AT TIME ZONE 'UTC')::date)) AS near(day), generate_series(-1, 1) AS around
) AS days`;

/**
 * Erases member data `retentionDays` days after its order ended, and the problem texts of orders that failed before
 * they were fetched. One process at a time, in batches that each commit, so a crash loses nothing.
 * @param log receives the orders that could not be erased; the next round tries them again
 * @returns the number of orders erased
 */
export async function eraseMembers(pool: Pool, retentionDays: number, log?: Log): Promise<number> {
  const orders = await eraseEnded(pool, retentionDays, log);
  const batches = { lock: LOCK_ERASE_MEMBERS, batch: ERASE_BATCH };
  await inBatches(pool, batches, (client) => client.query(ERASE_PROBLEMS, [retentionDays]));
  await inBatches(pool, batches, (client) => client.query(DELETE_NOTES, [retentionDays]));
  return orders;
}

const ERASE_PROBLEMS = `
  WITH failed AS MATERIALIZED (
    SELECT service_order_id FROM placements
    WHERE location_id IS NULL AND problem IS NOT NULL AND finished_at < now() - make_interval(days => $1::int)
    ORDER BY finished_at LIMIT ${ERASE_BATCH} FOR UPDATE SKIP LOCKED
  ), events AS (
    UPDATE status_events SET reason = NULL, item_ids = NULL
    WHERE service_order_id = ANY (ARRAY(SELECT service_order_id FROM failed))
  )
  UPDATE placements SET problem = NULL WHERE service_order_id = ANY (ARRAY(SELECT service_order_id FROM failed))`;

/** An operator may have written about an order after its erasure, or about a location. */
const DELETE_NOTES = `
  DELETE FROM notes WHERE note_id = ANY (ARRAY(
    SELECT note_id FROM notes WHERE at < now() - make_interval(days => $1::int) ORDER BY at LIMIT ${ERASE_BATCH}))`;

type Ended = { serviceOrderId: string; endedAt: string };

/** Each batch starts after the last order of the previous batch, so an order that cannot be erased blocks no other. */
async function eraseEnded(pool: Pool, retentionDays: number, log: Log | undefined): Promise<number> {
  let erased = 0;
  let after: Ended | undefined;
  for (;;) {
    const began = performance.now();
    const { rows }: QueryResult<Ended> = await pool.query<Ended>(
      `SELECT service_order_id AS "serviceOrderId", ended_at::text AS "endedAt" FROM orders
       WHERE erased_at IS NULL AND ended_at < now() - make_interval(days => $1::int)
         AND ($2::timestamptz IS NULL OR (ended_at, service_order_id) > ($2::timestamptz, $3::text))
       ORDER BY ended_at, service_order_id LIMIT ${ERASE_BATCH}`,
      [retentionDays, after?.endedAt ?? null, after?.serviceOrderId ?? null],
    );
    const ids = rows.map((row) => row.serviceOrderId);
    const count = await eraseBatch(pool, ids, { log });
    if (count === undefined) return erased;
    erased += count;
    after = rows.at(-1);
    if (rows.length < ERASE_BATCH) return erased;
    await restSince(began);
  }
}

/**
 * Erases orders with `eraseOrders`: all together, or one by one if that fails.
 * @returns undefined if another process has the lock
 */
export function eraseBatch(
  pool: Pool,
  ids: readonly string[],
  about: { log?: Log | undefined; sent?: boolean },
): Promise<number | undefined> {
  return inBatchOrOneByOne(
    pool,
    LOCK_ERASE_MEMBERS,
    ids,
    async (client, some) => {
      await client.query(`SET LOCAL statement_timeout = ${PATIENCE_MS}`);
      return eraseOrders(client, some, about.sent);
    },
    (serviceOrderId, err) =>
      about.log?.error({ serviceOrderId, err }, 'the member data of an order could not be erased'),
  );
}

/**
 * Erases, in a transaction of `inBatch`, all member data of these orders. It skips orders that have not ended, are
 * erased already, or are locked, because a wait for a lock would block webhooks about the other orders. The order's row
 * stays, so the order is not fetched again, and a webhook still moves it but is stored without contents (see
 * `applyWebhooks`).
 * @param sent true to include orders that have not ended but are at their POS, because nothing needs their contents now
 * @returns the number of orders erased
 */
export async function eraseOrders(
  client: ClientBase,
  serviceOrderIds: readonly string[],
  sent = false,
): Promise<number> {
  if (serviceOrderIds.length === 0) return 0;
  const isOver = `(o.ended_at IS NOT NULL OR $2::boolean AND EXISTS (
    SELECT FROM placements f WHERE f.service_order_id = o.service_order_id AND f.finished_at IS NOT NULL))`;
  // Parked events are locked before orders, as in the redrive. The opposite sequence could deadlock with it.
  await client.query(
    `UPDATE parked_events e SET reason = NULL, reason_details = reason_details - 'itemIds', tracking = NULL
     FROM provider_orders p JOIN orders o USING (service_order_id)
     WHERE p.service_order_id = ANY ($1::text[]) AND ${isOver} AND e.location_id = p.location_id
       AND e.integration = p.integration AND e.provider_order_id = p.provider_order_id`,
    [serviceOrderIds, sent],
  );
  const { rows } = await client.query<{ service_order_id: string }>(
    `SELECT service_order_id FROM orders o
     WHERE service_order_id = ANY ($1::text[]) AND ${isOver} AND erased_at IS NULL
     FOR UPDATE SKIP LOCKED`,
    [serviceOrderIds, sent],
  );
  if (rows.length === 0) return 0;
  await client.query(ERASE, [rows.map((row) => row.service_order_id)]);
  return rows.length;
}

/** SQL that removes all content of a webhook. Its row, time of arrival and outcome stay. */
const BLANK = `body = '', headers = '{}', sealed = NULL, reason = NULL, cause = NULL`;

/** SQL that blanks the webhooks of `keys`, their originals and all replays. */
const blanking = (keys: string): string => `heard AS MATERIALIZED (
    SELECT d.day, d.location_id, d.id, coalesce(d.replay_of, d.id) AS root,
           (coalesce(d.first_received_at, d.received_at) AT TIME ZONE 'UTC')::date AS root_day
    FROM (${keys}) AS k
    JOIN webhooks d ON d.day = k.day AND d.location_id = k.location_id AND d.id = k.webhook_id
  ), webhooks AS (
    UPDATE webhooks d SET ${BLANK}
    FROM (SELECT day, location_id, id FROM heard
          UNION SELECT root_day, location_id, root FROM heard
          UNION SELECT r.day, r.location_id, r.id
                FROM heard h JOIN webhooks r ON r.replay_of = h.root AND r.day >= h.root_day) AS k
    WHERE d.day = k.day AND d.location_id = k.location_id AND d.id = k.id
  )`;

export async function blankWebhooks(
  client: ClientBase,
  webhooks: readonly { webhook_day: string; location_id: string; webhook_id: string }[],
): Promise<void> {
  const keys = 'SELECT * FROM unnest($1::date[], $2::text[], $3::uuid[]) AS u(day, location_id, webhook_id)';
  await client.query(`WITH ${blanking(keys)} SELECT`, [
    webhooks.map((webhook) => webhook.webhook_day),
    webhooks.map((webhook) => webhook.location_id),
    webhooks.map((webhook) => webhook.webhook_id),
  ]);
}

/**
 * SQL that erases orders, in a separate statement after the lock, so that it sees all commits about them. It finds a
 * webhook by its day, or by an event that is still parked. Replays are blanked too, because they have the same body.
 */
const ERASE = `
  WITH contents AS (
    DELETE FROM order_contents WHERE service_order_id = ANY ($1::text[])
  ), changes AS (
    DELETE FROM order_changes WHERE service_order_id = ANY ($1::text[])
  ), notes AS (
    DELETE FROM notes WHERE service_order_id = ANY ($1::text[])
  ), to_cancel AS (
    UPDATE cancellations SET problem = NULL, fails_with = fails_with - 'reason'
    WHERE service_order_id = ANY ($1::text[]) AND (problem IS NOT NULL OR fails_with IS NOT NULL)
  ), history AS (
    UPDATE status_events SET reason = NULL, item_ids = NULL
    WHERE service_order_id = ANY ($1::text[]) AND (reason IS NOT NULL OR item_ids IS NOT NULL)
  ), live AS (
    UPDATE outbox SET reason = NULL WHERE service_order_id = ANY ($1::text[]) AND reason IS NOT NULL
  ), forward AS (
    UPDATE placements SET problem = NULL WHERE service_order_id = ANY ($1::text[]) AND problem IS NOT NULL
  ), calls AS (
    UPDATE placement_attempts SET error = NULL WHERE service_order_id = ANY ($1::text[]) AND error IS NOT NULL
  ), ${blanking(`
    SELECT DISTINCT o.location_id, e.webhook_id, days.day
    FROM status_events e JOIN orders o USING (service_order_id) CROSS JOIN ${WEBHOOK_DAYS}
    WHERE e.service_order_id = ANY ($1::text[]) AND e.webhook_id IS NOT NULL
      -- Webhooks of earlier days are already deleted, so older events of a long history are not read.
      AND e.recorded_at >= (SELECT (min(day) - 1)::timestamp AT TIME ZONE 'UTC' FROM webhooks)
    UNION
    SELECT w.location_id, w.webhook_id, w.webhook_day
    FROM provider_orders p JOIN parked_events w USING (location_id, integration, provider_order_id)
    WHERE p.service_order_id = ANY ($1::text[])`)}
  UPDATE orders SET reason = NULL, item_ids = NULL, tracking = NULL, erased_at = now() WHERE service_order_id = ANY ($1::text[])`;

/** Time to wait for locks. A webhook locks an order for milliseconds, the hourly erasure of members for seconds. */
const ONE_MEMBER_PATIENCE_MS = 20_000;
const RETRY_MS = 200;

/** The result in order ids, which contain no member data. */
export type ErasedMember = {
  /** Erased orders, or in a dry run the orders that would be erased. */
  erased: string[];
  /** Orders whose contents remain, and why. The caller should try again. */
  left: { serviceOrderId: string; reason: string }[];
};

/**
 * Erases one member's data, regardless of the retention, in all orders that have ended or are at their POS. An order
 * that is not at its POS yet keeps its contents, because they are needed to place it. Orders without contents are not
 * searched, because they are erased already and name no member.
 */
export async function eraseMember(pool: Pool, memberId: string, dryRun: boolean): Promise<ErasedMember> {
  const giveUpAt = performance.now() + ONE_MEMBER_PATIENCE_MS;
  const tried = new Set<string>();
  for (;;) {
    const orders = await ordersOf(pool, memberId);
    const ready = orders.filter((order) => order.isOver).map((order) => order.serviceOrderId);
    for (const id of ready) tried.add(id);
    if (ready.length === 0 || dryRun || performance.now() > giveUpAt) {
      const kept = dryRun ? orders.filter((order) => !order.isOver) : orders;
      const left = kept.map(({ serviceOrderId, ...order }) => ({ serviceOrderId, reason: reasonLeft(order) }));
      const isLeft = new Set(left.map((order) => order.serviceOrderId));
      return { erased: [...tried].filter((id) => !isLeft.has(id)), left };
    }
    let count = 0;
    for (let from = 0; from < ready.length; from += ERASE_BATCH) {
      count += (await eraseBatch(pool, ready.slice(from, from + ERASE_BATCH), { sent: true })) ?? 0;
    }
    // The other orders were locked and are tried again.
    if (count < ready.length) await sleep(RETRY_MS);
  }
}

type MembersOrder = { serviceOrderId: string; isOver: boolean; state: PlacementState | null };

async function ordersOf(pool: Pool, memberId: string): Promise<MembersOrder[]> {
  const { rows } = await pool.query<MembersOrder>(
    `SELECT c.service_order_id AS "serviceOrderId", p.state,
            o.ended_at IS NOT NULL OR p.finished_at IS NOT NULL AS "isOver"
     FROM order_contents c
     JOIN orders o USING (service_order_id)
     LEFT JOIN placements p USING (service_order_id)
     WHERE (c.contents #>> '{member,id}') COLLATE "C" = $1::text
     ORDER BY c.service_order_id`,
    [memberId],
  );
  return rows;
}

function reasonLeft({ isOver, state }: Omit<MembersOrder, 'serviceOrderId'>): string {
  if (isOver) return 'it could not be erased now; try again';
  return `it is ${(state ?? 'waiting').replace('_', ' ')}, and its contents are needed to place it`;
}
