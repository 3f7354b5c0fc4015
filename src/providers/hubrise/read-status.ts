import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { eventsOfOrder } from './events-of-order.ts';
import { findOrder } from './find-order.ts';
import type { Settings } from './payloads.ts';
import { readOrder } from './read-order.ts';

/**
 * Reads the order's status and its delivery's. The answer does not say since when.
 *
 * `GET /callback/events` lists what nobody has acknowledged, without states: one more request for each event tells what
 * the order itself says, or less. To take events from there is to delete them, and HubRise's own repeats with them.
 * @throws as `readOrder` and `findOrder` do
 */
export async function readStatus(
  ref: OrderRef,
  { serviceOrderId }: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<readonly StatusEvent[]> {
  const id = ref.providerOrderId ?? (await findOrder(serviceOrderId, context))?.providerOrderId;
  if (id === undefined) return [];
  const now = await readOrder({ id, privateRef: serviceOrderId }, context);
  if (now === undefined) return [];
  const about = { providerOrderId: id, serviceOrderId: now.private_ref };
  return eventsOfOrder(now, undefined, about, context.settings);
}
