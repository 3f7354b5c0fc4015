import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { readShape, readState } from '../read-json.ts';
import { callLightspeed, refusalOf } from './call-lightspeed.ts';
import { checkAsked, meaningOf, type Settings } from './payloads.ts';

/**
 * Reads the order's check: https://api-docs.lsk.lightspeed.app/operation/operation-apechecklookupwithaccountidentifier
 *
 * A check says no more than that a till took the order, which is SUCCESS, and that it was closed, CLOSED. It does not name
 * our reference, and cannot be found by it: without the id from a webhook nothing can be asked.
 * @throws as `callLightspeed` does; TryAgain if the answer is unreadable or about another check; NeedsOperator
 */
export async function readStatus(
  { providerOrderId }: OrderRef,
  _order: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<readonly StatusEvent[] | undefined> {
  if (providerOrderId === undefined) return undefined;
  const { settings } = context;
  const path = `/o/op/1/order/accounts/${encodeURIComponent(providerOrderId)}`;
  const query = `businessLocationId=${settings.businessLocationId}`;
  const answer = await callLightspeed(context, 'GET', `${path}?${query}`);
  // 400: "Invalid account identifier", the only refusal that is documented.
  if (answer.status === 404 || answer.status === 400) return [];
  if (answer.status >= 300) throw refusalOf(answer, 'to show a check', 'businessLocationId and baseUrl');

  const { openDate, closeDate } = readState(answer, (json) => readShape(checkAsked(providerOrderId), json));
  const closed = closeDate !== undefined && meaningOf('CLOSED', settings) !== undefined;
  const [nativeStatus, occurredAt] = closed ? ['CLOSED', closeDate] : ['SUCCESS', openDate];
  const status = meaningOf(nativeStatus, settings);
  return status === undefined ? [] : [{ status, nativeStatus, providerOrderId, occurredAt }];
}
