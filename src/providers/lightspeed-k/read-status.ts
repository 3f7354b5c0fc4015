import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { readShape, readState } from '../read-json.ts';
import { callLightspeed, refusalOf } from './call-lightspeed.ts';
import { requestedCheck, meaningOf, type Settings } from './payloads.ts';

/**
 * A check cannot be found by our reference, so polling needs the check's id from a webhook.
 * @throws as `callLightspeed` does; TryAgain if the answer is unreadable or of another check; otherwise NeedsOperator
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
  // The only documented refusal is 400, "Invalid account identifier".
  if (answer.status === 404 || answer.status === 400) return [];
  if (answer.status >= 300) throw refusalOf(answer, 'to show a check', 'businessLocationId and baseUrl');

  const { openDate, closeDate } = readState(answer, (json) => readShape(requestedCheck(providerOrderId), json));
  const closed = closeDate !== undefined && meaningOf('CLOSED', settings) !== undefined;
  const [nativeStatus, occurredAt] = closed ? ['CLOSED', closeDate] : ['SUCCESS', openDate];
  const status = meaningOf(nativeStatus, settings);
  return status === undefined ? [] : [{ status, nativeStatus, providerOrderId, occurredAt }];
}
