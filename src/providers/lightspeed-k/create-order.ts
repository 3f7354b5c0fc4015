import { type GiveUp, NeedsOperator, TryAgain } from '../../core/domain/errors.ts';
import type { KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import type { PosAnswer } from '../call-pos.ts';
import { neverTaken, notItsOwn } from '../refusals.ts';
import { callLightspeed, fieldsRefused, listFields } from './call-lightspeed.ts';
import { Refusal, type Settings } from './payloads.ts';
import { writeOrder } from './write-order.ts';

/** Names of the fields whose values come from the settings. */
const OF_SETTINGS = /^(businessLocationId|endpointId|accountProfileCode|payment\.paymentMethod)$/;

/** 200 only means that Lightspeed has the order. A webhook reports whether a till takes it, and names the POS's id. */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const body = writeOrder(order, context.settings, context.now);
  const answer = await callLightspeed(context, 'POST', '/o/op/1/order/toGo', body);
  if (answer.status < 300 || isRepeat(answer)) return {};
  throw refusalOf(answer);
}

/** True for a repeated reference. Lightspeed answers a repeat with 409 or 400. */
function isRepeat({ status, json }: PosAnswer): boolean {
  const { message, msg = message } = Refusal.safeParse(json).data ?? {};
  return /^reference has already been used\b/i.test(msg ?? '') && (status === 409 || status === 400);
}

function refusalOf({ status: httpStatus, json }: PosAnswer): TryAgain | NeedsOperator | GiveUp {
  const { message: words, msg } = Refusal.safeParse(json).data ?? {};
  const saysNothing = words === undefined && msg === undefined;
  if (httpStatus === 409 && saysNothing) {
    return new TryAgain('Lightspeed answered 409, but not that it has this order', { sent: true, httpStatus });
  }
  if (httpStatus === 404 || httpStatus === 405) {
    const advice = 'check baseUrl, businessLocationId and endpointId';
    return new NeedsOperator(`Lightspeed answered the order with ${httpStatus}: ${advice}`, { httpStatus });
  }
  const fields = fieldsRefused(json);
  const message = `Lightspeed refused the order with ${httpStatus}${listFields(fields)}`;
  if (fields.some(({ field }) => OF_SETTINGS.test(field))) {
    return new NeedsOperator(`${message}: correct it in the settings`, { httpStatus });
  }
  if (fields.length === 0 && saysNothing) return notItsOwn(message, httpStatus);
  const reasonCode = fields.some(({ field }) => field.startsWith('deliveryAddress')) ? 'invalid_address' : 'technical';
  return neverTaken(message, { reasonCode, httpStatus });
}
