import type { OrderModule } from '../domain/order-module.ts';
import { readCanonicalOrder, type ReadOrder } from '../domain/read-canonical-order.ts';
import { askMapper } from './ask-mapper.ts';
import { orderDataFetcher } from './fetch-order-data.ts';

/** Fetches the present order. Undefined if the platform has none by that id (yet). */
export type RefetchOrder = (serviceOrderId: string) => Promise<ReadOrder | undefined>;

/**
 * @param about.countryOf tells a location's country, for telephone numbers in national form
 * @param about.warn told once if the module's `errorCode` throws
 */
export function orderRefetcher(about: {
  url: string;
  token: string | undefined;
  module: OrderModule;
  countryOf: (locationId: string) => Promise<string | null>;
  warn: (problem: string) => void;
}): RefetchOrder {
  const fetchData = orderDataFetcher(about);
  return async (serviceOrderId) => {
    const data = await fetchData(serviceOrderId);
    if (data === undefined) return undefined;
    const order = askMapper(() => about.module.toCanonicalOrder(data));
    if (order === null) return undefined;
    const read = readCanonicalOrder(order, { serviceOrderId });
    if (!read.leftOut.some(({ code }) => code === 'phone_unusable')) return read;
    const country = await about.countryOf(read.order.locationId);
    return country === null ? read : readCanonicalOrder(order, { serviceOrderId, country });
  };
}
