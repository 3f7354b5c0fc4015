import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import type { CanonicalOrder, KitchenOrder } from '../domain/order.ts';
import { type Claim, LEASE_S } from '../domain/placement.ts';
import { recordOrder } from './record-order.ts';
import { why, type Why } from '../domain/placement-cause.ts';
import { failPlacement } from './placement-outcomes.ts';
import { RANK_SENT } from '../domain/lifecycle.ts';
import { insertOutbox, nextSequence } from '../live/outbox.ts';
import { withClient } from '../postgres/transactions.ts';

export type TestClaim = Pick<Claim, 'serviceOrderId' | 'leaseId'>;

/**
 * Records an order that no platform has, already claimed, and held for ever: no worker sends it, also if its process is
 * killed, and nobody looks for it on the platform. Its live message `placed` is told as any other's.
 * @param deadlineS seconds after which it is no longer worth placing
 * @returns it as its POS gets it
 */
export async function beginTestOrder(
  pool: Pool,
  order: CanonicalOrder,
  deadlineS: number,
): Promise<{ claim: TestClaim; order: KitchenOrder }> {
  const claim = { serviceOrderId: order.serviceOrderId, leaseId: randomUUID() };
  await pool.query(
    `INSERT INTO placements (service_order_id, deadline_at, lease_id, lease_until, state, next_attempt_at)
     VALUES ($1::text, now() + make_interval(secs => $2::int), $3::uuid, now() + make_interval(secs => ${LEASE_S}),
             'held', 'infinity')`,
    [claim.serviceOrderId, deadlineS, claim.leaseId],
  );
  const recorded = await recordOrder(pool, claim, { order, leftOut: [] }, deadlineS);
  if (recorded === undefined) throw new Error('the test order was lost to a worker before it was recorded');
  return { claim, order: recorded.order };
}

/** What would be a member's. */
const REASON = 'This was a test order.';

/**
 * Ends a test order, however far it came, so that nobody waits for it or sends it again. One that is at the POS ends as
 * one does of which nothing more is heard: nothing is published.
 * @param problem why the POS has not taken it, if so
 */
export async function endTestOrder(pool: Pool, claim: TestClaim, problem: Why): Promise<void> {
  if (await failPlacement(pool, claim, { reason: REASON, ...problem })) return;
  await pool.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1::text AND ended_at IS NULL', [
    claim.serviceOrderId,
  ]);
}

/** Ends test orders whose process is gone. No other placement is held for ever. */
export async function endLeftTestOrders(pool: Pool): Promise<void> {
  const { rows } = await pool.query<TestClaim>(
    `SELECT service_order_id AS "serviceOrderId", lease_id AS "leaseId" FROM placements
     WHERE finished_at IS NULL AND next_attempt_at = 'infinity' AND state = 'held' AND lease_until < now()`,
  );
  for (const claim of rows) await endTestOrder(pool, claim, why({ code: 'process_died' }));
}

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
