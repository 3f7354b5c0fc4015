import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import {
  inBatches,
  inTransaction,
  LOCK_ARCHIVE,
  LOCK_DELETE_AUDIT,
  LOCK_DELETE_GRANTS,
  LOCK_DELETE_LINKS,
  LOCK_DELETE_NOTICES,
  LOCK_DELETE_REFUSED,
  LOCK_DELETE_SESSIONS,
  LOCK_DELETE_TRAFFIC,
  LOCK_DELETE_UNMATCHED,
  LOCK_DROP_PARTITIONS,
  LOCK_END_ORDERS,
  tryLock,
} from '../postgres/transactions.ts';

const BATCH = 1_000;
/** Rows older than this time are deleted. `$1` is the retention in seconds. */
const LATEST = 'now() - make_interval(secs => $1::int)';

/** Statements that each delete at most one batch of old rows, by default of `BATCH` rows. */
type Rule = { lock: number; batch?: number; sql: readonly string[] };

/** The statement for a table without dependent rows. */
const oldest = (table: string, column: string, batch = BATCH): string => `
  DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ${table} WHERE ${column} < ${LATEST} ORDER BY ${column} LIMIT ${batch} FOR UPDATE SKIP LOCKED))`;

const webhooks = (which: string, order = ''): string => `
  WITH old AS MATERIALIZED (
    SELECT day, location_id, id FROM webhooks
    WHERE ${which} AND received_at < ${LATEST} AND day <= ((${LATEST}) AT TIME ZONE 'UTC')::date
    ${order} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
  )
  DELETE FROM webhooks d USING old
  WHERE d.day = old.day AND d.location_id = old.location_id AND d.id = old.id`;

/** Deletes old parked events and gives their webhook a reason. Webhooks with a reason stay for the full retention. */
const EXPIRE_EVENTS = `
  WITH gone AS (
    DELETE FROM parked_events WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM parked_events WHERE parked_at < ${LATEST}
      ORDER BY parked_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))
    RETURNING webhook_day, location_id, webhook_id
  ), parked AS MATERIALIZED (
    SELECT DISTINCT g.webhook_day, g.location_id, g.webhook_id
    FROM gone g CROSS JOIN LATERAL (
      SELECT d.outcome FROM webhooks d
      WHERE d.day = g.webhook_day AND d.location_id = g.location_id AND d.id = g.webhook_id
      OFFSET 0
    ) AS d
    WHERE d.outcome = 'parked'
  ), in_vain AS (
    UPDATE webhooks d SET outcome = 'unmatched', reason = 'its POS id never became ours'
    FROM parked p
    WHERE d.day = p.webhook_day AND d.location_id = p.location_id AND d.id = p.webhook_id
  )
  SELECT FROM gone`;

const RULES = {
  'deletion of unmatched webhooks': {
    lock: LOCK_DELETE_UNMATCHED,
    sql: [EXPIRE_EVENTS, webhooks(`outcome IN ('ignored', 'unmatched') AND reason IS NULL`, 'ORDER BY received_at')],
  },
  // The replay of a refused webhook is a separate webhook, and is not deleted here.
  'deletion of refused webhooks': { lock: LOCK_DELETE_REFUSED, sql: [webhooks(`cause ->> 'code' = 'old_token'`)] },
  'deletion of old traffic': { lock: LOCK_DELETE_TRAFFIC, batch: 5_000, sql: [oldest('traffic', 'minute', 5_000)] },
  'deletion of old sessions': { lock: LOCK_DELETE_SESSIONS, sql: [oldest('operator_sessions', 'expires_at')] },
  'deletion of old connect links': { lock: LOCK_DELETE_LINKS, sql: [oldest('connect_links', 'expires_at')] },
  // What they said about orders is deleted with them.
  'deletion of old notices': { lock: LOCK_DELETE_NOTICES, sql: [oldest('notice_messages', 'created_at')] },
  // A grant without a recent renewal is not used: its location has other settings now or is deleted.
  'deletion of old grants': {
    lock: LOCK_DELETE_GRANTS,
    sql: [oldest('credentials', 'granted_at'), oldest('former_settings', 'left_at')],
  },
  // This calls the owner's function: the service's role may not delete audit rows. It deletes one batch per call.
  'deletion of old audit': {
    lock: LOCK_DELETE_AUDIT,
    batch: 10_000,
    sql: ['SELECT FROM generate_series(1, delete_old_audit($1::int / 86400))'],
  },
} as const satisfies Record<string, Rule>;
export type Deletion = keyof typeof RULES;

/**
 * Deletes rows older than `keptS` seconds, one process at a time, in batches that each commit.
 * @returns the number of deleted rows for each statement
 */
export async function deleteOld(pool: Pool, name: Deletion, keptS: number): Promise<number[]> {
  const { sql, lock, batch = BATCH }: Rule = RULES[name];
  const counts: number[] = [];
  for (const statement of sql) {
    counts.push(await inBatches(pool, { lock, batch }, (client) => client.query(statement, [keptS])));
  }
  return counts;
}

/** Seconds without an event after which an order ends. A POS that reports no end has closed the order long before. */
const ORDER_END_S = 86_400;

/**
 * Ends orders without an event for a day, counted from the last event or the requested time. Nothing is published,
 * because the member has every status already. An order does not end while it may still be placed or an attempt runs.
 * An order that is held or in doubt does end. The next attempt to place it then fails and notifies the member, or
 * leaves the doubt to an operator. One process at a time does this, in one statement, so that orders are not locked for
 * longer.
 * @returns the number of orders ended
 */
export async function endOrders(pool: Pool): Promise<number> {
  const { rowCount } = await pool.query(
    `WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${LOCK_END_ORDERS}) AS mine)
     UPDATE orders SET ended_at = now()
     WHERE service_order_id = ANY (ARRAY(
       SELECT o.service_order_id FROM orders o
       WHERE (SELECT mine FROM turn)
         AND o.ended_at IS NULL
         -- Implied by the next condition, but checked in the index, so that rows of younger orders are not read.
         AND o.created_at < now() - make_interval(secs => $1::int)
         AND greatest(o.updated_at, o.requested_at) < now() - make_interval(secs => $1::int)
         AND NOT EXISTS (SELECT FROM status_events e
                         WHERE e.service_order_id = o.service_order_id
                           AND e.recorded_at >= now() - make_interval(secs => $1::int))
         AND NOT EXISTS (SELECT FROM placements p
                         WHERE p.service_order_id = o.service_order_id AND p.finished_at IS NULL
                           AND (p.state NOT IN ('in_doubt', 'held') OR p.lease_until > now()))
       LIMIT ${BATCH} FOR UPDATE OF o SKIP LOCKED))`,
    [ORDER_END_S],
  );
  return rowCount ?? 0;
}

/** The pause between two attempts, in which webhooks are committed. */
const REST_MS = 400;
/** The driver's own limit for a drop, instead of that of other statements. */
const DROP_MS = 3_600_000;
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * A table with partitions by time: the pattern and the times in their names, and the function that drops one. Partitions
 * are found by name, because a table that somebody detached by hand is no partition but still has its name.
 */
const PARTITIONED = {
  webhooks: { digits: 8, time: 'YYYYMMDD', drop: 'drop_webhook_partition', lock: LOCK_DROP_PARTITIONS },
  // The lock of the archive: no process compares a month with the archive while another drops it.
  past_orders: { digits: 6, time: 'YYYYMM', drop: 'drop_past_orders_partition', lock: LOCK_ARCHIVE },
} as const;
type Partitioned = keyof typeof PARTITIONED;

/**
 * Drops the partitions of a table that were over `retentionDays` days ago. Only one process does so at a time. Each drop
 * delays webhooks by at most the lock timeout of 100 ms and a few milliseconds.
 * @param archive called before each drop. If it returns false, another process does this work
 * @param patienceMs time for all attempts of a round
 * @returns the names of the dropped tables
 * @throws the first error, after all partitions were tried. One cannot be dropped while a session reads it or the whole
 *   table, or while an object depends on it. The next round tries again
 */
export async function dropOldPartitions(
  pool: Pool,
  table: Partitioned,
  retentionDays: number,
  { archive, patienceMs = 2_000 }: { archive?: (name: string) => Promise<boolean> | boolean; patienceMs?: number } = {},
): Promise<string[]> {
  const dropped: string[] = [];
  const failures: unknown[] = [];
  const giveUpAt = performance.now() + patienceMs;
  for (const name of await findOld(pool, table, retentionDays)) {
    try {
      if (archive && !(await archive(name))) break;
      const isDropped = await dropPatiently(pool, table, name, giveUpAt);
      // Another process does this work.
      if (isDropped === undefined) break;
      if (isDropped) dropped.push(name);
    } catch (error) {
      // A partition that cannot be dropped must not block others.
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return dropped;
}

async function dropPatiently(
  pool: Pool,
  table: Partitioned,
  name: string,
  giveUpAt: number,
): Promise<boolean | undefined> {
  for (;;) {
    try {
      return await drop(pool, table, name);
    } catch (error) {
      const isLocked = (error as { code?: string }).code === LOCK_NOT_AVAILABLE;
      if (!isLocked || performance.now() > giveUpAt) throw error;
      await sleep(REST_MS);
    }
  }
}

/** @returns false if it is already dropped, undefined if another process has the lock */
function drop(pool: Pool, table: Partitioned, name: string): Promise<boolean | undefined> {
  const { digits, time, drop: dropPartition, lock } = PARTITIONED[table];
  return inTransaction(pool, async (client) => {
    if (!(await tryLock(client, lock))) return undefined;
    // The tombstones of a large month take minutes. Nothing waits for them.
    await client.query('SET LOCAL statement_timeout = 0');
    const query = {
      text: `SELECT ${dropPartition}(to_date(right($1::text, ${digits}), '${time}')) AS dropped`,
      values: [name],
      query_timeout: DROP_MS,
    };
    const { rows } = await client.query<{ dropped: boolean }>(query);
    return rows[0]?.dropped === true;
  });
}

async function findOld(pool: Pool, table: Partitioned, retentionDays: number): Promise<string[]> {
  const { digits, time } = PARTITIONED[table];
  const { rows } = await pool.query<{ name: string }>(
    `SELECT c.relname AS name
     FROM pg_class parent
     JOIN pg_class c ON c.relnamespace = parent.relnamespace AND c.relkind = 'r'
       AND c.relname ~ '^${table}_\\d{${digits}}$'
     WHERE parent.oid = '${table}'::regclass
       AND c.relname::text < '${table}_' || to_char((now() AT TIME ZONE 'UTC')::date - $1::int, '${time}')
     ORDER BY c.relname`,
    [retentionDays],
  );
  return rows.map(({ name }) => name);
}
