import { createHash } from 'node:crypto';
import { GiveUp, NeedsOperator } from 'expediter-kit';
import type { KitchenOrder, OrderRef, PosAnswer, PosContext, ReasonCode } from 'expediter-kit';
import { callAcme, codeIn } from './call-acme.ts';
import { OrderTaken, Refused, type Settings } from './payloads.ts';
import { skuOf, writeOrder } from './write-order.ts';

/** Refusals that are not our mistake, each with a reason for the member and a code for programs. */
const REASONS: ReadonlyMap<string, { reason: string; reasonCode: ReasonCode }> = new Map([
  ['store_closed', { reason: 'The restaurant is closed.', reasonCode: 'closed' }],
  ['sold_out', { reason: 'An item is out of stock.', reasonCode: 'item_unavailable' }],
]);

/**
 * Makes a ticket at Acme ("Orders"). Acme answers 201 for a new ticket, and 200 with the same id for a repeat.
 * @throws TryAgain, NeedsOperator or GiveUp
 */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const answer = await callAcme(context, {
    method: 'POST',
    path: '/orders',
    headers: { 'idempotency-key': keyOf(order) },
    json: writeOrder(order, context.settings, context.now),
  });
  if (answer.status >= 300) throw refusalOf(answer, order, context.settings);
  // Acme took the order, even if the body is unreadable. The first webhook also has the id.
  return { providerOrderId: OrderTaken.safeParse(answer.json).data?.id };
}

/** Returns the same key for every attempt: a hash of our id, because Acme takes at most 64 ASCII characters. */
function keyOf({ serviceOrderId }: KitchenOrder): string {
  return createHash('sha256').update(serviceOrderId).digest('hex');
}

function refusalOf(answer: PosAnswer, { items }: KitchenOrder, { itemMap }: Settings): NeedsOperator | GiveUp {
  const { status: httpStatus } = answer;
  const code = codeIn(answer);
  if (code === 'unknown_sku') {
    return new NeedsOperator('Acme does not know an item of this order: correct itemMap', { httpStatus });
  }
  const refused = Refused.safeParse(answer.json);
  if (!refused.success) {
    return new NeedsOperator(`The order was refused with ${httpStatus}, and not as Acme does: check baseUrl`, {
      httpStatus,
    });
  }
  return new GiveUp(`Acme refused the order with ${httpStatus} (${code})`, {
    reason: 'The restaurant could not take this order.',
    reasonCode: 'technical',
    ...REASONS.get(code),
    itemIds: refused.data.error.skus?.flatMap((sku) =>
      items.map(({ serviceItemId }) => serviceItemId).filter((id) => skuOf(id, itemMap) === sku),
    ),
    httpStatus,
  });
}
