import { GiveUp, TryAgain } from 'expediter-kit';
import type { CancelAnswer, CanonicalOrder, OrderRef, PosContext } from 'expediter-kit';
import { callAcme, codeIn } from './call-acme.ts';
import { Voided, type Settings } from './payloads.ts';

/** Voids a ticket ("Voids") by Acme's id. @throws TryAgain, NeedsOperator; GiveUp if it is too late */
export async function cancelOrder(
  { providerOrderId }: OrderRef,
  _order: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<CancelAnswer | undefined> {
  if (providerOrderId === undefined) return undefined;
  const path = `/orders/${encodeURIComponent(providerOrderId)}/void`;
  const answer = await callAcme(context, { method: 'POST', path, json: {} });
  const { status: httpStatus } = answer;
  if (httpStatus === 404) return 'absent';
  if (httpStatus >= 300) {
    throw new GiveUp(`Acme refused to void the ticket with ${httpStatus} (${codeIn(answer)})`, {
      reason: 'The restaurant can no longer cancel this order.',
      reasonCode: 'other',
      httpStatus,
    });
  }
  // Without Acme's confirmation the order is not cancelled: the kitchen may still be cooking.
  if (Voided.safeParse(answer.json).success) return 'cancelled';
  throw new TryAgain('Acme did not confirm that the ticket is void', { sent: true, httpStatus });
}
