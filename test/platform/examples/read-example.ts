import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { readCanonicalOrder, type CanonicalOrder, type OrderInput, type Skipped } from 'expediter-platform';
import { doubtsOf } from '../../../src/diagnostics/doubt-order.ts';

/** The examples' folder. */
export const PLATFORMS = fileURLToPath(new URL('../../../examples/platforms', import.meta.url));

/**
 * Reads what an example's mapper returned, like the service. Nothing may be left out, and nothing be doubtful.
 * @param id the order's id on the platform
 */
export function readExample(mapped: OrderInput | Skipped | null, id: string): CanonicalOrder {
  if (mapped === null || 'skipped' in mapped) throw new Error('The mapper returned no order.');
  const { order, leftOut } = readCanonicalOrder(mapped, { serviceOrderId: id, country: 'GB' });
  expect([...leftOut, ...doubtsOf(order, new Date('2026-11-21T17:45:00Z'))]).toEqual([]);
  return order;
}
