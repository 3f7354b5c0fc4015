import type { z } from 'zod';
import type { PosAnswer } from '../call-pos.ts';
import { ErrorMessage, externalIdOf, PricedOrder, type Settings, TakenOrder } from './payloads.ts';
import { GiveUp, NeedsOperator, TryAgain, tryAgainWith } from '../../core/domain/errors.ts';
import type { CanonicalOrder, KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import type { ReasonCode } from '../../core/domain/reason-code.ts';
import { menuIdOf, writeOrder, writePayment } from './write-order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callToast } from './call-toast.ts';
import { NOT_TAKEN, notItsOwn } from '../refusals.ts';
import { estimatesOf } from './read-status.ts';

/** Names a refusal's status, code and `requestId` (for support), but not its message, which may quote the member. */
export function nameRefusal({ status, json }: PosAnswer): string {
  const { code, requestId } = ErrorMessage.safeParse(json).data ?? {};
  return [status, code && `code ${code}`, requestId && `requestId ${requestId}`].filter(Boolean).join(', ');
}

/**
 * Our reason codes for Toast's messages. Few are documented: https://doc.toasttab.com/doc/devguide/apiOrdersFirstOrder.html
 * (read 2026-11-23). We infer the others from field names.
 */
const CODES: readonly (readonly [RegExp, ReasonCode, string])[] = [
  [/does not belong to the group|out.of.stock/i, 'item_unavailable', 'An item is not available at the moment.'],
  [/deliveryInfo|address|zip ?code/i, 'invalid_address', 'The restaurant cannot deliver to this address.'],
  [/payment/i, 'payment', NOT_TAKEN],
  [/price|discount/i, 'price_changed', NOT_TAKEN],
];

/** Returns `technical` if no pattern matches. @param words Toast's message, which must not be shown */
function reasonOfRefusal(
  words: string,
  { items }: CanonicalOrder,
  settings: Settings,
): Pick<GiveUp, 'reason' | 'reasonCode' | 'itemIds'> {
  const [, reasonCode, reason] = CODES.find(([pattern]) => pattern.test(words)) ?? [undefined, 'technical', NOT_TAKEN];
  const ids = words.toLowerCase().split(/[^\da-z-]+/);
  const named = items
    .map(({ serviceItemId }) => serviceItemId)
    .filter((id) => ids.includes(menuIdOf(id, settings)?.toLowerCase() ?? 'no id'));
  return { reason, reasonCode, itemIds: named.length === 0 ? undefined : [...new Set(named)] };
}

type Context = PosContext<Settings>;

/**
 * To pay, it first requests the check's total, because Toast calls this the only reliable way to know the total. With
 * any other amount, staff would have to settle the difference.
 * https://doc.toasttab.com/doc/devguide/apiCreatingOrders.html
 */
export async function createOrder(order: KitchenOrder, context: Context): Promise<OrderRef> {
  const { settings, now } = context;
  const written = writeOrder(order, settings, now);
  const externalId = externalIdOf(order.serviceOrderId, settings);

  let { checks }: { checks: readonly object[] } = written;
  if (settings.alternatePaymentGuid !== undefined) {
    const due = await requestPrice(written, context);
    if (typeof due !== 'number') return findRefused(due, '/prices', order, context);
    const payment = writePayment(order, settings, due);
    checks = checks.map((check) => ({ ...check, payments: [payment] }));
  }

  const answer = await callToast(context, 'POST', '/orders/v2/orders', { ...written, checks, externalId });
  if (answer.status >= 300) return findRefused(answer, '/orders', order, context);
  const taken = TakenOrder.safeParse(answer.json);
  if (taken.success) return refOf(taken.data, settings);
  // We need the GUID, the only id in webhooks. A repeat finds it.
  throw new TryAgain('Toast took the order, but its answer has no GUID', {
    sent: true,
    httpStatus: answer.status,
  });
}

/** Finds an order in doubt. @throws as `createOrder` does */
export function findOrder(serviceOrderId: string, context: Context): Promise<OrderRef | undefined> {
  return findByExternalId(externalIdOf(serviceOrderId, context.settings), context);
}

/** Reads the GUID from Toast's answer, and the time when the order "will be fulfilled", if Toast knows this time. */
function refOf(taken: z.infer<typeof TakenOrder>, settings: Settings): OrderRef {
  const estimates = estimatesOf(taken, settings);
  return { providerOrderId: taken.guid, ...(estimates && { ...estimates, occurredAt: taken.modifiedDate }) };
}

/**
 * Creates nothing. `written` has no `externalId`, so that Toast cannot refuse a repeat.
 * @returns the total, or Toast's answer if Toast refuses the order
 */
async function requestPrice(written: object, context: Context): Promise<number | PosAnswer> {
  const answer = await callToast(context, 'POST', '/orders/v2/prices', written).catch((error: unknown) => {
    throw error instanceof TryAgain ? tryAgainWith(error, { sent: false }) : error;
  });
  if (answer.status >= 300) return answer;
  const priced = PricedOrder.safeParse(answer.json);
  if (priced.success) return priced.data.checks[0].totalAmount;
  throw new TryAgain('Toast answered without a price', { sent: false });
}

/**
 * Distinguishes a repeat from a refused order. Toast does not document its status for a known `externalId` (in the
 * labor API it is 400), so this searches the order after every refusal.
 */
async function findRefused(
  answer: PosAnswer,
  path: '/prices' | '/orders',
  order: KitchenOrder,
  context: Context,
): Promise<OrderRef> {
  const known = await findOrder(order.serviceOrderId, context);
  if (known !== undefined) return known;

  const { status: httpStatus } = answer;
  const { code, message, developerMessage } = ErrorMessage.safeParse(answer.json).data ?? {};
  const refused = `Toast refused the order with ${nameRefusal(answer)}`;
  // Toast's message may quote the member, so it is matched but never shown. A price request has no externalId.
  const words = `${message} ${developerMessage}`;
  if (path === '/orders' && /external[\s_-]*id/i.test(words)) {
    // Toast does not document this message. An order that exists but is not visible yet must not fail.
    if (/already exist|unique|duplicate/i.test(words)) {
      throw new TryAgain(`${refused}: Toast has this externalId, but does not show the order`, {
        sent: true,
        httpStatus,
      });
    }
    throw new NeedsOperator(`${refused} about the externalId: check namingAuthority`, { httpStatus });
  }
  if (httpStatus === 404) {
    throw new NeedsOperator(
      `${refused}: Toast does not know an id in restaurantGuid, diningOptionGuids, alternatePaymentGuid, ` +
        'feeServiceChargeGuid, discountGuid, itemMap or specialRequestItem',
      { httpStatus },
    );
  }
  if (code === undefined) throw notItsOwn(refused, httpStatus);
  throw new GiveUp(refused, { ...reasonOfRefusal(words, order, context.settings), httpStatus });
}

/**
 * Finds an order. "You can POST an order with an externalId, and then GET the order with that externalId"
 * (https://doc.toasttab.com/doc/devguide/portalToastIdentifiers.html). Only older documentation shows a path with
 * the externalId in place of the GUID. So only a 404 proves that there is no order.
 * @throws TryAgain if Toast has the order but the answer lacks its GUID, the only id in webhooks; NeedsOperator
 */
async function findByExternalId(externalId: string, context: Context): Promise<OrderRef | undefined> {
  const answer = await callToast(context, 'GET', `/orders/v2/orders/${encodeURIComponent(externalId)}`);
  const { status: httpStatus } = answer;
  if (httpStatus === 404) return undefined;
  if (httpStatus >= 300) {
    throw new NeedsOperator(`Toast did not answer whether it has the order: ${nameRefusal(answer)}`, { httpStatus });
  }
  const found = TakenOrder.safeParse(answer.json);
  if (found.success) return refOf(found.data, context.settings);
  throw new TryAgain('Toast has the order, but its answer has no GUID', { sent: true, httpStatus });
}
