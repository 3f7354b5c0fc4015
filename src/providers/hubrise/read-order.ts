import type { z } from 'zod';
import { NeedsOperator } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { readShape } from '../read-shape.ts';
import { readState } from '../read-state.ts';
import { callHubrise } from './call-hubrise.ts';
import { nameRefusal } from './name-refusal.ts';
import { orderAsked, type Settings } from './payloads.ts';

/** The path of an order, by HubRise's id. */
export function pathOf(id: string): string {
  return `/location/orders/${encodeURIComponent(id)}`;
}

/**
 * Reads an order by `GET /location/orders/:order_id`: https://www.hubrise.com/developers/api/orders
 * @param about HubRise's id and ours
 * @returns undefined if HubRise has no such order
 * @throws as `callHubrise` does; TryAgain if the answer is unreadable or about another order
 */
export async function readOrder(
  about: { id: string; privateRef: string },
  context: PosContext<Settings>,
): Promise<z.infer<ReturnType<typeof orderAsked>> | undefined> {
  const answer = await callHubrise(context, { method: 'GET', path: pathOf(about.id), mayLack: true });
  if (answer.status === 404) return undefined;
  if (answer.status >= 300) {
    throw new NeedsOperator(`HubRise refused to show an order with ${nameRefusal(answer)}`, {
      httpStatus: answer.status,
    });
  }
  return readState(answer, (json) => readShape(orderAsked(about), json));
}
