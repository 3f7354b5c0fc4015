import type { ClientBase } from 'pg';
import type { CanonicalOrder } from '../domain/order.ts';
import type { CancellationState } from '../domain/cancellation.ts';
import type { PlacementState } from '../domain/placement.ts';
import { perhapsTakenBefore } from '../placements/record-attempt.ts';

/** An order as it is under its lock, with its placement and its cancellation. */
export type LockedOrder = {
  ended: boolean;
  integration: string | null;
  state: PlacementState;
  finished: boolean;
  /** A call of createOrder has begun, and its end is not known. */
  sending: boolean;
  /** A call has ended so that the POS may have taken the order all the same. */
  perhapsTaken: boolean;
  /** Null once it is erased. */
  contents: CanonicalOrder | null;
  /** Null while nobody asked to cancel it. */
  cancelState: CancellationState | null;
  /** A worker has its cancellation this moment. */
  cancelling: boolean;
};

/** Locks an order until the transaction ends, and reads it then. Undefined if it was never read from the platform. */
export async function lockOrder(client: ClientBase, serviceOrderId: string): Promise<LockedOrder | undefined> {
  // A statement of its own, so that the next one sees what was committed while this one waited.
  // guard: cancel-lock
  await client.query('SELECT FROM orders WHERE service_order_id = $1::text FOR UPDATE', [serviceOrderId]);
  const { rows } = await client.query<LockedOrder>({
    name: 'lock-order',
    text: `
      SELECT o.ended_at IS NOT NULL AS ended, o.integration, p.state, p.finished_at IS NOT NULL AS finished,
             EXISTS (SELECT FROM placement_attempts a
                     WHERE a.service_order_id = $1 AND a.ended_at IS NULL AND a.call = 'createOrder') AS sending,
             ${perhapsTakenBefore('$1')} AS "perhapsTaken",
             d.contents, c.state AS "cancelState", coalesce(c.lease_until > now(), false) AS cancelling
      FROM orders o
      JOIN placements p USING (service_order_id)
      LEFT JOIN order_contents d USING (service_order_id)
      LEFT JOIN cancellations c USING (service_order_id)
      WHERE o.service_order_id = $1
      FOR UPDATE OF p`,
    values: [serviceOrderId],
  });
  return rows[0];
}

/** Whether there may be a ticket: it is at the POS, or a request for it may have been taken. */
export const mayHaveTicket = ({ state, sending, perhapsTaken }: LockedOrder): boolean =>
  sending || perhapsTaken || state === 'sent' || state === 'in_doubt';
