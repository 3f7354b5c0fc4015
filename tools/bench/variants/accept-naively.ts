import type { Pool, PoolClient } from 'pg';
import type { TranslatedWebhook, WebhookOutcome } from '../../../src/core/domain/webhook.ts';
import { inTransaction } from '../../../src/core/postgres/transactions.ts';
import { RANK_END, rankOf } from '../../../src/core/domain/lifecycle.ts';
import type { StatusEvent } from '../../../src/core/domain/order.ts';

/**
 * Takes a webhook in the obvious way: a transaction of five statements, with the decisions in JavaScript. Statements
 * have parameters but no names, so Postgres plans them each time. It writes the same rows as the service for an event
 * that names an order of ours. It does not handle rare cases.
 */
export function acceptNaively(pool: Pool): (webhook: TranslatedWebhook) => Promise<WebhookOutcome> {
  return (webhook) =>
    inTransaction(pool, async (client) => {
      const [event] = webhook.events;
      if (event === undefined) {
        const outcome = webhook.dropped === undefined ? 'ignored' : 'dropped';
        await store(client, webhook, outcome);
        return outcome;
      }
      return move(client, webhook, event);
    });
}

type OrderRow = {
  location_id: string;
  rank: number;
  sequence: number;
  provider_order_id: string | null;
};

async function move(client: PoolClient, webhook: TranslatedWebhook, event: StatusEvent): Promise<WebhookOutcome> {
  const { rows } = await client.query<OrderRow>(
    `SELECT location_id, rank, sequence, provider_order_id FROM orders
     WHERE service_order_id = $1 FOR UPDATE`,
    [event.serviceOrderId],
  );
  const order = rows[0];
  if (order?.location_id !== webhook.locationId) {
    await store(client, webhook, 'unmatched');
    return 'unmatched';
  }
  const rank = rankOf(event.status);
  const moves = rank > order.rank;
  const outcome = moves ? 'applied' : rank === order.rank ? 'duplicate' : 'stale';
  const sequence = moves ? order.sequence + 1 : null;
  await store(client, webhook, outcome, event.serviceOrderId);
  await client.query(
    `INSERT INTO status_events (service_order_id, webhook_id, status, native_status, outcome, sequence,
                                provider_order_id, reason, occurred_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      event.serviceOrderId,
      webhook.id,
      event.status,
      event.nativeStatus,
      outcome,
      sequence,
      event.providerOrderId,
      event.reason,
      event.occurredAt,
    ],
  );
  if (!moves) return outcome;
  await client.query(
    `UPDATE orders SET rank = $2, sequence = $3, reason = coalesce($4, reason), updated_at = now(),
       ended_at = CASE WHEN $5::boolean THEN now() END
     WHERE service_order_id = $1`,
    [event.serviceOrderId, rank, sequence, event.reason, rank >= RANK_END],
  );
  await client.query(
    `INSERT INTO outbox (service_order_id, sequence, rank, provider_order_id, reason, occurred_at)
     VALUES ($1, $2, $3, $4, $5, $6)`,
    [
      event.serviceOrderId,
      sequence,
      rank,
      event.providerOrderId ?? order.provider_order_id,
      event.reason,
      event.occurredAt,
    ],
  );
  return outcome;
}

async function store(
  client: PoolClient,
  webhook: TranslatedWebhook,
  outcome: WebhookOutcome,
  serviceOrderId?: string,
): Promise<void> {
  await client.query(
    `INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, sealed, body, zstd_of,
                             truncated, events, outcome, reason, cause, service_order_id)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
    [
      webhook.receivedAt.toISOString().slice(0, 10),
      webhook.locationId,
      webhook.id,
      webhook.integration,
      webhook.receivedAt,
      JSON.stringify(webhook.headers),
      webhook.sealed,
      webhook.body,
      webhook.zstdOf,
      webhook.truncated,
      webhook.events.length,
      outcome,
      webhook.dropped?.reason,
      webhook.dropped === undefined ? null : JSON.stringify(webhook.dropped.cause),
      serviceOrderId,
    ],
  );
}
