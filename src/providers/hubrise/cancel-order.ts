import { TryAgain } from '../../core/domain/errors.ts';
import type { CanonicalOrder, OrderRef } from '../../core/domain/order.ts';
import type { CancelAnswer, PosContext } from '../../core/domain/provider.ts';
import { callHubrise, nameRefusal } from './call-hubrise.ts';
import { findOrder, pathOf, readOrder } from './read-status.ts';
import { State, type Settings } from './payloads.ts';
import { tooLate } from '../refusals.ts';

const TOO_LATE: readonly string[] = [
  'awaiting_shipment',
  'awaiting_collection',
  'in_delivery',
  'completed',
  'delivery_failed',
];

/**
 * No webhook follows, because "a client does not receive notifications for the events it generated"
 * (https://www.hubrise.com/developers/api/callbacks). The status is read first, so that neither a repeated cancel nor
 * the cancel of a finished order changes anything.
 * @throws as `findOrder` and `readOrder` do, and GiveUp
 */
export async function cancelOrder(
  ref: OrderRef,
  { serviceOrderId }: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<CancelAnswer> {
  const id = ref.providerOrderId ?? (await findOrder(serviceOrderId, context))?.providerOrderId;
  if (id === undefined) return 'absent';
  const order = await readOrder({ id, privateRef: serviceOrderId }, context);
  const status = order?.status ?? '';
  if (status === 'cancelled') return 'cancelled';
  // A rejected order never reached the store.
  if (order === undefined || status === 'rejected') return 'absent';
  if (TOO_LATE.includes(status)) throw tooLate(`HubRise reports the order as ${status}`);

  const request = { method: 'PATCH', path: pathOf(id), body: { status: 'cancelled' }, allow404: true } as const;
  const answer = await callHubrise(context, request);
  const { status: httpStatus } = answer;
  if (httpStatus === 404) return 'absent';
  if (httpStatus >= 300) throw tooLate(`HubRise refused to cancel the order with ${nameRefusal(answer)}`, httpStatus);
  if (State.safeParse(answer.json).data?.status === 'cancelled') return 'cancelled';
  throw new TryAgain('HubRise did not confirm that the order is cancelled', { sent: true, httpStatus });
}
