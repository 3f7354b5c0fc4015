import type { CanonicalOrder } from '../core/domain/order.ts';

/** What tells of a member. A country or the kind of a fulfillment does not. */
const PERSONAL = /^(member\..*|fulfillment\.destination\.(?!country$).*|notes|items\.\d+\.notes)$/;

/** Copies an order with the lengths of what tells of its member in place of the texts. */
export function maskOrder(order: CanonicalOrder): unknown {
  return mask(order, '');
}

function mask(value: unknown, path: string): unknown {
  if (typeof value === 'object' && value !== null) {
    const masked = Object.entries(value).map(([key, each]) => [key, mask(each, path === '' ? key : `${path}.${key}`)]);
    return Array.isArray(value) ? masked.map(([, each]) => each) : Object.fromEntries(masked);
  }
  if (!PERSONAL.test(path)) return value;
  return typeof value === 'string' ? `(${value.length} characters)` : `(a ${typeof value})`;
}
