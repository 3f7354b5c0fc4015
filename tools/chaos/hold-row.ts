import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';

const EVERY_MS = 200;

/**
 * Locks the rows of an order in a transaction that stays open, while its POS sends five webhooks a second about the
 * order. Resolves after `seconds`.
 * @param send sends one webhook; its answer is not awaited
 * @throws Error if the connection ends, which also ends the lock
 */
export async function holdRow(
  client: pg.ClientBase,
  serviceOrderId: string,
  seconds: number,
  send: () => Promise<unknown>,
): Promise<void> {
  const until = performance.now() + seconds * 1_000;
  await client.query('BEGIN');
  await client.query('SELECT FROM orders WHERE service_order_id = $1 FOR UPDATE', [serviceOrderId]);
  await client.query('SELECT FROM placements WHERE service_order_id = $1 FOR UPDATE', [serviceOrderId]);
  while (performance.now() < until) {
    void send().catch(() => {});
    await sleep(EVERY_MS);
    await client.query('SELECT');
  }
  await client.query('ROLLBACK');
}
