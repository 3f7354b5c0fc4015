import type { Pool } from 'pg';

/**
 * Creates a sampler of how long Postgres has been unable to remove dead rows. The reason may be a session with an old
 * snapshot, a prepared transaction, a replication slot, or a standby that reports its own snapshot. For some of these,
 * such as sessions of another role, Postgres shows no start. Their time counts from the first sample that saw them.
 * @returns seconds; 0 if nothing prevents the removal
 */
export function vacuumHolder(): (pool: Pool) => Promise<number> {
  let seen: { xid: string; at: number } | undefined;
  return async (pool) => {
    const { rows } = await pool.query<{ xid: string; seconds: number | null }>(OLDEST);
    const oldest = rows[0];
    if (oldest === undefined) {
      seen = undefined;
      return 0;
    }
    if (seen?.xid !== oldest.xid) seen = { xid: oldest.xid, at: performance.now() };
    return Math.max(oldest.seconds ?? 0, (performance.now() - seen.at) / 1_000);
  };
}

/** Leaves out Postgres's own sessions, which have no user, and sessions of other databases, which do no harm here. */
const OLDEST = `
  SELECT xid::text, extract(epoch FROM now() - began)::float8 AS seconds
  FROM (
    SELECT CASE WHEN age(backend_xid) > age(backend_xmin) THEN backend_xid ELSE coalesce(backend_xmin, backend_xid) END
             AS xid, xact_start AS began
    FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND usesysid IS NOT NULL AND (datname IS NULL OR datname = current_database())
    UNION ALL
    SELECT transaction, prepared FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL
    SELECT xmin, NULL FROM pg_replication_slots
  ) AS holder
  WHERE age(xid) > 0
  ORDER BY age(xid) DESC, began
  LIMIT 1`;
