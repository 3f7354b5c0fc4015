import { GiveUp, NeedsOperator } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import type { ReasonCode } from '../../core/domain/reason-code.ts';
import { callPos } from '../call-pos.ts';
import type { PosAnswer } from '../call-pos.ts';
import { callWithToken } from '../call-with-token.ts';
import { quoteRefusal } from '../quote-refusal.ts';
import { limitRate } from '../limit-rate.ts';
import { tokenOf } from './obtain-token.ts';
import { NotAllowed, OrderRefused } from './payloads.ts';
import type { Settings } from './payloads.ts';

/** Limits by 429 alone: Deliverect publishes no figures. */
const withinLimits = limitRate([]);

/**
 * Posts an order to the location's channel link, by the endpoint that takes new orders and cancels:
 * https://developers.deliverect.com/v3.0-ordering-experience/reference/order
 * @param refused what a 4xx refuses: for the operator, and as a sentence for the member
 * @throws as `callPos` and `Credentials` do; NeedsOperator, GiveUp
 */
export async function postOrder(
  body: Record<string, unknown>,
  context: PosContext<Settings>,
  refused: { what: string; reason: string },
): Promise<void> {
  const { settings, credentials, signal, now, fetch } = context;
  const { baseUrl, channelName, channelLinkId } = settings;
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
        body: JSON.stringify(body),
        signal,
        fetch,
      }).catch(quoteRefusal([401, 403], noAccess)),
    ),
  );
  if (answer.status >= 300) throw refusalOf(answer, refused);
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

function refusalOf(
  { status: httpStatus, json }: PosAnswer,
  { what, reason }: { what: string; reason: string },
): NeedsOperator | GiveUp {
  if (httpStatus === 404 || httpStatus === 405 || NotAllowed.safeParse(json).success) {
    const question = 'are channelName, channelLinkId and baseUrl right?';
    return new NeedsOperator(`Deliverect knows no such channel link (${httpStatus}): ${question}`, { httpStatus });
  }
  const fields = fieldsIn(json);
  const named = fields.length === 0 ? '' : ` for ${fields.join(', ')}`;
  return new GiveUp(`Deliverect refused ${what} with ${httpStatus}${named}`, {
    reason,
    reasonCode: reasonOf(fields),
    httpStatus,
  });
}

/** What Deliverect refuses of an order itself is its address, its payment, or how we wrote it. */
function reasonOf(fields: readonly string[]): ReasonCode {
  if (fields.some((field) => field.startsWith('deliveryAddress'))) return 'invalid_address';
  return fields.some((field) => field.startsWith('payment.')) ? 'payment' : 'technical';
}

function fieldsIn(json: unknown): string[] {
  const { orderFieldsErrors = {}, orderPaymentErrors = {} } = OrderRefused.safeParse(json).data ?? {};
  const fields = [...Object.keys(orderFieldsErrors), ...Object.keys(orderPaymentErrors).map((key) => `payment.${key}`)];
  return fields.filter((field) => /^[A-Za-z.]{1,40}$/.test(field)).slice(0, 20);
}
