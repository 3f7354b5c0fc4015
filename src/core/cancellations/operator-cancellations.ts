import type { Pool, PoolClient } from 'pg';
import { z } from 'zod';
import { refused } from '../domain/explain-cause.ts';
import type { Refused } from '../domain/placement-cause.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { beginCancellation, refuseCancellation } from './begin-cancellation.ts';
import { lockOrder, mayHaveTicket } from './changed-order.ts';
import { endCancelled, storeOrderRef } from '../transitions/placement-outcomes.ts';

export const CancellationRequested = z.object({
  serviceOrderId: z.string(),
  cancel: z.enum(['withdraws', 'asks_pos', 'under_way']).meta({
    description:
      'withdraws: the POS does not have the order, and it will not be sent. asks_pos: the POS is asked to cancel it. ' +
      'under_way: a worker is already cancelling it.',
  }),
});
type CancellationRequested = z.infer<typeof CancellationRequested>;

/**
 * Requests cancellation of an order for an operator. Repeats the request if the POS refused an earlier one, if its
 * response was lost, or if it was left to a person. Workers see the request within a second.
 * @returns a refusal, or undefined if there is no such order
 */
export async function requestCancellation(
  pool: Pool,
  serviceOrderId: string,
): Promise<CancellationRequested | Refused | undefined> {
  return inTransaction(pool, async (client) => {
    const known = await lockOrder(client, serviceOrderId);
    if (known === undefined) {
      const { rowCount } = await client.query('SELECT FROM placements WHERE service_order_id = $1::text', [
        serviceOrderId,
      ]);
      return rowCount === 0 ? undefined : refused({ code: 'never_read' });
    }
    if (known.ended) return refused({ code: 'already_over' });
    if (known.cancelling) return { serviceOrderId, cancel: 'under_way' };
    const notifies = mayHaveTicket(known);
    await beginCancellation(client, serviceOrderId, { requestedBy: 'operator', notifies });
    return { serviceOrderId, cancel: notifies ? 'asks_pos' : 'withdraws' };
  });
}

export const CancellationConcluded = z.object({
  serviceOrderId: z.string(),
  cancellation: z.enum(['cancelled', 'refused']),
});
type CancellationConcluded = z.infer<typeof CancellationConcluded>;

/**
 * Concludes a cancellation by the restaurant's reply on the telephone. The reply also resolves an order in doubt: an
 * order that the restaurant will prepare has a ticket.
 * @param cancelled false if the restaurant prepares the order anyway
 * @returns a refusal, or undefined if there is no such order
 */
export async function concludeByPhone(
  pool: Pool | PoolClient,
  serviceOrderId: string,
  cancelled: boolean,
): Promise<CancellationConcluded | Refused | undefined> {
  return inTransaction(pool, async (client) => {
    const known = await lockOrder(client, serviceOrderId);
    if (known === undefined) return undefined;
    if (known.ended) return refused({ code: 'already_over' });
    if (known.cancelState === null) return refused({ code: 'not_to_be_cancelled' });
    // A process that died left its call open. If a webhook then proved the ticket, nothing closes the call.
    if (known.cancelling || (known.sending && !known.finished)) return refused({ code: 'call_under_way' });
    if (!mayHaveTicket(known)) return refused({ code: 'never_sent' });
    if (cancelled) {
      await endCancelled(client, serviceOrderId, { nativeStatus: 'cancelled by telephone', state: 'sent' });
      return { serviceOrderId, cancellation: 'cancelled' };
    }
    // The ticket is stored without its POS id, which is unknown. A webhook may provide it later.
    if (!known.finished) await storeOrderRef(client, serviceOrderId, known.integration ?? '', {});
    await refuseCancellation(client, serviceOrderId, {});
    return { serviceOrderId, cancellation: 'refused' };
  });
}
