import pg from 'pg';
import { RANK_SENT } from '../../../src/core/domain/lifecycle.ts';
import type { Sender } from '../stage/prepare-bench-database.ts';

/** The id of the nth order, from 0 on. It is as long as a UUID, which ordering platforms usually use. */
export function orderId(nth: number): string {
  return `order-${String(nth).padStart(30, '0')}`;
}

/** The sender whose location has the nth order. */
export function senderOf<Each>(senders: readonly Each[], nth: number): Each {
  const sender = senders[nth % senders.length];
  if (sender === undefined) throw new Error('there are no senders');
  return sender;
}

/** Empties every table that webhooks fill, and adds `count` orders that were just sent to their POS as `pos-<n>`. */
export async function seedOrders(databaseUrl: string, senders: readonly Sender[], count: number): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    await client.query(
      'TRUNCATE orders, order_contents, provider_orders, placements, status_events, parked_events, webhooks, outbox CASCADE',
    );
    await client.query(
      `INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence, provider_order_id)
       SELECT 'order-' || lpad(nth::text, 30, '0'), 'K472', ($1::text[])[nth % $2::int + 1], 'standard', 'pickup', ${RANK_SENT}, 2,
              'pos-' || nth
       FROM generate_series(0, $3::int - 1) AS nth`,
      [senders.map((sender) => sender.locationId), senders.length, count],
    );
    await client.query(
      `INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
       SELECT location_id, integration, provider_order_id, service_order_id FROM orders`,
    );
    // Does the work of autovacuum now, so that autovacuum does not run during a measurement.
    await client.query('VACUUM (ANALYZE) orders, provider_orders, outbox, status_events, webhooks');
  } finally {
    await client.end();
  }
}

/** Adds `events` events without effect to the history of each order: first one event of each, then the next of each. */
export async function seedHistory(databaseUrl: string, orders: number, events: number): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    await client.query(
      `INSERT INTO status_events (service_order_id, status, native_status, outcome, provider_order_id)
       SELECT 'order-' || lpad(nth::text, 30, '0'), 'received', 'received', 'stale', 'pos-' || nth
       FROM generate_series(1, $1::int), generate_series(0, $2::int - 1) AS nth`,
      [events, orders],
    );
    await client.query('VACUUM (ANALYZE) status_events');
  } finally {
    await client.end();
  }
}
