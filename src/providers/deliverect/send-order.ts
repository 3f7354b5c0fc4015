import { GiveUp, NeedsOperator } from '../../core/domain/errors.ts';
import type { CancelAnswer, PosContext } from '../../core/domain/provider.ts';
import type { ReasonCode } from '../../core/domain/reason-code.ts';
import { limitRate, type PosAnswer, quoteRefusal } from '../call-pos.ts';
import { callWithBearer, callWithToken } from '../oauth.ts';
import { hasOneOf, notItsOwn } from '../refusals.ts';
import { tokenOf } from './obtain-token.ts';
import { NotAllowed, OrderRefused, type Settings } from './payloads.ts';
import type { CanonicalOrder, KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import { writeOrder } from './write-order.ts';

/** Deliverect publishes no request limits, so requests wait only after a 429. */
const withinLimits = limitRate([]);

/**
 * Posts a new order or a cancel, which have one endpoint.
 * @param refused describes a refused request: `what` for the operator, `reason` for the member
 * @throws as `callPos` and `Credentials` do; NeedsOperator, GiveUp
 */
async function postOrder(
  body: Record<string, unknown>,
  context: PosContext<Settings>,
  refused: { what: string; reason: string },
): Promise<void> {
  const { settings, credentials, now } = context;
  const { channelName, channelLinkId } = settings;
  const answer = await withinLimits(channelLinkId, now, () =>
    callWithToken(credentials, tokenOf(context), (accessToken) =>
      callWithBearer(context, accessToken, {
        method: 'POST',
        path: `/${channelName}/order/${channelLinkId}`,
        route: '/{channelName}/order/{channelLinkId}',
        json: body,
      }).catch(quoteRefusal([401, 403], noAccess)),
    ),
  );
  if (answer.status >= 300) throw refusalOf(answer, refused);
}

/**
 * Explains a 401 or 403, which a valid token may get too: "Authorization error" for a wrong channelName, and 403
 * `insufficient_permissions` for a wrong channel link or environment.
 * https://developers.deliverect.com/v3.0-ordering-experience/docs/troubleshooting
 */
function noAccess(httpStatus: number): string {
  return (
    `Deliverect refuses the order with ${httpStatus}: channelName, channelLinkId or baseUrl is wrong, or the client has ` +
    'no rights to this channel'
  );
}

function refusalOf(
  { status: httpStatus, json }: PosAnswer,
  { what, reason }: { what: string; reason: string },
): NeedsOperator | GiveUp {
  if (httpStatus === 404 || httpStatus === 405 || NotAllowed.safeParse(json).success) {
    const advice = 'check channelName, channelLinkId and baseUrl';
    return new NeedsOperator(`Deliverect does not know this channel link (${httpStatus}): ${advice}`, { httpStatus });
  }
  const fields = fieldsIn(json);
  const named = fields.length === 0 ? '' : ` for ${fields.join(', ')}`;
  const message = `Deliverect refused ${what} with ${httpStatus}${named}`;
  // The body of a 417, "Validation expired", is not documented.
  if (!hasOneOf(json, Object.keys(OrderRefused.shape)) && httpStatus !== 417) return notItsOwn(message, httpStatus);
  return new GiveUp(message, {
    reason,
    reasonCode: reasonOf(fields),
    httpStatus,
  });
}

/** Deliverect's answer refuses only an address, a payment or our format. The POS refuses later, by webhook. */
function reasonOf(fields: readonly string[]): ReasonCode {
  if (fields.some((field) => field.startsWith('deliveryAddress'))) return 'invalid_address';
  return fields.some((field) => field.startsWith('payment.')) ? 'payment' : 'technical';
}

function fieldsIn(json: unknown): string[] {
  const { orderFieldsErrors = {}, orderPaymentErrors = {} } = OrderRefused.safeParse(json).data ?? {};
  const fields = [...Object.keys(orderFieldsErrors), ...Object.keys(orderPaymentErrors).map((key) => `payment.${key}`)];
  return fields.filter((field) => /^[A-Za-z.]{1,40}$/.test(field)).slice(0, 20);
}

/**
 * A repeat gets the same answer as the first request, and is "hidden as a duplicate":
 * https://developers.deliverect.com/v3.0-ordering-experience/docs/troubleshooting
 */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const reason = 'The restaurant could not take this order.';
  await postOrder(writeOrder(order, context.settings, context.now), context, { what: 'the order', reason });
  return {};
}

/** The order status "Cancel": https://developers.deliverect.com/page/order-status */
const CANCEL = 100;

/** The endpoint requires all fields of a new order, although only the id counts. The POS prints the note. */
export async function cancelOrder(
  _ref: OrderRef,
  order: CanonicalOrder & Pick<KitchenOrder, 'callOutCode'>,
  context: PosContext<Settings>,
): Promise<CancelAnswer> {
  const body = writeOrder(order, context.settings, context.now);
  const reason = 'The restaurant could not cancel this order.';
  const { cancelReason: cancellationReason = 'Cancelled on the ordering platform' } = order;
  const cancel = { ...body, note: order.cancelReason ?? body['note'], status: CANCEL, cancellationReason };
  await postOrder(cancel, context, { what: 'to cancel the order', reason });
  return 'requested';
}
