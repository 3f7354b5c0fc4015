import { createHash } from 'node:crypto';
import { GiveUp, NeedsOperator } from 'expediter-kit';
import type { KitchenOrder, OrderRef, PosAnswer, PosContext } from 'expediter-kit';
import { callAcme, codeIn } from './call-acme.ts';
import { OrderTaken, type Settings } from './payloads.ts';
import { writeOrder } from './write-order.ts';

/** What a member is told about refusals that are no mistake of ours. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['store_closed', 'The restaurant is closed.'],
  ['sold_out', 'An item is out of stock.'],
]);

/**
 * Puts a ticket at Acme ("Orders"): 201 for a new one, 200 with the same id for a repeat.
 * @throws TryAgain, NeedsOperator or GiveUp
 */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const answer = await callAcme(context, {
    method: 'POST',
    path: '/orders',
    headers: { 'idempotency-key': keyOf(order) },
    json: writeOrder(order, context.settings, context.now),
  });
  if (answer.status >= 300) throw refusalOf(answer);
  // Taken, whatever became of the words: the id comes with the first webhook as well.
  return { providerOrderId: OrderTaken.safeParse(answer.json).data?.id };
}

/** The same for every attempt. A header carries ASCII and Acme 64 characters of it; an id may be longer and in any script. */
function keyOf({ serviceOrderId }: KitchenOrder): string {
  return createHash('sha256').update(serviceOrderId).digest('hex');
}

function refusalOf(answer: PosAnswer): NeedsOperator | GiveUp {
  const { status: httpStatus } = answer;
  const code = codeIn(answer);
  if (code === 'unknown_sku') {
    return new NeedsOperator('Acme does not know an item of this order: is it in itemMap?', { httpStatus });
  }
  return new GiveUp(`Acme refused the order with ${httpStatus} (${code})`, {
    reason: REASONS.get(code) ?? 'The restaurant could not take this order.',
    httpStatus,
  });
}
