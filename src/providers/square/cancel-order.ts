import { GiveUp, TryAgain } from '../../core/domain/errors.ts';
import type { CanonicalOrder, OrderRef } from '../../core/domain/order.ts';
import type { CancelAnswer, PosContext } from '../../core/domain/provider.ts';
import { cutText } from '../order-texts.ts';
import { tooLate } from '../refusals.ts';
import { readShape, readState } from '../read-json.ts';
import { callSquare, refusalBy, refusalOf } from './call-square.ts';
import { findOrder } from './read-status.ts';
import { orderState, type Settings } from './payloads.ts';
import { keyOf, referenceOf } from './write-order.ts';

/** Maximum length: https://developer.squareup.com/reference/square/objects/FulfillmentPickupDetails */
const REASON_MAX = 100;

// States that allow a cancel: https://developer.squareup.com/reference/square/objects/FulfillmentDeliveryDetails
const OPEN: ReadonlySet<string> = new Set(['PROPOSED', 'RESERVED', 'PREPARED']);

/**
 * Cancels the order's fulfillments, because Square cancels no paid order. An update needs the order's version, so the
 * order is read first: https://developer.squareup.com/docs/orders-api/manage-orders/update-orders
 */
export async function cancelOrder(
  ref: OrderRef,
  order: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<CancelAnswer> {
  const { serviceOrderId } = order;
  const { locationId } = context.settings;
  const id = ref.providerOrderId ?? (await findOrder(order, context))?.id;
  if (id === undefined) return 'absent';
  const path = `/v2/orders/${encodeURIComponent(id)}`;
  const shown = await callSquare(context, { method: 'GET', path });
  if (shown.status === 404) return 'absent';
  if (shown.status >= 300) throw refusalOf(shown, 'to show the order');

  const shape = orderState({ id, locationId, reference: referenceOf(serviceOrderId) });
  const { order: now } = readState(shown, (json) => readShape(shape, json));
  if (isCancelled(now)) return 'cancelled';
  const open = now.fulfillments.filter(({ state }) => OPEN.has(state));
  if (open.length === 0) throw tooLate('the order at Square has no open fulfillment', shown.status);
  if (open.some(({ uid }) => uid === undefined)) {
    throw new TryAgain('Square shows a fulfillment without a uid, so it cannot be cancelled', {
      sent: false,
    });
  }
  const { cancelReason, fulfillment } = order;
  const reason = cancelReason && {
    [`${fulfillment.type}_details`]: { cancel_reason: cutText(cancelReason, REASON_MAX) },
  };
  const answer = await callSquare(context, {
    method: 'PUT',
    path,
    body: {
      // The key contains the version, because Square ignores another update with the same key.
      idempotency_key: keyOf(`cancel ${now.version}`, serviceOrderId),
      order: {
        location_id: locationId,
        version: now.version,
        fulfillments: open.map(({ uid }) => ({ uid, state: 'CANCELED', ...reason })),
      },
    },
  });
  if (answer.status >= 300) {
    const refusal = refusalBy(answer, 'to cancel the order');
    throw refusal instanceof GiveUp ? tooLate(refusal.message, answer.status) : refusal;
  }
  const after = shape.safeParse(answer.json).data?.order;
  if (after !== undefined && isCancelled(after)) return 'cancelled';
  throw new TryAgain('Square answered the cancel with an order that is not cancelled, or cannot be read', {
    sent: true,
  });
}

function isCancelled({
  state,
  fulfillments,
}: {
  state?: string | undefined;
  fulfillments: { state: string }[];
}): boolean {
  return state === 'CANCELED' || (fulfillments.length > 0 && fulfillments.every(({ state }) => state === 'CANCELED'));
}
