import type { Pool } from 'pg';
import { inTransaction, LOCK_PARTITIONS } from './transactions.ts';

/** The first day with a partition. A clock may be behind, and a day ends while requests are under way. */
const FIRST_DAY = -1;
const LAST_DAY = 7;

/**
 * Makes the partitions of `webhooks` for the days around now, where they are missing. Blocks no webhooks.
 * @param times more days: a webhook from the spill may be older than all that is kept
 */
export async function ensureWebhookPartitions(pool: Pool, times: readonly Date[] = []): Promise<void> {
  await inTransaction(pool, async (client) => {
    // Longer than a batch writer's connection waits: nobody waits behind these locks.
    await client.query('SET LOCAL lock_timeout = 4000');
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK_PARTITIONS]);
    await client.query(
      `SELECT ensure_webhook_partition(day)
       FROM (SELECT (now() AT TIME ZONE 'UTC')::date + ahead AS day FROM generate_series($1::int, $2::int) AS ahead
             UNION SELECT (time AT TIME ZONE 'UTC')::date FROM unnest($3::timestamptz[]) AS time) AS days`,
      [FIRST_DAY, LAST_DAY, times],
    );
  });
}
