import { GiveUp, NeedsOperator } from '../../core/domain/errors.ts';
import type { KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callPos } from '../call-pos.ts';
import type { PosAnswer } from '../call-pos.ts';
import { callWithToken } from '../call-with-token.ts';
import { quoteRefusal } from '../quote-refusal.ts';
import { limitRate } from '../limit-rate.ts';
import { tokenOf } from './obtain-token.ts';
import { NotAllowed, OrderRefused } from './payloads.ts';
import type { Settings } from './payloads.ts';
import { writeOrder } from './write-order.ts';

/** Limits by 429 alone: Deliverect publishes no figures. */
const withinLimits = limitRate([]);

/**
 * Posts the order to the location's channel link. `channelOrderId` is the order's id in every attempt, and Deliverect
 * deduplicates on it: a repeat gets the first answer and is "hidden as a duplicate"
 * (https://developers.deliverect.com/v3.0-ordering-experience/docs/troubleshooting).
 *
 * 2xx only means that Deliverect has the order. A webhook says whether the POS takes it, and names Deliverect's id.
 * https://developers.deliverect.com/v3.0-ordering-experience/reference/order
 */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const { settings, credentials, signal, now, fetch } = context;
  const { baseUrl, channelName, channelLinkId } = settings;
  const body = JSON.stringify(writeOrder(order, settings, now));
  const answer = await withinLimits(channelLinkId, now, () =>
    callWithToken(credentials, tokenOf(context), (accessToken) =>
      callPos({
        method: 'POST',
        url: `${baseUrl}/${channelName}/order/${channelLinkId}`,
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          authorization: `Bearer ${accessToken}`,
        },
        body,
        signal,
        fetch,
      }).catch(quoteRefusal([401, 403], noAccess)),
    ),
  );
  if (answer.status < 300) return {};
  throw refusalOf(answer);
}

/**
 * Explains a 401 or 403. A wrong channelName is an "Authorization error", a wrong channel link or environment 403
 * `insufficient_permissions` (https://developers.deliverect.com/v3.0-ordering-experience/docs/troubleshooting). So a
 * fresh token may be refused as well.
 */
function noAccess(httpStatus: number): string {
  return (
    `Deliverect lets us send no order (${httpStatus}): where the token is good, channelName, channelLinkId or baseUrl ` +
    "is wrong, or the client's rights lack this channel"
  );
}

function refusalOf({ status: httpStatus, json }: PosAnswer): NeedsOperator | GiveUp {
  if (httpStatus === 404 || httpStatus === 405 || NotAllowed.safeParse(json).success) {
    const question = 'are channelName, channelLinkId and baseUrl right?';
    return new NeedsOperator(`Deliverect knows no such channel link (${httpStatus}): ${question}`, { httpStatus });
  }
  const fields = fieldsIn(json);
  const named = fields.length === 0 ? '' : ` for ${fields.join(', ')}`;
  return new GiveUp(`Deliverect refused the order with ${httpStatus}${named}`, {
    reason: 'The restaurant could not take this order.',
    httpStatus,
  });
}

function fieldsIn(json: unknown): string[] {
  const { orderFieldsErrors = {}, orderPaymentErrors = {} } = OrderRefused.safeParse(json).data ?? {};
  const fields = [...Object.keys(orderFieldsErrors), ...Object.keys(orderPaymentErrors).map((key) => `payment.${key}`)];
  return fields.filter((field) => /^[A-Za-z.]{1,40}$/.test(field)).slice(0, 20);
}
