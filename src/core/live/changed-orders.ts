import type { Pool } from 'pg';
import { RANK_END } from '../domain/lifecycle.ts';

/**
 * Looks at what has changed since the look before: by order, the highest sequence of its new messages, or null where it
 * ended without one. Undefined if there was no look within a minute: anything may have changed.
 */
export type ChangedOrders = () => Promise<ReadonlyMap<string, number | null> | undefined>;

/** For how long a message takes to commit, as a rule: a look starts so far below the one before. */
const COMMIT_S = 1;
/** The longest transaction. */
const SLOW_COMMIT_S = 60;
/** Now and then a look starts that far below. */
const WIDE_EVERY_MS = 10_000;

type Seen = { server: string; horizon: string; at: string };
type Row = Seen & { id: string | null; sequence: number | null };

/**
 * Makes a look at all orders of all processes. What it costs grows with what happens, not with who follows: messages lie
 * in the outbox until the topic has them, and then beside it, and both are read by time. A transaction's number tells
 * which of them are new, as long as it is one server's: a failover gives some anew.
 */
export function changedOrders(pool: Pool): ChangedOrders {
  let seen: (Seen & { lookedAt: number }) | undefined;
  /** Of looks far back, which have a number of their own: the others have gone on since, and not seen what took long. */
  let wide: { horizon: string | undefined; nextAt: number } = { horizon: undefined, nextAt: -Infinity };
  /** Whether the look before was at the server of the one before it. */
  let isSame = false;

  return async () => {
    const lookedAt = performance.now();
    const since = seen !== undefined && lookedAt - seen.lookedAt < SLOW_COMMIT_S * 1_000 ? seen : undefined;
    const isWide = !isSame || lookedAt >= wide.nextAt;
    const horizon = isSame ? (isWide ? wide : since)?.horizon : undefined;
    isSame = false;
    const { rows } = await pool.query<Row>(LOOK, [
      since?.at ?? null,
      isWide ? SLOW_COMMIT_S : COMMIT_S,
      horizon ?? null,
    ]);
    const [row] = rows;
    if (row === undefined) return undefined;
    if (isWide) wide = { horizon: row.horizon, nextAt: lookedAt + WIDE_EVERY_MS };
    isSame = seen === undefined || row.server === seen.server;
    seen = { server: row.server, horizon: row.horizon, at: row.at, lookedAt };
    if (since === undefined) return undefined;
    return new Map(rows.flatMap(({ id, sequence }) => (id === null ? [] : [[id, sequence]])));
  };
}

const isFresh = (row: string): string => `($3::xid8 IS NULL OR age(${row}.xmin) <= age($3::xid8::xid))`;
/** Both bounds, since of a table that is not analyzed yet Postgres takes a third to be above one, and reads it whole. */
const isLate = (time: string): string =>
  `${time} BETWEEN $1::timestamptz - make_interval(secs => $2::float) AND 'infinity'`;

/** Without a name, and so planned for its times, as they are. Without a time before, it reads nothing. */
const LOOK = `
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
