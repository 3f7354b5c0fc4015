import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { z } from 'zod';
import type { CanonicalOrder, KitchenOrder } from '../domain/order.ts';
import { type Claim, LEASE_S } from '../domain/placement.ts';
import { recordOrder } from '../placements/record-order.ts';
import { problemOf } from '../domain/explain-cause.ts';
import type { Problem } from '../domain/placement-cause.ts';
import { failPlacement } from '../transitions/placement-outcomes.ts';
import { RANK_SENT } from '../domain/lifecycle.ts';
import { insertOutbox, nextSequence } from '../live/outbox.ts';
import { withClient } from '../postgres/transactions.ts';

export const PlacedTest = z
  .discriminatedUnion('state', [
    z.object({
      state: z.literal('placed'),
      serviceOrderId: z.string(),
      providerOrderId: z
        .string()
        .nullable()
        .meta({ description: "The POS's id of the ticket, if its answer has one." }),
      callOutCode: z.string().nullable().meta({ description: 'The code on the ticket, such as K472.' }),
    }),
    z.object({ state: z.literal('failed'), problem: z.string(), toDo: z.string() }),
  ])
  .meta({ id: 'PlacedTest' });
export type PlacedTest = z.infer<typeof PlacedTest>;

export type TestClaim = Pick<Claim, 'serviceOrderId' | 'leaseId'>;

/**
 * Records a test order, which exists on no platform. It is claimed and held for ever, so no worker sends or fetches it,
 * even if this process is killed. Its live message `placed` is published as usual.
 * @param deadlineS seconds after which the order is no longer worth placing
 * @returns the claim and the order to send
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
  if (recorded === undefined) throw new Error('a worker claimed the test order before it was recorded');
  return { claim, order: recorded.order };
}

/** The reason of the failure. A real order has a sentence for its member here. */
export const TEST_REASON = 'This was a test order.';

/**
 * Ends a test order in any state, so that it is not sent again. An order with a ticket ends without a live message.
 * @param problem the reason why the POS did not accept it. It is stored only if the placement is still open
 */
export async function endTestOrder(pool: Pool, claim: TestClaim, problem: Problem): Promise<void> {
  if (await failPlacement(pool, claim, { reason: TEST_REASON, ...problem })) return;
  await pool.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1::text AND ended_at IS NULL', [
    claim.serviceOrderId,
  ]);
}

/** Ends test orders whose process died. Only test orders are held without a next attempt. */
export async function endLeftTestOrders(pool: Pool): Promise<void> {
  const { rows } = await pool.query<TestClaim>(
    `SELECT service_order_id AS "serviceOrderId", lease_id AS "leaseId" FROM placements
     WHERE finished_at IS NULL AND next_attempt_at = 'infinity' AND state = 'held' AND lease_until < now()`,
  );
  for (const claim of rows) await endTestOrder(pool, claim, problemOf({ code: 'process_died' }));
}

/** Poll interval: less than a blocked webhook's wait for a lock (150 ms) and an idle transaction's limit (10 s). */
const POLL_MS = 50;
/** Time to keep blocking a webhook. A webhook is retried for 1.4 s, and then its sender gets 500. */
const HELD_MS = 2_000;
/** Longest duration of one transaction. A long transaction would hold back vacuum in the running service. */
const TRANSACTION_MAX_MS = 30_000;

/**
 * Makes the next webhook that would move an order fail with 500, so that its sender must repeat it. A transaction
 * inserts the outbox row that the webhook would insert. This blocks the webhook. Then the transaction rolls back. Other
 * orders are not affected.
 * @param onHeld called when the outbox row is inserted
 * @returns whether a webhook was refused before `signal` aborted
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

/** Blocks webhooks of the order for one transaction of at most TRANSACTION_MAX_MS. */
async function refuseOnce(
  client: PoolClient,
  serviceOrderId: string,
  onHeld: () => void,
  signal: AbortSignal,
): Promise<boolean> {
  const until = performance.now() + TRANSACTION_MAX_MS;
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
      await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
    return false;
  } finally {
    await client.query('ROLLBACK');
  }
}
