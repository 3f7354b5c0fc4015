import type { z } from 'zod';
import { TryAgain } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { readShape, readState } from '../read-json.ts';
import { callHubrise, refusalOf } from './call-hubrise.ts';
import { requestedOrder, Orders, type Settings } from './payloads.ts';
import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import { eventsOfOrder } from './events-of-order.ts';

export function pathOf(id: string): string {
  return `/location/orders/${encodeURIComponent(id)}`;
}

/**
 * @param about HubRise's id and ours
 * @returns undefined if HubRise has no such order
 * @throws as `callHubrise` does; TryAgain if the answer is unreadable or about another order
 */
export async function readOrder(
  about: { id: string; privateRef: string },
  context: PosContext<Settings>,
): Promise<z.infer<ReturnType<typeof requestedOrder>> | undefined> {
  const answer = await callHubrise(context, { method: 'GET', path: pathOf(about.id), allow404: true });
  if (answer.status === 404) return undefined;
  if (answer.status >= 300) throw refusalOf(answer, 'to show an order');
  return readState(answer, (json) => readShape(requestedOrder(about), json));
}

/**
 * Finds an order of this client: https://www.hubrise.com/developers/api/general-concepts#private-refs
 * @throws as `callHubrise` does; TryAgain if the answer proves neither that the order exists nor that it does not
 */
export async function findOrder(serviceOrderId: string, context: PosContext<Settings>): Promise<OrderRef | undefined> {
  const path = `/location/orders?private_ref=${encodeURIComponent(serviceOrderId)}`;
  const answer = await callHubrise(context, { method: 'GET', path, heavy: true });
  if (answer.status >= 300) throw refusalOf(answer, 'to search for an order');
  const orders = Orders.safeParse(answer.json);
  const order = orders.data?.find(({ private_ref }) => private_ref === serviceOrderId);
  if (order !== undefined) return { providerOrderId: order.id };
  // Only a complete list proves that the order is absent. A wrong "absent" would lead to a second ticket.
  if (orders.success && !answer.headers.has('x-cursor-next')) return undefined;
  throw new TryAgain('HubRise’s list of orders cannot be read, or is incomplete', { sent: false });
}

/**
 * The answer does not tell when the statuses changed.
 *
 * `GET /callback/events` is not used. Its events have no states, so each event would need another request. HubRise
 * deletes an event that is taken from there, and then no longer repeats it as a webhook.
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
