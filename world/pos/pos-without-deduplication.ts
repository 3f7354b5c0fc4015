import { z } from 'zod';
import { GiveUp } from '../../src/core/domain/errors.ts';
import type { CanonicalOrder, OrderRef } from '../../src/core/domain/order.ts';
import type { PosContext, Provider } from '../../src/core/domain/provider.ts';
import { callPos } from '../../src/providers/call-pos.ts';
import { standard } from '../../src/providers/standard/index.ts';

const Settings = z.object({ ordersUrl: z.url(), cancelUrl: z.url().optional() });
type Settings = z.infer<typeof Settings>;
const Answer = z.object({ providerOrderId: z.string() });

async function createOrder(
  order: CanonicalOrder,
  { settings, signal, fetch }: PosContext<Settings>,
): Promise<OrderRef> {
  const answer = await callPos({
    method: 'POST',
    url: settings.ordersUrl,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(order),
    signal,
    fetch,
  });
  if (answer.status >= 300) throw new GiveUp(`the POS refused with ${answer.status}`, { reason: 'not on the menu' });
  return Answer.parse(answer.json);
}

const translateWebhook: Provider<Settings>['translateWebhook'] = (webhook, settings) =>
  standard.translateWebhook(webhook, settings);

/** A POS that makes a ticket and a cancel of every request and cannot be asked, so only a person can resolve a doubt. */
export const blind: Provider<Settings> = {
  integration: 'blind',
  settings: Settings,
  deduplicates: false,
  createOrder,
  cancelOrder: async (ref, order, context) => standard.cancelOrder?.(ref, order, context),
  canCancel: ({ cancelUrl }) => cancelUrl !== undefined,
  translateWebhook,
};

/** A POS that makes a ticket of every request, but can be asked by our reference. */
export const findable: Provider<Settings> = {
  ...blind,
  integration: 'findable',
  async findOrder(serviceOrderId, { settings, signal, fetch }) {
    const url = `${settings.ordersUrl}?reference=${encodeURIComponent(serviceOrderId)}`;
    const answer = await callPos({ method: 'GET', url, signal, fetch });
    return answer.status === 404 ? undefined : Answer.parse(answer.json);
  },
};

/** A module for `PROVIDER_MODULES`. */
export default blind;
