import type { Pool } from 'pg';
import { inTransaction } from './in-transaction.ts';
import { LOCK_PARTITIONS } from './locks.ts';

/** The first day with a partition. A clock may be behind, and a day ends while requests are under way. */
const FIRST_DAY = -1;
const LAST_DAY = 7;

/**
 * Makes the partitions of `webhooks` for the days around now. A partition is made separately and then attached, which
 * does not block webhooks; `CREATE TABLE … PARTITION OF` would.
 */
export async function ensureWebhookPartitions(pool: Pool): Promise<void> {
  await inTransaction(pool, async (client) => {
    // Longer than a flusher's connection waits: nobody waits behind these locks.
    await client.query('SET LOCAL lock_timeout = 4000');
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK_PARTITIONS]);
    const { rows } = await client.query<{ name: string; first: string; after: string }>(
      `SELECT 'webhooks_' || to_char(day, 'YYYYMMDD') AS name, day::date::text AS first, (day::date + 1)::text AS after
       FROM generate_series((now() AT TIME ZONE 'UTC')::date + $1::int, (now() AT TIME ZONE 'UTC')::date + $2::int,
                            interval '1 day') AS day
       WHERE NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                         WHERE i.inhparent = 'webhooks'::regclass
                           AND c.relname = 'webhooks_' || to_char(day, 'YYYYMMDD'))`,
      [FIRST_DAY, LAST_DAY],
    );
    for (const { name, first, after } of rows) {
      // An existing table is a day that was detached and not dropped. It becomes a partition again, with its rows.
      await client.query(`CREATE TABLE IF NOT EXISTS ${name} (LIKE webhooks INCLUDING ALL)`);
      await client.query(`ALTER TABLE webhooks ATTACH PARTITION ${name} FOR VALUES FROM ('${first}') TO ('${after}')`);
    }
  });
}
