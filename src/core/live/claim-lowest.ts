import type { Pool } from 'pg';
import type { LiveRow } from '../domain/live-message.ts';
import { restAfter } from '../postgres/loops.ts';
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
 * Creates a function that claims each order's lowest unpublished row, oldest first. It starts at the oldest row of the
 * last claim. All rows before that row are deleted, but an old snapshot may retain hundreds of thousands of them.
 */
export function lowestClaimer(): (pool: Pool, limit: number) => Promise<OutboxRow[]> {
  let oldest: Date | undefined;
  let slowAt = -Infinity;
  let everythingAt = -Infinity;

  const startOf = (now: number): Date | string => {
    if (oldest === undefined || now >= everythingAt) return '-infinity';
    return new Date(oldest.getTime() - (now >= slowAt ? SLOW_COMMIT_MS : COMMIT_MS));
  };

  return async (pool, limit) => {
    const began = performance.now();
    // guard: relay-start
    const since = startOf(began);
    if (began >= slowAt) slowAt = began + SLOW_EVERY_MS;
    try {
      const { rows } = await pool.query<{ oldest: Date; row: LiveRow | null; attempts: number }>({
        name: 'claim-outbox',
        text: CLAIM,
        values: [limit, since],
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

/**
 * `OFFSET 0` forces index look-ups. The outbox is usually empty, and a plan cached then would scan the outbox and
 * `orders` for every row when the outbox is full.
 */
const CLAIM = `
  WITH lowest AS (
    SELECT o.ctid
    FROM outbox o
    WHERE o.applied_at >= $2::timestamptz AND (o.lease_until IS NULL OR o.lease_until < now())
      -- guard: stop-at-failed
      AND NOT EXISTS (SELECT FROM outbox e
                      WHERE e.service_order_id = o.service_order_id AND e.sequence < o.sequence
                      OFFSET 0)
    ORDER BY o.applied_at
    LIMIT $1
    FOR UPDATE SKIP LOCKED
  ), claimed AS (
    UPDATE outbox o
    SET lease_until = now() + make_interval(secs => ${LEASE_S}), attempts = o.attempts + 1
    WHERE o.ctid = ANY (ARRAY(SELECT ctid FROM lowest))
    RETURNING o.*
  )
  SELECT known.oldest, message.row, message.attempts
  FROM (
    SELECT coalesce((SELECT applied_at FROM outbox WHERE applied_at >= $2::timestamptz ORDER BY applied_at LIMIT 1), now())
      AS oldest
  ) AS known
  LEFT JOIN (
    SELECT ${LIVE_ROW} AS row, m.attempts
    FROM claimed m
    LEFT JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = m.service_order_id OFFSET 0) AS o ON true
  ) AS message ON true`;
