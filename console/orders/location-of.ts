import type { ShownOrder } from '../wire.ts';

/** An order's location; null before it was read. */
export function locationOf({ order, placement }: Pick<ShownOrder, 'order' | 'placement'>): string | null {
  return order?.locationId ?? placement.locationId;
}
