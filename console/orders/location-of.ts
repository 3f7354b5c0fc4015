import { orderName } from '../parts/names.ts';
import type { ShownOrder } from '../wire.ts';

/** The order's location. Null before the order was fetched. */
export function locationOf({ order, placement }: Pick<ShownOrder, 'order' | 'placement'>): string | null {
  return order?.locationId ?? placement.locationId;
}

/** What people call the order of a story. */
export function nameOf(story: ShownOrder): string {
  const { serviceOrderId, order } = story;
  return orderName({ serviceOrderId, callOutCode: order?.callOutCode ?? null, locationId: locationOf(story) });
}
