import type { OrderModule } from '../domain/order-module.ts';
import { readCanonicalOrder, type ReadOrder } from '../domain/read-canonical-order.ts';
import { askMapper } from './ask-mapper.ts';
import { orderDataFetcher } from './fetch-order-data.ts';

/** Fetches the present order. Undefined if the platform has none by that id (yet). */
export type RefetchOrder = (serviceOrderId: string) => Promise<ReadOrder | undefined>;

export function orderRefetcher(about: { url: string; token: string | undefined; module: OrderModule }): RefetchOrder {
  const fetchData = orderDataFetcher(about);
  return async (serviceOrderId) => {
    const data = await fetchData(serviceOrderId);
    if (data === undefined) return undefined;
    const order = askMapper(() => about.module.toCanonicalOrder(data));
    return order === null ? undefined : readCanonicalOrder(order, { serviceOrderId });
  };
}
