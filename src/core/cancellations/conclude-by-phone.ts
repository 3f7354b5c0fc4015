import type { Pool } from 'pg';
import { z } from 'zod';
import { refused, type Refused } from '../domain/placement-cause.ts';
import { endCancelled } from '../placements/end-cancelled.ts';
import { storeOrderRef } from '../placements/store-order-ref.ts';
import { inTransaction } from '../postgres/in-transaction.ts';
import { lockOrder, mayHaveTicket } from './lock-order.ts';
import { refuseCancellation } from './refuse-cancellation.ts';

export const CancellationConcluded = z.object({
  serviceOrderId: z.string(),
  cancellation: z.enum(['cancelled', 'refused']),
});
type CancellationConcluded = z.infer<typeof CancellationConcluded>;

/**
 * Concludes a cancellation by what the restaurant said on the telephone. Of an order in doubt that says as well whether
 * there is a ticket: what is cancelled is not cooked, and what goes on is there.
 * @param cancelled false if the restaurant makes the order all the same
 * @returns a refusal, or undefined if there is no such order
 */
export async function concludeByPhone(
  pool: Pool,
  serviceOrderId: string,
  cancelled: boolean,
): Promise<CancellationConcluded | Refused | undefined> {
  return inTransaction(pool, async (client) => {
    const known = await lockOrder(client, serviceOrderId);
    if (known === undefined) return undefined;
    if (known.ended) return refused({ code: 'already_over' });
    if (known.cancelState === null) return refused({ code: 'not_to_be_cancelled' });
    if (known.cancelling || known.sending) return refused({ code: 'call_under_way' });
    if (!mayHaveTicket(known)) return refused({ code: 'never_sent' });
    if (cancelled) {
      await endCancelled(client, serviceOrderId, { nativeStatus: 'cancelled by telephone', state: 'sent' });
      return { serviceOrderId, cancellation: 'cancelled' };
    }
    // Nobody knows its POS id. A webhook about it says so.
    if (!known.finished) await storeOrderRef(client, serviceOrderId, known.integration ?? '', {});
    await refuseCancellation(client, serviceOrderId, {});
    return { serviceOrderId, cancellation: 'refused' };
  });
}
