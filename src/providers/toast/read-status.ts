import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { eventsOfOrder } from './events-of-order.ts';
import type { Settings } from './payloads.ts';
import { readOrder } from './read-order.ts';

/**
 * Reads the order. It shows no guest order status, and where a delivery is only to clients with
 * `delivery_info.address:read`.
 * @throws as `readOrder` does
 */
export async function readStatus(
  { providerOrderId: guid }: OrderRef,
  { serviceOrderId }: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<readonly StatusEvent[]> {
  const now = await readOrder({ guid, serviceOrderId }, context);
  if (now === undefined) return [];
  const about = { providerOrderId: now.guid, ...(now.externalId !== undefined && { serviceOrderId }) };
  return eventsOfOrder(now, about, context.settings);
}
