import type { ClientBase, Pool } from 'pg';
import { inTransaction, LOCK_PARTITIONS } from './transactions.ts';

/**
 * The partitions begin with yesterday's. A webhook may still belong to yesterday if a clock is behind, or if the day
 * ended while the request was under way.
 */
const FIRST_DAY = -1;
const LAST_DAY = 7;

/**
 * Creates missing partitions of `webhooks` for the days around now. This blocks no webhook.
 * @param times the times whose days are created too: a webhook from the spill may be older than all stored days
 */
export async function ensureWebhookPartitions(pool: Pool, times: readonly Date[] = []): Promise<void> {
  await inTransaction(pool, (client) => createWebhookPartitions(client, times));
}

/** Does the same within the transaction of a client. */
export async function createWebhookPartitions(client: ClientBase, times: readonly Date[] = []): Promise<void> {
  // A batch writer's connection has a shorter lock timeout. Waiting longer here is harmless: it blocks no webhook.
  await client.query('SET LOCAL lock_timeout = 4000');
  await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK_PARTITIONS]);
  await client.query(
    `SELECT ensure_webhook_partition(day)
     FROM (SELECT (now() AT TIME ZONE 'UTC')::date + ahead AS day FROM generate_series($1::int, $2::int) AS ahead
           UNION SELECT (time AT TIME ZONE 'UTC')::date FROM unnest($3::timestamptz[]) AS time) AS days`,
    [FIRST_DAY, LAST_DAY, times],
  );
}
