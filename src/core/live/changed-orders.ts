import type { Pool } from 'pg';
import { RANK_END } from '../domain/lifecycle.ts';

/**
 * Reads which orders changed since the previous read. The map has the highest sequence of each order's new messages, or
 * null if the order ended without a final status. Returns undefined if any order may have changed: at the first read,
 * and if the previous read is more than a minute old.
 */
export type ChangedOrders = () => Promise<ReadonlyMap<string, number | null> | undefined>;

/** Seconds within which a commit usually becomes visible. A read also covers this time before the previous read. */
const COMMIT_S = 1;
/** Maximum duration of a transaction, in seconds. */
const SLOW_COMMIT_S = 60;
/** The interval of wide reads, which also cover `SLOW_COMMIT_S` before the previous read. */
const WIDE_EVERY_MS = 10_000;

type Seen = { server: string; horizon: string; at: string };
type Row = Seen & { id: string | null; sequence: number | null };

/**
 * Creates a reader of changes by all processes. Its cost depends on the number of changes, not on the number of
 * followers. Messages are in `outbox` until they are published, then in `live_messages`, and both are read by time.
 * Transaction ids show which messages are new, but only on one server, because a failover reuses some ids.
 */
export function changedOrders(pool: Pool): ChangedOrders {
  let seen: (Seen & { readAt: number }) | undefined;
  /** Wide reads have their own horizon (the oldest open transaction), because other reads skip slow commits. */
  let wide: { horizon: string | undefined; nextAt: number } = { horizon: undefined, nextAt: -Infinity };
  /** Whether the last two reads were on the same server. */
  let isSame = false;

  return async () => {
    const readAt = performance.now();
    const since = seen !== undefined && readAt - seen.readAt < SLOW_COMMIT_S * 1_000 ? seen : undefined;
    const isWide = !isSame || readAt >= wide.nextAt;
    const horizon = isSame ? (isWide ? wide : since)?.horizon : undefined;
    isSame = false;
    const { rows } = await pool.query<Row>(CHANGES, [
      since?.at ?? null,
      isWide ? SLOW_COMMIT_S : COMMIT_S,
      horizon ?? null,
    ]);
    const [row] = rows;
    if (row === undefined) return undefined;
    if (isWide) wide = { horizon: row.horizon, nextAt: readAt + WIDE_EVERY_MS };
    isSame = seen === undefined || row.server === seen.server;
    seen = { server: row.server, horizon: row.horizon, at: row.at, readAt };
    if (since === undefined) return undefined;
    return new Map(rows.flatMap(({ id, sequence }) => (id === null ? [] : [[id, sequence]])));
  };
}

const isFresh = (row: string): string => `($3::xid8 IS NULL OR age(${row}.xmin) <= age($3::xid8::xid))`;
/** The range has two bounds. With one, Postgres expects a third of a new table to match, and scans the whole table. */
const isLate = (time: string): string =>
  `${time} BETWEEN $1::timestamptz - make_interval(secs => $2::float) AND 'infinity'`;

/** The statement is not prepared: it is planned for the actual times. Without a previous time it finds no order. */
const CHANGES = `
  -- guard: slow-commit
  SELECT pg_postmaster_start_time()::text AS server, pg_snapshot_xmin(pg_current_snapshot())::text AS horizon,
         to_json(now()) #>> '{}' AS at, changed.*
  FROM (SELECT) AS once
  LEFT JOIN (
    SELECT service_order_id AS id, CASE WHEN bool_and(sequence IS NOT NULL) THEN max(sequence) END AS sequence
    FROM (
      SELECT service_order_id, sequence FROM outbox m WHERE ${isLate('applied_at')} AND ${isFresh('m')}
      UNION ALL
      SELECT service_order_id, sequence FROM live_messages m WHERE ${isLate('published_at')} AND ${isFresh('m')}
      UNION ALL
      SELECT service_order_id, NULL FROM orders o
      WHERE ${isLate('ended_at')} AND erased_at IS NULL AND rank < ${RANK_END} AND ${isFresh('o')}
    ) AS each
    GROUP BY service_order_id
  ) AS changed ON true`;
