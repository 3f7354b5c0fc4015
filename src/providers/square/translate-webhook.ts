import type { ZodType } from 'zod';
import { NotAuthentic, Poison } from '../../core/errors.ts';
import type { Status } from '../../core/lifecycle.ts';
import { describeIssues, type StatusEvent } from '../../core/order.ts';
import type { Webhook } from '../../core/provider.ts';
import { parseJson } from '../parse-json.ts';
import { verifyHmac } from '../verify-hmac.ts';
import { AnyEvent, FulfillmentUpdated, OrderUpdated, type Settings } from './payloads.ts';

/** https://developer.squareup.com/reference/square/enums/FulfillmentState */
const STATUS_BY_STATE: ReadonlyMap<string, Status> = new Map([
  ['PROPOSED', 'received'],
  ['RESERVED', 'in_progress'],
  ['PREPARED', 'ready'],
  ['COMPLETED', 'completed'],
  ['CANCELED', 'cancelled'],
  ['FAILED', 'failed'],
]);

/**
 * Reads `order.fulfillment.updated`, and of `order.updated` that an order was canceled: its other states are about
 * payment. Square names its own id only.
 * https://developer.squareup.com/docs/webhooks/step3validate
 * @throws NotAuthentic, Poison
 */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  if (!webhook.verified) verify(webhook, settings);

  const json = parseJson(webhook.body, 'an object with type and data');
  const { type, created_at: sentAt } = read(AnyEvent, json);
  switch (type) {
    case 'order.fulfillment.updated': {
      const updated = read(FulfillmentUpdated, json).data.object.order_fulfillment_updated;
      if (updated.location_id !== settings.locationId) return [];
      return updated.fulfillment_update.flatMap(({ old_state, new_state }) => {
        const status = STATUS_BY_STATE.get(new_state);
        // Something else about the fulfillment changed.
        if (status === undefined || new_state === old_state) return [];
        return [eventOf(status, updated.order_id, new_state, updated.updated_at ?? sentAt)];
      });
    }
    case 'order.updated': {
      const updated = read(OrderUpdated, json).data.object.order_updated;
      if (updated.location_id !== settings.locationId || updated.state !== 'CANCELED') return [];
      return [eventOf('cancelled', updated.order_id, updated.state, updated.updated_at ?? sentAt)];
    }
    default:
      return [];
  }
}

function verify(webhook: Webhook, { signatureKey, notificationUrl }: Settings): void {
  if (signatureKey === undefined) {
    throw new NotAuthentic("no signatureKey yet: expediter provider connect gets it into the location's settings");
  }
  verifyHmac(webhook, {
    header: 'x-square-hmacsha256-signature',
    secret: signatureKey,
    signed: [notificationUrl ?? webhook.url, webhook.body],
    encoding: 'base64',
  });
}

function read<Shape>(shape: ZodType<Shape>, json: unknown): Shape {
  const result = shape.safeParse(json);
  if (!result.success) throw new Poison(describeIssues(result.error));
  return result.data;
}

function eventOf(status: Status, orderId: string, state: string, occurredAt: string | undefined): StatusEvent {
  return { status, providerOrderId: orderId, nativeStatus: state, ...(occurredAt !== undefined && { occurredAt }) };
}
