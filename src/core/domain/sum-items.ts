import { flattenModifiers } from './flatten-modifiers.ts';
import type { CanonicalOrder } from './order.ts';

/** Adds up the items with their modifiers, in minor units. What has no price is free. */
export function sumItems(items: CanonicalOrder['items']): number {
  return items.reduce((sum, { unitPrice = 0, quantity, modifiers }) => {
    const extras = flattenModifiers(modifiers).reduce(
      (sum, { unitPrice = 0, quantity }) => sum + unitPrice * quantity,
      0,
    );
    return sum + (unitPrice + extras) * quantity;
  }, 0);
}
