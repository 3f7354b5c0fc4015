import type { z } from 'zod';
import { TryAgain, tryAgainWith } from '../../core/domain/errors.ts';
import type { CanonicalOrder, OrderRef } from '../../core/domain/order.ts';
import type { CancelAnswer, PosContext } from '../../core/domain/provider.ts';
import { quoteRefusal } from '../call-pos.ts';
import { tooLate } from '../refusals.ts';
import { callToast } from './call-toast.ts';
import { eventsOfOrder, readOrder } from './read-status.ts';
import { VoidedOrder, type Settings, type ToastOrder } from './payloads.ts';

const TOO_LATE: readonly string[] = ['ready', 'en_route', 'completed'];

/**
 * Toast refuses to void an order twice, so the order is read before the void and after a refusal. No documented refusal
 * means "too late": https://doc.toasttab.com/openapi/orders/operation/voidOrder/ (read 2026-11-23)
 * @returns undefined also if Toast refuses to void this order, because staff may still void it
 * @throws as `readOrder` does, and GiveUp
 */
export async function cancelOrder(
  ref: OrderRef,
  { serviceOrderId }: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<CancelAnswer | undefined> {
  const read = () =>
    readOrder({ guid: ref.providerOrderId, serviceOrderId }, context).catch((error: unknown) => {
      throw error instanceof TryAgain ? tryAgainWith(error, { sent: false }) : error;
    });
  const order = await read();
  if (order === undefined) return 'absent';
  if (order.voided === true) return 'cancelled';
  const late = eventsOfOrder(order, {}, context.settings).find(({ status }) => TOO_LATE.includes(status));
  if (late !== undefined) throw tooLate(`Toast reports the order as ${late.nativeStatus}`);
  if (!isVoidable(order)) return undefined;

  const all = { selections: { voidAll: true }, payments: { voidAll: true } };
  const path = `/orders/v2/orders/${encodeURIComponent(order.guid)}/void`;
  const answer = await callToast(context, 'POST', path, all).catch(
    quoteRefusal([403], (status) => `Toast refuses to void (${status}): give the client the scope orders.channel:void`),
  );
  const { status: httpStatus } = answer;
  if (httpStatus < 300) {
    if (VoidedOrder.safeParse(answer.json).success) return 'cancelled';
    throw new TryAgain('Toast did not confirm that the order is voided', { sent: true, httpStatus });
  }
  return (await read())?.voided === true ? 'cancelled' : undefined;
}

/** All payments must be OTHER: https://doc.toasttab.com/doc/devguide/apiVoidOrder.html (example of 2025-09-10). */
function isVoidable({ checks }: z.infer<typeof ToastOrder>): boolean {
  const payments = checks.flatMap((check) => check.payments ?? []);
  return payments.length > 0 && payments.every(({ type }) => type === 'OTHER');
}
