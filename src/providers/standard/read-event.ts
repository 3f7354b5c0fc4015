import { Poison } from '../../core/domain/errors.ts';
import { STATUSES } from '../../core/domain/lifecycle.ts';
import type { StatusEvent } from '../../core/domain/order.ts';
import { readShape } from '../read-shape.ts';
import { AnyEvent, OrderStatusEvent } from './payloads.ts';

/**
 * Reads `{"eventType": "order.status", "order": {"thirdPartyReference", "id", "status", "reason", "reasonCode", "itemIds",
 * "occurredAt", "estimatedReadyAt", "estimatedDeliveryAt", "trackingUrl"}}`.
 * `status` is one of ours in any case: RECEIVED, IN_PROGRESS, READY, EN_ROUTE, COMPLETED, CANCELLED, FAILED. At least
 * one of `thirdPartyReference` (our id) and `id` (the POS's) is required; `occurredAt` is RFC 3339 with offset. Other
 * event types and other statuses are ignored.
 * @throws Poison
 */
export function readEvent(json: unknown): readonly StatusEvent[] {
  if (readShape(AnyEvent, json).eventType !== 'order.status') return [];
  const { thirdPartyReference, id, status: nativeStatus, ...said } = readShape(OrderStatusEvent, json).order;
  const status = STATUSES.find((status) => status === nativeStatus.toLowerCase());
  if (status === undefined) return [];

  if (thirdPartyReference === undefined && id === undefined) {
    throw new Poison('order.thirdPartyReference and order.id are both missing: a string in either is required', {
      cause: { code: 'names_no_order', fields: ['order.thirdPartyReference', 'order.id'] },
    });
  }
  return [{ ...said, status, serviceOrderId: thirdPartyReference, providerOrderId: id, nativeStatus }];
}
