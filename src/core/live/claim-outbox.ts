import type { Pool } from 'pg';
import type { LiveRow, Way } from '../domain/live-message.ts';
import { restAfter } from '../postgres/loops.ts';
import { nameParameters } from '../postgres/sql-rows.ts';
import { LIVE_ROW } from './outbox.ts';
import { isStopped } from './status-endpoint.ts';

export type OutboxRow = LiveRow & { attempts: number };

/** The columns of each way, and its lease, which is longer than a call. */
export const WAYS = {
  topic: { done: 'topic_done', lease: 'lease_until', attempts: 'attempts', leaseS: 10 },
  webhook: { done: 'webhook_done', lease: 'webhook_lease_until', attempts: 'webhook_attempts', leaseS: 30 },
} as const;

/** @param isOnly true if a message is done when this way has taken it */
type ClaimAbout = { way: Way; isOnly: boolean; endpoint?: string | undefined };

/** Time that a commit usually takes. A claim starts this long before the oldest row of the last claim. */
const COMMIT_MS = 250;
/** Every `SLOW_EVERY_MS` a claim starts this much earlier instead, to find slow commits. */
const SLOW_COMMIT_MS = 10_000;
const SLOW_EVERY_MS = 1_000;
/** Pause between two claims that read the whole outbox: `times` the duration of one, within these limits. */
const EVERYTHING_REST = { leastMs: 60_000, mostMs: 600_000, times: 200 };

type Which = 'oldest' | 'untried' | 'least';

/**
 * @param isDown true if the way looks down. The oldest rows may be messages that the receiver refuses, and the others would
 *   wait for them. So the claim takes a row that was never tried; without one, a row that was tried least
 */
type ClaimOutbox = (
  pool: Pool,
  published: readonly OutboxRow[],
  limit: number,
  isDown?: boolean,
) => Promise<OutboxRow[]>;

/**
 * Creates a function that deletes published rows and claims each order's lowest row, oldest first, in one statement. It
 * starts at the oldest row of the last claim. All rows before that row are deleted, but an old snapshot may retain
 * hundreds of thousands of them. With two ways, a row is marked for its way, and deleted when both have taken it.
 */
export function outboxClaimer(about: ClaimAbout): ClaimOutbox {
  const texts = {
    oldest: claimBy(about, 'oldest'),
    untried: claimBy(about, 'untried'),
    least: claimBy(about, 'least'),
  };
  let oldest: Date | undefined;
  let slowAt = -Infinity;
  let everythingAt = -Infinity;

  const startOf = (now: number): Date | string => {
    if (oldest === undefined || now >= everythingAt) return '-infinity';
    return new Date(oldest.getTime() - (now >= slowAt ? SLOW_COMMIT_MS : COMMIT_MS));
  };

  const claim = async (
    pool: Pool,
    published: readonly OutboxRow[],
    limit: number,
    pick: Which,
  ): Promise<OutboxRow[]> => {
    const began = performance.now();
    // guard: relay-start
    const since = startOf(began);
    if (began >= slowAt) slowAt = began + SLOW_EVERY_MS;
    try {
      if (oldest === undefined && about.isOnly) await forgetOtherWay(pool, about.way);
      const { rows } = await pool.query<{ oldest: Date; row: LiveRow | null; attempts: number }>({
        name: `${about.way === 'topic' ? 'claim-outbox' : 'claim-outbox-for-webhook'}${pick === 'oldest' ? '' : `-${pick}`}`,
        text: texts[pick],
        values: valuesOf({
          limit,
          since,
          orders: published.map((row) => row.serviceOrderId),
          sequences: published.map((row) => row.sequence),
        }),
      });
      oldest = rows[0]?.oldest;
      return rows.flatMap(({ row, attempts }) => (row === null ? [] : [{ ...row, attempts }]));
    } finally {
      if (since === '-infinity') {
        const ended = performance.now();
        everythingAt = ended + restAfter(ended - began, EVERYTHING_REST);
      }
    }
  };

  return async (pool, published, limit, isDown) => {
    // guard: untried-while-down
    const pick = isDown ? 'untried' : 'oldest';
    const rows = await claim(pool, published, limit, pick);
    return rows.length === 0 && limit > 0 && pick === 'untried' ? claim(pool, [], limit, 'least') : rows;
  };
}

const { $, valuesOf } = nameParameters('limit', 'since', 'orders', 'sequences');

/** Rows that one statement deletes because all ways have taken them. */
const DONE_AT_ONCE = 500;

const MOVED = 'service_order_id, sequence, rank, provider_order_id, applied_at, first_received_at';
const STORED = `
    INSERT INTO live_messages (${MOVED}) SELECT ${MOVED} FROM gone ORDER BY service_order_id, sequence
    ON CONFLICT DO NOTHING`;

/** Takes out the messages that wait only for a way which is not used any more. Otherwise they would be sent again. */
async function forgetOtherWay(pool: Pool, way: Way): Promise<void> {
  for (;;) {
    const { rowCount } = await pool.query(
      `WITH gone AS (
         DELETE FROM outbox WHERE ctid = ANY (ARRAY(
           SELECT ctid FROM outbox WHERE ${WAYS[way].done} LIMIT ${DONE_AT_ONCE} FOR UPDATE SKIP LOCKED))
         RETURNING ${MOVED}
       )${STORED}`,
    );
    if ((rowCount ?? 0) < DONE_AT_ONCE) return;
  }
}

/**
 * SQL of the `ctid` of rows. `OFFSET 0` forces index look-ups: the outbox is usually empty, and a plan cached then would
 * scan the outbox for every row when it is full. The arrays are in subqueries, so that Postgres does not know their
 * length and makes one plan for all lengths.
 * @param orders the SQL parameter with the orders' ids
 * @param sequences the one with their sequences
 */
const rowsBy = (orders: string, sequences: string): string => `
  SELECT known.ctid
  FROM unnest((SELECT ${orders}::text[]), (SELECT ${sequences}::int[])) AS p (service_order_id, sequence)
  CROSS JOIN LATERAL (
    SELECT o.ctid FROM outbox o WHERE o.service_order_id = p.service_order_id AND o.sequence = p.sequence OFFSET 0
  ) AS known`;

/**
 * SQL of a condition for rows `o` of the outbox that are updated. The other way may change such a row meanwhile. Then its
 * `ctid` is another, and Postgres would skip the row. All such updates lock rows in the order of their keys.
 */
// guard: row-by-key
export const isRowOf = (orders: string, sequences: string): string => `
  o.service_order_id = ANY ((SELECT ${orders}::text[])::text[]) AND o.sequence = ANY ((SELECT ${sequences}::int[])::int[])
  AND o.sequence || ' ' || o.service_order_id = ANY (ARRAY(
    SELECT p.sequence || ' ' || p.id FROM unnest(${orders}::text[], ${sequences}::int[]) AS p (id, sequence)))`;

/**
 * SQL that takes the published rows out of the outbox. If there are two ways, both may mark a row at the same moment, so
 * the rows that are done are deleted by the next claim, which sees both marks.
 */
const takeOut = ({ way, isOnly }: ClaimAbout): string => {
  const published = `published AS MATERIALIZED (${rowsBy($.orders, $.sequences)})`;
  if (isOnly) {
    return `${published}, gone AS (
    DELETE FROM outbox WHERE ctid = ANY (ARRAY(SELECT ctid FROM published)) RETURNING ${MOVED}
  ), first AS (SELECT count(*) FROM gone)`;
  }
  return `${published}, gone AS (
    DELETE FROM outbox WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM outbox WHERE topic_done AND webhook_done LIMIT ${DONE_AT_ONCE} FOR UPDATE SKIP LOCKED))
    RETURNING ${MOVED}
  ), marked AS (
    -- guard: marked-by-way
    UPDATE outbox o SET ${WAYS[way].done} = true WHERE ${isRowOf($.orders, $.sequences)} RETURNING 1
  ), first AS (SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM marked))`;
};

/**
 * A published row that another process has claimed meanwhile may remain. That process publishes its message once more.
 * `first` is read so that a statement takes out rows before it claims: two processes cannot wait for each other.
 */
const claimBy = (about: ClaimAbout, pick: Which): string => {
  const { done, lease, attempts, leaseS } = WAYS[about.way];
  const isOpen = (row: string): string => (about.isOnly ? 'true' : `NOT ${row}.${done}`);
  const isOn = about.endpoint === undefined ? 'true' : `NOT ${isStopped(about.endpoint)}`;
  const taken = 'ALL (ARRAY(SELECT ctid FROM published, first))';
  return `
  WITH ${takeOut(about)}, stored AS (${STORED}
  ), next AS (
    SELECT o.ctid
    FROM outbox o
    WHERE o.applied_at >= ${$.since}::timestamptz AND (o.${lease} IS NULL OR o.${lease} < now()) AND ${isOpen('o')}
      AND ${isOn} AND ${pick === 'untried' ? `o.${attempts} = 0` : 'true'}
      AND o.ctid <> ${taken}
      -- guard: stop-at-failed
      AND NOT EXISTS (SELECT FROM outbox e
                      WHERE e.service_order_id = o.service_order_id AND e.sequence < o.sequence AND ${isOpen('e')}
                        AND e.ctid <> ${taken}
                      OFFSET 0)
    ORDER BY ${pick === 'least' ? `o.${attempts}, ` : ''}o.applied_at
    LIMIT ${$.limit}
    FOR UPDATE SKIP LOCKED
  ), claimed AS (
    UPDATE outbox o
    SET ${lease} = now() + make_interval(secs => ${leaseS}), ${attempts} = o.${attempts} + 1
    WHERE o.ctid = ANY (ARRAY(SELECT ctid FROM next))
    RETURNING o.*
  )
  SELECT known.oldest, message.row, message.attempts
  FROM (
    SELECT coalesce((SELECT applied_at FROM outbox o WHERE applied_at >= ${$.since}::timestamptz AND ${isOpen('o')}
                     ORDER BY applied_at LIMIT 1), now()) AS oldest
  ) AS known
  LEFT JOIN (
    SELECT ${LIVE_ROW} AS row, m.${attempts} AS attempts
    FROM claimed m
    LEFT JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = m.service_order_id OFFSET 0) AS o ON true
  ) AS message ON true`;
};
