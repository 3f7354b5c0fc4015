import type { Pool } from 'pg';
import type { LiveRow } from '../domain/live-message.ts';
import { restAfter } from '../postgres/loops.ts';
import { nameParameters } from '../postgres/sql-rows.ts';
import { LIVE_ROW } from './outbox.ts';

export type OutboxRow = LiveRow & { attempts: number };

const LEASE_S = 10;
/** Time that a commit usually takes. A claim starts this long before the oldest row of the last claim. */
const COMMIT_MS = 250;
/** Every `SLOW_EVERY_MS` a claim starts this much earlier instead, to find slow commits. */
const SLOW_COMMIT_MS = 10_000;
const SLOW_EVERY_MS = 1_000;
/** Pause between two claims that read the whole outbox: `times` the duration of one, within these limits. */
const EVERYTHING_REST = { leastMs: 60_000, mostMs: 600_000, times: 200 };

/**
 * Creates a function that deletes published rows and claims each order's lowest row, oldest first, in one statement. It
 * starts at the oldest row of the last claim. All rows before that row are deleted, but an old snapshot may retain
 * hundreds of thousands of them.
 */
export function outboxClaimer(): (pool: Pool, published: readonly OutboxRow[], limit: number) => Promise<OutboxRow[]> {
  let oldest: Date | undefined;
  let slowAt = -Infinity;
  let everythingAt = -Infinity;

  const startOf = (now: number): Date | string => {
    if (oldest === undefined || now >= everythingAt) return '-infinity';
    return new Date(oldest.getTime() - (now >= slowAt ? SLOW_COMMIT_MS : COMMIT_MS));
  };

  return async (pool, published, limit) => {
    const began = performance.now();
    // guard: relay-start
    const since = startOf(began);
    if (began >= slowAt) slowAt = began + SLOW_EVERY_MS;
    try {
      const { rows } = await pool.query<{ oldest: Date; row: LiveRow | null; attempts: number }>({
        name: 'claim-outbox',
        text: CLAIM,
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
}

const { $, valuesOf } = nameParameters('limit', 'since', 'orders', 'sequences');

/** Reads the deleted rows, so that a statement deletes before it claims: two processes cannot wait for each other. */
const GONE = 'ALL (ARRAY(SELECT ctid FROM gone))';

/**
 * SQL of the `ctid` of rows. `OFFSET 0` forces index look-ups: the outbox is usually empty, and a plan cached then would
 * scan the outbox for every row when it is full. The arrays are in subqueries, so that Postgres does not know their
 * length and makes one plan for all lengths.
 * @param orders the SQL parameter with the orders' ids
 * @param sequences the one with their sequences
 */
export const rowsBy = (orders: string, sequences: string): string => `
  SELECT known.ctid
  FROM unnest((SELECT ${orders}::text[]), (SELECT ${sequences}::int[])) AS p (service_order_id, sequence)
  CROSS JOIN LATERAL (
    SELECT o.ctid FROM outbox o WHERE o.service_order_id = p.service_order_id AND o.sequence = p.sequence OFFSET 0
  ) AS known`;

/**
 * A published row that another process has claimed meanwhile may remain. That process publishes its message once more.
 */
const CLAIM = `
  WITH gone AS (
    DELETE FROM outbox WHERE ctid = ANY (ARRAY(${rowsBy($.orders, $.sequences)}))
    RETURNING ctid, service_order_id, sequence, rank, provider_order_id, applied_at, first_received_at
  ), stored AS (
    INSERT INTO live_messages (service_order_id, sequence, rank, provider_order_id, applied_at, first_received_at)
    SELECT service_order_id, sequence, rank, provider_order_id, applied_at, first_received_at FROM gone
    ORDER BY service_order_id, sequence
    ON CONFLICT DO NOTHING
  ), next AS (
    SELECT o.ctid
    FROM outbox o
    WHERE o.applied_at >= ${$.since}::timestamptz AND (o.lease_until IS NULL OR o.lease_until < now())
      AND o.ctid <> ${GONE}
      -- guard: stop-at-failed
      AND NOT EXISTS (SELECT FROM outbox e
                      WHERE e.service_order_id = o.service_order_id AND e.sequence < o.sequence AND e.ctid <> ${GONE}
                      OFFSET 0)
    ORDER BY o.applied_at
    LIMIT ${$.limit}
    FOR UPDATE SKIP LOCKED
  ), claimed AS (
    UPDATE outbox o
    SET lease_until = now() + make_interval(secs => ${LEASE_S}), attempts = o.attempts + 1
    WHERE o.ctid = ANY (ARRAY(SELECT ctid FROM next))
    RETURNING o.*
  )
  SELECT known.oldest, message.row, message.attempts
  FROM (
    SELECT coalesce((SELECT applied_at FROM outbox WHERE applied_at >= ${$.since}::timestamptz ORDER BY applied_at LIMIT 1), now())
      AS oldest
  ) AS known
  LEFT JOIN (
    SELECT ${LIVE_ROW} AS row, m.attempts
    FROM claimed m
    LEFT JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = m.service_order_id OFFSET 0) AS o ON true
  ) AS message ON true`;
