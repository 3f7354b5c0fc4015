import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import type { CanonicalOrder, KitchenOrder } from '../domain/order.ts';
import { LEASE_S, type Claim } from '../domain/placement.ts';
import { recordOrder } from './record-order.ts';

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
