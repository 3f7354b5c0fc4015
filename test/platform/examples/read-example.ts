import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { readCanonicalOrder, type CanonicalOrder, type OrderInput, type Skipped } from 'expediter-platform';
import { sumItems } from '../../../src/core/domain/money.ts';

/** The examples' folder. */
export const PLATFORMS = fileURLToPath(new URL('../../../examples/platforms', import.meta.url));

/**
 * Reads what an example's mapper returned, like the service. Nothing may be left out, and the sums must fit.
 * @param id the order's id on the platform
 */
export function readExample(mapped: OrderInput | Skipped | null, id: string): CanonicalOrder {
  if (mapped === null || 'skipped' in mapped) throw new Error('The mapper returned no order.');
  const { order, leftOut } = readCanonicalOrder(mapped, { serviceOrderId: id, country: 'GB' });
  expect(leftOut).toEqual([]);
  const { subtotal, discount = 0, tax, tip, fee, total, pricesIncludeTax } = order.money;
  expect(sumItems(order.items)).toBe(subtotal);
  expect(subtotal - discount + (pricesIncludeTax ? 0 : tax) + tip + fee).toBe(total);
  return order;
}
