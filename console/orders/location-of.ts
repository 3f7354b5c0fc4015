import type { ShownOrder } from '../wire.ts';

/** The order's location. Null before the order was fetched. */
export function locationOf({ order, placement }: Pick<ShownOrder, 'order' | 'placement'>): string | null {
  return order?.locationId ?? placement.locationId;
}
