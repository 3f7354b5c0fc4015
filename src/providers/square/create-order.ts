import { NeedsOperator, TryAgain, tryAgainWith } from '../../core/domain/errors.ts';
import type { CanonicalOrder, KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import type { PosAnswer } from '../call-pos.ts';
import { callSquare, hasCode, refusalBy, type Square } from './call-square.ts';
import { findOrder } from './read-status.ts';
import { OrderAnswer, type Settings, type SquareOrder } from './payloads.ts';
import { keyOf, writeOrder, writePayment } from './write-order.ts';

/** Creates the order, then pays it. A repeat gets the same answers, and continues where the first attempt stopped. */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const square = await obtainOrder(order, context);
  try {
    await payOrder(order, square, context);
  } catch (error) {
    throw afterOrder(error);
  }
  return { providerOrderId: square.id };
}

async function obtainOrder(order: KitchenOrder, context: Square): Promise<SquareOrder> {
  const body = writeOrder(order, context.settings);
  const answer = await callSquare(context, { method: 'POST', path: '/v2/orders', body });
  if (answer.status < 300) return orderIn(answer);
  const refusal = refusalBy(answer, 'the order', { items: order.items });
  if (!hasCode(answer, 'IDEMPOTENCY_KEY_REUSED')) throw refusal;
  // An earlier attempt created the order from other settings or by another release, and its answer was lost.
  const found = await findOrder(order, context);
  if (found === undefined) throw refusal;
  return found;
}

async function payOrder(order: CanonicalOrder, square: SquareOrder, context: Square): Promise<void> {
  if (isPaid(square)) return;
  const { serviceOrderId, money } = order;
  // Square refuses a payment of 0, but accepts a payment of only a tip.
  const owesNothing = square.total_money.amount + money.tip === 0;
  const payment = owesNothing
    ? {
        path: `/v2/orders/${encodeURIComponent(square.id)}/pay`,
        body: { idempotency_key: keyOf('pay-order', serviceOrderId), payment_ids: [] },
      }
    : { path: '/v2/payments', body: writePayment(order, square, context.settings.locationId) };
  const answer = await callSquare(context, { method: 'POST', ...payment });
  if (answer.status < 300) return;
  const refusal = refusalBy(answer, 'the payment of the order', { reasonCode: 'payment' });
  if (refusal instanceof NeedsOperator || refusal instanceof TryAgain) throw refusal;
  // Square also refuses to pay an order that is already paid. In this case the order has not failed.
  const now = await retrieveOrder(square.id, context).catch((error: unknown) => {
    throw error instanceof TryAgain ? tryAgainWith(error, { sent: true }) : error;
  });
  if (!isPaid(now)) throw refusal;
}

async function retrieveOrder(id: string, context: Square): Promise<SquareOrder> {
  const answer = await callSquare(context, { method: 'GET', path: `/v2/orders/${encodeURIComponent(id)}` });
  if (answer.status >= 300) throw refusalBy(answer, 'to show the order');
  return orderIn(answer);
}

/** @throws TryAgain if the answer cannot be read, although the order exists */
function orderIn({ status: httpStatus, json }: PosAnswer): SquareOrder {
  const result = OrderAnswer.safeParse(json);
  if (result.success) return result.data.order;
  throw new TryAgain(`Square answered ${httpStatus} without a readable order`, { sent: true, httpStatus });
}

/** Also false for an order of 0, which owes nothing even before its payment. So every attempt sends the payment. */
function isPaid({ total_money, net_amount_due_money }: SquareOrder): boolean {
  return total_money.amount > 0 && net_amount_due_money?.amount === 0;
}

/**
 * Adds to an error that the order exists and is not paid. `sent` stays as the payment's error has it. Even `false` is
 * safe: the restaurant does not see an unpaid order, and a repeat with the same key gets the same order.
 */
function afterOrder(error: unknown): unknown {
  if (error instanceof TryAgain) {
    return tryAgainWith(error, { message: `the order exists but is not paid: ${error.message}` });
  }
  if (error instanceof NeedsOperator) {
    return new NeedsOperator(`the order exists but is not paid: ${error.message}`, { httpStatus: error.httpStatus });
  }
  return error;
}
