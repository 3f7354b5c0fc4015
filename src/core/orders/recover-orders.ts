/**
 * Recovers what this database lost when it was restored from a backup, or when a failover lost commits. The platform's
 * signals name every order since then, and our own live messages say how far each order had come.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { rankOf, RANK_END, RANK_PLACED, RANK_SENT } from '../domain/lifecycle.ts';
import type { LiveMessage } from '../domain/live-message.ts';
import { problemOf } from '../domain/explain-cause.ts';
import { uuidV7 } from '../domain/uuid-v7.ts';
import type { TranslatedWebhook } from '../domain/webhook.ts';
import { raiseSequences } from '../live/outbox.ts';
import { settingsDecrypter, type SettingsRules } from '../locations/locations.ts';
import type { Author } from '../operators/audit.ts';
import { storeOrderRef } from '../transitions/placement-outcomes.ts';
import { NEXT_DOUBT_SINCE } from '../transitions/placement-sql.ts';
import { ensureWebhookPartitions } from '../postgres/ensure-webhook-partitions.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { timeNow } from '../replay/replay-webhook.ts';
import { replayWebhooks } from '../replay/replay-webhooks.ts';
import { applyWebhooks } from '../statuses/apply-webhooks.ts';
import { NEEDS_OPERATOR } from './needs-operator.ts';
import { NEEDS } from './needs-person.ts';

/** What the topics know of one order. */
export type LostOrder = {
  serviceOrderId: string;
  /** When its first signal or message was published. */
  knownAt: Date;
  /** When its last signal was published. */
  signalledAt?: Date;
  /** Its furthest live message, if there is one. */
  last?: LiveMessage;
  highest?: number;
  /** Set if a message proves that the POS has the ticket. The POS id is empty if no message names it. */
  ticket?: { providerOrderId?: string };
};

/** Rows of one statement. Postgres cancels statements after 8 s. */
const CHUNK = 2_000;
/** Pause while a running process ends its calls. */
const BUSY_POLL_MS = 500;
const RESTORED = problemOf({ code: 'restored' });

/** Adds one live message to what is known of its order. */
export function learn(known: LostOrder, message: LiveMessage): LostOrder {
  const { status, memberState, sequence, providerOrderId } = message;
  const { last, highest = 0 } = known;
  const proves = memberState === 'sent' || (status !== null && status !== 'failed' && status !== 'cancelled');
  return {
    ...known,
    last: last !== undefined && reachedBy(last) > reachedBy(message) ? last : message,
    highest: Math.max(highest, sequence),
    ...((known.ticket !== undefined || proves) && {
      ticket: { ...known.ticket, ...(providerOrderId !== undefined && { providerOrderId }) },
    }),
  };
}

type Named = { id: string; publishedAt: Date };

/**
 * Gathers what is known of each order.
 * @param about.listed orders that a person names
 * @param about.until live messages of this time or later were made by the recovery, and say nothing about the loss
 */
export function knownFrom(about: {
  listed?: readonly Named[];
  signals: readonly Named[];
  live: readonly { message: LiveMessage; publishedAt: Date }[];
  until: Date;
}): LostOrder[] {
  const known = new Map<string, LostOrder>();
  const add = ({ id, publishedAt }: Named): LostOrder => {
    const order = known.get(id) ?? { serviceOrderId: id, knownAt: publishedAt };
    known.set(id, order);
    return order;
  };
  for (const each of about.listed ?? []) add(each);
  for (const each of about.signals) {
    const order = add(each);
    const { signalledAt = each.publishedAt } = order;
    order.signalledAt = new Date(Math.max(signalledAt.getTime(), each.publishedAt.getTime()));
  }
  for (const { message, publishedAt } of about.live) {
    if (new Date(message.appliedAt) >= about.until) continue;
    const id = message.serviceOrderId;
    known.set(id, learn(add({ id, publishedAt }), message));
  }
  return [...known.values()];
}

/** The rank of a message. An order that failed before it was read may start again, so that failure is the lowest. */
function reachedBy({ locationId, status, memberState }: LiveMessage): number {
  if (locationId === undefined) return -1;
  return status === null ? (memberState === 'sent' ? RANK_SENT : RANK_PLACED) : rankOf(status);
}

/**
 * The row to record of an order that is unknown here. An order that had ended stays ended. One that had failed before it
 * was read was never sent, so a signal may begin it again, unless a later signal has done so already. One that was
 * cancelled before it was read stays cancelled. Any other may have been sent.
 */
function recordOf({ serviceOrderId, knownAt, signalledAt, last, highest: sequence = 0, ticket }: LostOrder): object {
  const { status = null, locationId, appliedAt = '', reason, fulfillment = 'pickup', callOutCode = '' } = last ?? {};
  const order = { serviceOrderId, knownAt, sequence, problem: reason };
  if (status === null || rankOf(status) < RANK_END) return { ...order, locationId, state: 'in_doubt' };
  if (locationId === undefined) {
    if (status === 'cancelled') return { ...order, state: 'withdrawn' };
    const isBegunAgain = signalledAt !== undefined && signalledAt > new Date(appliedAt);
    return { ...order, state: isBegunAgain ? 'in_doubt' : 'failed' };
  }
  const state = ticket !== undefined ? 'sent' : status === 'cancelled' ? 'withdrawn' : 'failed';
  const { providerOrderId = last?.providerOrderId } = ticket ?? {};
  const read = { locationId, fulfillment, callOutCode, rank: rankOf(status), reason, providerOrderId };
  return { ...order, ...read, state, endedAt: appliedAt };
}

export type Recorded = { forgotten: number; ended: number; doubted: number };

/**
 * The first step. A new recovery raises the sequences, polls all POS systems, and puts every unfinished order in doubt
 * that may have been sent after the backup: its ticket is then looked up at the POS, or repeated if the POS deduplicates,
 * and never sent as a new order. Each run records forgotten orders in the same way, except that an order which had ended
 * stays ended, and refreshes the others: an earlier run may have read the wrong topic.
 * @param about.began when the recovery began, as a text of Postgres
 * @param about.running true if processes run meanwhile: their calls end first
 */
export async function recordLost(
  pool: Pool,
  orders: readonly LostOrder[],
  { deadlineS, running, began, isNew }: { deadlineS: number; running: boolean; began: string; isNew: boolean },
): Promise<Recorded> {
  if (isNew) await raiseSequences(pool);
  await ensureWebhookPartitions(pool);
  let doubted = 0;
  for (let more = isNew; more;) {
    const step = await pool.query<{ marked: number; busy: boolean }>(MARK_UNFINISHED, [
      RESTORED.problem,
      RESTORED.cause,
      began,
      CHUNK,
      running,
      deadlineS,
    ]);
    doubted += step.rows[0]?.marked ?? 0;
    more = (step.rows[0]?.marked ?? 0) === CHUNK || step.rows[0]?.busy === true;
    if (step.rows[0]?.busy === true) await sleep(BUSY_POLL_MS);
  }
  let [forgotten, ended] = [0, 0];
  // guard: every-run-records
  for (const chunk of chunksOf(orders)) {
    const recorded = await pool.query<{ forgotten: number; ended: number; revived: number }>(RECORD_FORGOTTEN, [
      JSON.stringify(chunk.map(recordOf)),
      deadlineS,
      RESTORED.problem,
      RESTORED.cause,
      began,
    ]);
    forgotten += recorded.rows[0]?.forgotten ?? 0;
    ended += recorded.rows[0]?.ended ?? 0;
    doubted += recorded.rows[0]?.revived ?? 0;
  }
  if (isNew) await pool.query(POLL_ALL);
  return { forgotten, ended, doubted };
}

/**
 * SQL that puts unfinished placements in doubt. The claim of a process that died with the old database is ignored, but
 * not the claim of a process that runs now ($5).
 */
const MARK_UNFINISHED = `
  WITH open AS MATERIALIZED (
    SELECT service_order_id, ($5::boolean AND lease_until > now()) IS TRUE AS busy
    FROM placements WHERE finished_at IS NULL AND state IN ('waiting', 'held') AND signalled_at < $3::timestamptz
    LIMIT $4::int
  ), marked AS (
    UPDATE placements p
    -- guard: restored-in-doubt
    SET state = 'in_doubt', problem = $1, cause = $2::jsonb, request_ended_at = now(), doubt_since = ${NEXT_DOUBT_SINCE},
        next_attempt_at = now(), lease_id = NULL, lease_until = NULL,
        deadline_at = greatest(deadline_at, now() + make_interval(secs => $6::int))
    FROM open WHERE p.service_order_id = open.service_order_id AND NOT open.busy AND p.finished_at IS NULL
      AND (NOT $5::boolean OR p.lease_until IS NULL OR p.lease_until <= now())
    RETURNING p.service_order_id, p.location_id
  ), known AS (
    UPDATE orders o SET integration = l.integration
    FROM marked m JOIN locations l USING (location_id)
    WHERE o.service_order_id = m.service_order_id AND o.integration IS NULL
  )
  SELECT (SELECT count(*)::int FROM marked) AS marked, EXISTS (SELECT FROM open WHERE busy) AS busy`;

/** SQL that records what is named by the topics and unknown here, and refreshes what is known. */
const RECORD_FORGOTTEN = `
  WITH named AS MATERIALIZED (
    SELECT n.*, "serviceOrderId" AS service_order_id, l.integration
    FROM jsonb_to_recordset($1::jsonb) AS n (
      "serviceOrderId" text, "knownAt" timestamptz, sequence int, state text, problem text, "locationId" text,
      fulfillment text, "callOutCode" text, rank int, reason text, "providerOrderId" text, "endedAt" timestamptz)
    LEFT JOIN locations l ON l.location_id = n."locationId"
  ), new AS (
    INSERT INTO placements (service_order_id, location_id, state, problem, cause, signalled_at, deadline_at,
                            request_ended_at, doubt_since, finished_at, last_notified_sequence)
    -- guard: forgotten-in-doubt
    SELECT service_order_id, "locationId", state, CASE WHEN state = 'in_doubt' THEN $3 ELSE problem END,
           CASE state WHEN 'in_doubt' THEN $4::jsonb
                      WHEN 'withdrawn' THEN CASE WHEN "locationId" IS NULL THEN '{"code": "order_cancelled"}'::jsonb END END,
           "knownAt",
           CASE WHEN state = 'in_doubt' THEN now() ELSE "knownAt" END + make_interval(secs => $2::int), now(),
           CASE WHEN state = 'in_doubt' THEN now() END, CASE WHEN state <> 'in_doubt' THEN coalesce("endedAt", now()) END,
           CASE WHEN state = 'in_doubt' OR "locationId" IS NULL THEN sequence ELSE 0 END
    FROM named n
    WHERE NOT EXISTS (SELECT FROM past_orders p WHERE p.service_order_id = n.service_order_id)
    ON CONFLICT DO NOTHING
    RETURNING service_order_id, state
  ), ended AS (
    INSERT INTO orders (service_order_id, location_id, integration, fulfillment, call_out_code, rank, sequence,
                        failed_by_us, provider_order_id, reason, ended_at)
    SELECT service_order_id, "locationId", integration, fulfillment, "callOutCode", rank, sequence, n.state <> 'sent',
           "providerOrderId", reason, "endedAt"
    -- guard: ended-is-read
    FROM named n JOIN new USING (service_order_id) WHERE "locationId" IS NOT NULL AND n.state <> 'in_doubt'
  ), ids AS (
    INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
    SELECT "locationId", integration, "providerOrderId", service_order_id FROM named JOIN new USING (service_order_id)
    WHERE "providerOrderId" IS NOT NULL AND integration IS NOT NULL
    ON CONFLICT DO NOTHING
  ), revived AS (
    -- These had failed before they were read, and before the recovery. A signal after the backup may have placed them.
    UPDATE placements p
    SET state = 'in_doubt', problem = $3, cause = $4::jsonb, finished_at = NULL, request_ended_at = now(),
        doubt_since = now(), next_attempt_at = now(), deadline_at = now() + make_interval(secs => $2::int),
        location_id = coalesce(location_id, n."locationId")
    FROM named n
    WHERE p.service_order_id = n.service_order_id AND n.state = 'in_doubt' AND p.state IN ('failed', 'withdrawn')
      AND coalesce(p.cause ->> 'code', '') NOT IN ('order_ended', 'order_cancelled') AND p.finished_at < $5::timestamptz
      AND NOT EXISTS (SELECT FROM orders o WHERE o.service_order_id = n.service_order_id)
    RETURNING 1
  ), located AS (
    -- These were not read before the backup. The platform may have moved them since they were sent.
    -- guard: unread-is-located
    UPDATE placements p SET location_id = n."locationId"
    FROM named n
    WHERE p.service_order_id = n.service_order_id AND p.state = 'in_doubt' AND p.location_id IS NULL
      AND n."locationId" IS NOT NULL AND p.signalled_at < $5::timestamptz
      AND (p.lease_until IS NULL OR p.lease_until <= now())
  ), refreshed AS (
    INSERT INTO refreshes (service_order_id)
    SELECT o.service_order_id FROM named JOIN orders o USING (service_order_id)
    WHERE o.ended_at IS NULL AND o.erased_at IS NULL
    ON CONFLICT DO NOTHING
  )
  SELECT (SELECT count(*) FILTER (WHERE state = 'in_doubt')::int FROM new) AS forgotten,
         (SELECT count(*) FILTER (WHERE state <> 'in_doubt')::int FROM new) AS ended,
         (SELECT count(*)::int FROM revived) AS revived`;

/** SQL that treats webhooks of every location with an open order as missing: its orders are polled for an hour. */
const POLL_ALL = `
  INSERT INTO location_polls (location_id, integration, next_poll_at, missed_at)
  SELECT l.location_id, l.integration, now(), now() FROM locations l
  WHERE EXISTS (SELECT FROM orders o WHERE o.location_id = l.location_id AND o.ended_at IS NULL)
  ON CONFLICT (location_id) DO UPDATE
    SET integration = excluded.integration, next_poll_at = excluded.next_poll_at, missed_at = excluded.missed_at`;

/**
 * Applies what the live messages said. An order whose ticket a message proves is not sent again. A status that members
 * saw and this database lost is applied like the answer to a poll. Safe to repeat, because an order has the highest
 * status that it ever received.
 * @returns the number of orders that changed
 */
export async function applyLost(pool: Pool, orders: readonly LostOrder[]): Promise<number> {
  let changed = 0;
  for (const chunk of chunksOf(orders.filter(({ last }) => last !== undefined))) {
    const byId = new Map(chunk.map((order) => [order.serviceOrderId, order]));
    const { rows } = await pool.query<Restored>(
      `SELECT o.service_order_id AS "serviceOrderId", o.location_id AS "locationId", o.rank, clock_timestamp() AS now,
              coalesce(o.integration, l.integration) AS integration, p.finished_at IS NULL AS unfinished
       FROM orders o JOIN placements p USING (service_order_id) LEFT JOIN locations l ON l.location_id = o.location_id
       WHERE o.service_order_id = ANY ($1::text[]) AND coalesce(o.integration, l.integration) IS NOT NULL`,
      [[...byId.keys()]],
    );
    const webhooks: TranslatedWebhook[] = [];
    for (const row of rows) {
      const order = byId.get(row.serviceOrderId);
      if (order?.last === undefined) continue;
      if (isBehind(order, row.rank)) {
        webhooks.push(toAnswer(row, order.last));
      } else if (order.ticket !== undefined && row.unfinished) {
        await storeOrderRef(pool, row.serviceOrderId, row.integration, order.ticket);
        changed += 1;
      }
    }
    if (webhooks.length > 0) await inTransaction(pool, (client) => applyWebhooks(client, webhooks));
    changed += webhooks.length;
  }
  return changed;
}

type Restored = {
  serviceOrderId: string;
  locationId: string;
  integration: string;
  rank: number;
  unfinished: boolean;
  now: Date;
};

const isBehind = ({ last }: LostOrder, rank: number): boolean =>
  last !== undefined && last.status !== null && rankOf(last.status) > rank;

function toAnswer({ serviceOrderId, locationId, integration, now }: Restored, last: LiveMessage): TranslatedWebhook {
  const { status, providerOrderId, reason, reasonCode, itemIds, occurredAt, trackingUrl } = last;
  const { estimatedReadyAt, estimatedDeliveryAt } = last;
  const event = {
    status: status ?? 'received',
    serviceOrderId,
    nativeStatus: 'recovered',
    ...(providerOrderId !== undefined && { providerOrderId }),
    ...(reason !== undefined && { reason }),
    ...(reasonCode !== undefined && { reasonCode }),
    ...(itemIds !== undefined && { itemIds }),
    ...(occurredAt !== undefined && { occurredAt }),
    ...(trackingUrl !== undefined && { trackingUrl }),
    ...(estimatedReadyAt !== undefined && { estimatedReadyAt }),
    ...(estimatedDeliveryAt !== undefined && { estimatedDeliveryAt }),
  };
  return {
    id: uuidV7(),
    locationId,
    integration,
    receivedAt: now,
    headers: {},
    body: Buffer.from(JSON.stringify([event])),
    truncated: false,
    polled: true,
    events: [event],
  };
}

/**
 * One run of a recovery: records what is missing, applies what the live messages said, and replays the webhooks that
 * matched no order when they came.
 * @param about.began when the recovery began, as a text of Postgres; undefined if it begins now
 * @param about.running true if processes run meanwhile
 */
export async function recoverOrders(
  pool: Pool,
  known: readonly LostOrder[],
  about: {
    rules: SettingsRules;
    lostFrom: Date;
    began: string | undefined;
    deadlineS: number;
    running: boolean;
    by: Author;
  },
): Promise<Recorded & { moved: number; replayed: number; left: Left }> {
  const { rules, lostFrom, deadlineS, running, by } = about;
  const isNew = about.began === undefined;
  const recorded = await recordLost(pool, known, {
    deadlineS,
    running,
    isNew,
    began: about.began ?? (await nowOf(pool)),
  });
  const moved = await applyLost(pool, known);
  const readAll = async (): Promise<Left> => readLeft(pool, known, about.began ?? (await nowOf(pool)));
  let left = await readAll();
  let replayed = 0;
  // Webhooks about forgotten orders were answered 200 since the loss. Their orders are known by now.
  if (left.orders.every(({ forOperator }) => forOperator)) {
    const { keys, publicUrl = '' } = rules;
    const deps = { pool, decryptSettings: settingsDecrypter(rules), keys, publicUrl, dryRun: false };
    const filter = { outcome: 'unmatched', since: lostFrom, until: await timeNow(pool), replayable: 'open' } as const;
    for await (const { replayed: one } of replayWebhooks(deps, filter, { by })) {
      if ('outcome' in one && one.outcome !== 'unmatched') replayed += 1;
    }
  }
  if (replayed > 0) left = await readAll();
  return { ...recorded, moved, replayed, left };
}

/** The time by Postgres's clock, as a text that keeps its microseconds. */
async function nowOf(pool: Pool): Promise<string> {
  return (await pool.query<{ now: string }>('SELECT clock_timestamp()::text AS now')).rows[0]?.now ?? '';
}

/** An order that is not settled. `forOperator`: nothing happens until a person acts. */
export type LeftOrder = {
  serviceOrderId: string;
  locationId: string | null;
  state: string;
  problem: string | null;
  forOperator: boolean;
  inDoubt: boolean;
};
export type Left = {
  orders: LeftOrder[];
  /** Members saw a later status than this database has. */
  behind: { serviceOrderId: string; locationId: string | null; status: string }[];
  floor: number | null;
  /** Locations with orders from before that nobody has reported about since. */
  silent: { locationId: string; orders: number }[];
};

/** Reads what is left to do. @param began when the recovery began, as a text of Postgres */
export async function readLeft(pool: Pool, orders: readonly LostOrder[], began: string): Promise<Left> {
  const ids = orders.map(({ serviceOrderId }) => serviceOrderId);
  const { rows } = await pool.query<LeftOrder>(
    `SELECT p.service_order_id AS "serviceOrderId", p.location_id AS "locationId", p.state, p.problem,
            ${NEEDS_OPERATOR} AS "forOperator", ${NEEDS.in_doubt} AS "inDoubt"
     FROM placements p LEFT JOIN orders o USING (service_order_id)
     WHERE p.finished_at IS NULL AND p.signalled_at < $1::timestamptz
        OR p.service_order_id = ANY ($2::text[]) AND (p.finished_at IS NULL OR ${NEEDS_OPERATOR})
     ORDER BY p.signalled_at, p.service_order_id`,
    [began, ids],
  );
  const known = new Map<string, { rank: number; locationId: string }>();
  for (const chunk of chunksOf(ids)) {
    const found = await pool.query<{ id: string; rank: number; locationId: string }>(
      'SELECT service_order_id AS id, rank, location_id AS "locationId" FROM orders WHERE service_order_id = ANY ($1::text[])',
      [chunk],
    );
    for (const { id, ...about } of found.rows) known.set(id, about);
  }
  const floor = await pool.query<{ floor: number }>('SELECT floor FROM sequence_floor');
  const silent = await pool.query<{ locationId: string; orders: number }>(
    `SELECT o.location_id AS "locationId", count(*)::int AS orders
     FROM orders o JOIN placements p USING (service_order_id)
     WHERE o.ended_at IS NULL AND o.rank >= ${RANK_SENT} AND o.updated_at < $1::timestamptz
       AND (p.polled_at > $1::timestamptz) IS NOT TRUE
     GROUP BY 1 ORDER BY 1`,
    [began],
  );
  return {
    orders: rows,
    behind: orders.flatMap((order) => {
      const about = known.get(order.serviceOrderId);
      if (about === undefined || !isBehind(order, about.rank)) return [];
      return [{ ...order, ...about, status: order.last?.status ?? '' }];
    }),
    floor: floor.rows[0]?.floor ?? null,
    silent: silent.rows,
  };
}

function chunksOf<Item>(items: readonly Item[]): Item[][] {
  return Array.from({ length: Math.ceil(items.length / CHUNK) }, (_, nth) =>
    items.slice(nth * CHUNK, (nth + 1) * CHUNK),
  );
}
