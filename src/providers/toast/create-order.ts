import type { z } from 'zod';
import type { PosAnswer } from '../call-pos.ts';
import { ErrorMessage, externalIdOf, PricedOrder, type Settings, TakenOrder } from './payloads.ts';
import { GiveUp, NeedsOperator, TryAgain, tryAgainWith } from '../../core/domain/errors.ts';
import type { CanonicalOrder, KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import type { ReasonCode } from '../../core/domain/reason-code.ts';
import { menuIdOf, writeOrder, writePayment } from './write-order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callToast } from './call-toast.ts';
import { estimatesOf } from './read-status.ts';

/** A refusal's status with Toast's code and `requestId`, which its support asks for. Its words may quote the member. */
export function nameRefusal({ status, json }: PosAnswer): string {
  const { code, requestId } = ErrorMessage.safeParse(json).data ?? {};
  return [status, code && `code ${code}`, requestId && `requestId ${requestId}`].filter(Boolean).join(', ');
}

const REFUSED = 'The restaurant could not take this order.';

/**
 * Codes by Toast's words, of which few are documented (https://doc.toasttab.com/doc/devguide/apiOrdersFirstOrder.html, read
 * 2026-11-23): that an item is not in its group, and what the request lacks. The others are inferred from the names of the
 * fields. Hours, quote times and stock are not asked: the orders API "accepts the order even if the restaurant is not
 * currently open" (https://doc.toasttab.com/doc/devguide/calculatingOrderWaitTime.html).
 */
const CODES: readonly (readonly [RegExp, ReasonCode, string])[] = [
  [/does not belong to the group|out.of.stock/i, 'item_unavailable', 'An item is not available at the moment.'],
  [/deliveryInfo|address|zip ?code/i, 'invalid_address', 'The restaurant cannot deliver to this address.'],
  [/payment/i, 'payment', REFUSED],
  [/price|discount/i, 'price_changed', REFUSED],
];

/** Why Toast refuses an order. All else is about the request's form. @param words Toast's, which are not repeated */
function reasonOfRefusal(
  words: string,
  { items }: CanonicalOrder,
  settings: Settings,
): Pick<GiveUp, 'reason' | 'reasonCode' | 'itemIds'> {
  const [, reasonCode, reason] = CODES.find(([known]) => known.test(words)) ?? [undefined, 'technical', REFUSED];
  const said = words.toLowerCase().split(/[^\da-z-]+/);
  const named = items
    .map(({ serviceItemId }) => serviceItemId)
    .filter((id) => said.includes(menuIdOf(id, settings)?.toLowerCase() ?? 'no id'));
  return { reason, reasonCode, itemIds: named.length === 0 ? undefined : [...new Set(named)] };
}

type Context = PosContext<Settings>;

/**
 * Creates the order on a check of its own. With `alternatePaymentGuid`, Toast is first asked for the check's total,
 * which it calls the only reliable way, and exactly that is paid: with any other amount the staff would have to settle
 * the difference. https://doc.toasttab.com/doc/devguide/apiCreatingOrders.html
 *
 * `externalId` is unique since 2026-02-02: a repeat fails, and the order is found by it.
 */
export async function createOrder(order: KitchenOrder, context: Context): Promise<OrderRef> {
  const { settings, now } = context;
  const written = writeOrder(order, settings, now);
  const externalId = externalIdOf(order.serviceOrderId, settings);

  let { checks }: { checks: readonly object[] } = written;
  if (settings.alternatePaymentGuid !== undefined) {
    const due = await askPrice(written, context);
    if (typeof due !== 'number') return findRefused(due, '/prices', order, context);
    const payment = writePayment(order, settings, due);
    checks = checks.map((check) => ({ ...check, payments: [payment] }));
  }

  const answer = await callToast(context, 'POST', '/orders/v2/orders', { ...written, checks, externalId });
  if (answer.status >= 300) return findRefused(answer, '/orders', order, context);
  const taken = TakenOrder.safeParse(answer.json);
  if (taken.success) return refOf(taken.data, settings);
  // The webhooks will name only the GUID. A repeat finds it.
  throw new TryAgain('Toast took the order with an answer that names no GUID', {
    sent: true,
    httpStatus: answer.status,
  });
}

/** Finds an order that was perhaps taken. @throws as `createOrder` does */
export function findOrder(serviceOrderId: string, context: Context): Promise<OrderRef | undefined> {
  return findByExternalId(externalIdOf(serviceOrderId, context.settings), context);
}

/** The answer to an order is the order, with when it "will be fulfilled" if Toast says that. */
function refOf(taken: z.infer<typeof TakenOrder>, settings: Settings): OrderRef {
  const estimates = estimatesOf(taken, settings);
  return { providerOrderId: taken.guid, ...(estimates && { ...estimates, occurredAt: taken.modifiedDate }) };
}

/**
 * Asks for the check's total, tax included. Nothing is created, and our id is left out so that no repeat is refused.
 * https://doc.toasttab.com/openapi/orders/operation/pricesPost/
 * @returns Toast's answer if it refuses the order
 */
async function askPrice(written: object, context: Context): Promise<number | PosAnswer> {
  const answer = await callToast(context, 'POST', '/orders/v2/prices', written).catch((error: unknown) => {
    throw error instanceof TryAgain ? tryAgainWith(error, { sent: false }) : error;
  });
  if (answer.status >= 300) return answer;
  const priced = PricedOrder.safeParse(answer.json);
  if (priced.success) return priced.data.checks[0].totalAmount;
  throw new TryAgain('Toast answered with no price', { sent: false, httpStatus: answer.status });
}

/**
 * Tells a repeat from a refused order. The status for a known `externalId` is not documented (the labor API's is 400),
 * so every refusal is compared with what Toast has.
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
  const { message, developerMessage } = ErrorMessage.safeParse(answer.json).data ?? {};
  const refused = `Toast refused the order with ${nameRefusal(answer)}`;
  // Toast's words may quote the member, so they are examined and not repeated. A price is asked without the externalId.
  const words = `${message} ${developerMessage}`;
  if (path === '/orders' && /external[\s_-]*id/i.test(words)) {
    // Toast's wording is not documented. An order that Toast has must not be given up because it is not visible yet.
    if (/already exist|unique|duplicate/i.test(words)) {
      throw new TryAgain(`${refused}: it has this externalId, and does not show it`, { sent: true, httpStatus });
    }
    throw new NeedsOperator(`${refused}: it is about the externalId, is namingAuthority right?`, { httpStatus });
  }
  if (httpStatus === 404) {
    throw new NeedsOperator(
      `${refused}: it does not know one of the ids in restaurantGuid, diningOptionGuids, alternatePaymentGuid, ` +
        'feeServiceChargeGuid, discountGuid, itemMap and specialRequestItem',
      { httpStatus },
    );
  }
  throw new GiveUp(refused, { ...reasonOfRefusal(words, order, context.settings), httpStatus });
}

/**
 * Finds an order. "You can POST an order with an externalId, and then GET the order with that externalId"
 * (https://doc.toasttab.com/doc/devguide/portalToastIdentifiers.html). The path is not documented; according to older
 * documentation the externalId takes the GUID's place. So only a 404 is a proof that there is none.
 * @throws TryAgain if Toast has the order but does not say its GUID, the only id in the webhooks; NeedsOperator
 */
async function findByExternalId(externalId: string, context: Context): Promise<OrderRef | undefined> {
  const answer = await callToast(context, 'GET', `/orders/v2/orders/${encodeURIComponent(externalId)}`);
  const { status: httpStatus } = answer;
  if (httpStatus === 404) return undefined;
  if (httpStatus >= 300) {
    throw new NeedsOperator(`Toast does not say whether it has the order: ${nameRefusal(answer)}`, { httpStatus });
  }
  const found = TakenOrder.safeParse(answer.json);
  if (found.success) return refOf(found.data, context.settings);
  throw new TryAgain('Toast has the order, and its answer names no GUID', { sent: true, httpStatus });
}
