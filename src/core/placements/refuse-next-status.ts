import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { RANK_SENT } from '../domain/lifecycle.ts';
import { insertOutbox } from '../live/outbox.ts';
import { nextSequence } from '../live/sequence-floor.ts';
import { withClient } from '../postgres/with-client.ts';

/** A webhook that cannot be committed tries again and again, 150 ms each. Postgres waits 10 s for our next word. */
const LOOK_MS = 50;
/** Longer than a webhook is tried (1.4 s), so that its sender is answered 500. */
const HELD_MS = 2_000;
/** The longest transaction, beside a service at work. */
const ONE_MS = 30_000;

/**
 * Makes that the next webhook that would move an order cannot be committed, is answered 500, and has to come again. It
 * has to wait for the place of its live message, which a transaction of ours holds and then gives back. Other orders,
 * and webhooks that move nothing, go on.
 * @param onHeld called once it is so
 * @param signal ends it
 * @returns whether a webhook was refused
 */
export async function refuseNextStatus(
  pool: Pool,
  serviceOrderId: string,
  onHeld: () => void,
  signal: AbortSignal,
): Promise<boolean> {
  return withClient(pool, async (client) => {
    while (!signal.aborted) if (await refuseOnce(client, serviceOrderId, onHeld, signal)) return true;
    return false;
  });
}

/** Of one transaction, which no longer holds back vacuum then. */
async function refuseOnce(
  client: PoolClient,
  serviceOrderId: string,
  onHeld: () => void,
  signal: AbortSignal,
): Promise<boolean> {
  const until = performance.now() + ONE_MS;
  await client.query('BEGIN');
  try {
    const message = { serviceOrderId: 'service_order_id', sequence: nextSequence('sequence'), rank: RANK_SENT };
    await client.query(
      `${insertOutbox(message)} FROM orders WHERE service_order_id = $1::text ON CONFLICT DO NOTHING`,
      [serviceOrderId],
    );
    onHeld();
    while (!signal.aborted && performance.now() < until) {
      const { rows } = await client.query<{ met: boolean }>(
        `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted
                          AND transactionid = pg_current_xact_id()::xid) AS met`,
      );
      if (rows[0]?.met === true) {
        await sleep(HELD_MS);
        return true;
      }
      await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
    }
    return false;
  } finally {
    await client.query('ROLLBACK');
  }
}
