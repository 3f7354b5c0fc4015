import type { Pool } from 'pg';
import type { TestClaim } from './begin-test-order.ts';
import { why, type Why } from '../domain/placement-cause.ts';
import { failPlacement } from './fail-placement.ts';

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
