import { NeedsOperator } from '../../core/domain/errors.ts';
import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { readShape } from '../read-shape.ts';
import { readState } from '../read-state.ts';
import { callStandard } from './call-standard.ts';
import { ofOrder, type Settings } from './payloads.ts';
import { readEvent } from './read-event.ts';

/**
 * Asks `statusUrl`, if there is one, for the order's status. The answer is what the POS would post to the webhook.
 *
 * - 404: the POS has no such order
 * - any other refusal: `statusUrl` is wrong
 * @throws as `callPos` does; TryAgain if the answer is unreadable or about another order; NeedsOperator
 */
export async function readStatus(
  { providerOrderId }: OrderRef,
  { serviceOrderId }: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<readonly StatusEvent[] | undefined> {
  const { statusUrl } = context.settings;
  if (statusUrl === undefined) return undefined;
  const url = new URL(statusUrl);
  url.searchParams.set('thirdPartyReference', serviceOrderId);
  if (providerOrderId !== undefined) url.searchParams.set('id', providerOrderId);

  const answer = await callStandard(context, serviceOrderId, { url: url.href });
  if (answer.status === 404) return [];
  if (answer.status >= 300) {
    throw new NeedsOperator(`the POS answered ${answer.status}: is statusUrl right?`, { httpStatus: answer.status });
  }
  return readState(answer, (json) => {
    readShape(ofOrder({ serviceOrderId, providerOrderId }), json);
    return readEvent(json);
  });
}
