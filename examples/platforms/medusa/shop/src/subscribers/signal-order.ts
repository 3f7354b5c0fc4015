import type { SubscriberArgs, SubscriberConfig } from '@medusajs/framework';
import { signal } from '../signal';

/**
 * Signals an order at once. Medusa keeps its events in memory, or in Redis: this signal is lost if the process ends or
 * Expediter does not answer. Then `../jobs/signal-again.ts` sends it.
 */
export default async function signalOrder({ event }: SubscriberArgs<{ id: string; order_id?: string }>): Promise<void> {
  await signal(event.data.order_id ?? event.data.id);
}

export const config: SubscriberConfig = {
  event: ['order.placed', 'order.updated', 'order.canceled', 'order-edit.confirmed'],
};
