import type { Pool } from 'pg';
import type { Why } from '../domain/placement-cause.ts';
import type { TestClaim } from './begin-test-order.ts';
import { failPlacement } from './fail-placement.ts';

/** What would be a member's. */
const REASON = 'This was a test order.';

/**
 * Ends a test order, however far it came, so that nobody waits for it or sends it again. One that is at the POS ends as
 * one does of which nothing more is heard: nothing is published.
 * @param why why the POS has not taken it, if so
 */
export async function endTestOrder(pool: Pool, claim: TestClaim, why: Why): Promise<void> {
  if (await failPlacement(pool, claim, { reason: REASON, ...why })) return;
  await pool.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1::text AND ended_at IS NULL', [
    claim.serviceOrderId,
  ]);
}
