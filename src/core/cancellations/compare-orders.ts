import { isDeepStrictEqual } from 'node:util';
import type { CanonicalOrder } from '../domain/order.ts';

/** A field that differs. What is missing on one side is missing here. */
export type OrderChange = { path: string; was?: unknown; is?: unknown };

/** Finds what the platform changed in an order, apart from that it is cancelled. A list of another length is one change. */
export function compareOrders(was: CanonicalOrder, is: CanonicalOrder): OrderChange[] {
  // As it would be stored: without what is undefined.
  return differences(asCompared(was), asCompared(JSON.parse(JSON.stringify(is)) as CanonicalOrder), []);
}

function asCompared({ cancelledAt: _at, cancelReason: _reason, ...order }: CanonicalOrder): object {
  return order;
}

function differences(was: unknown, is: unknown, path: readonly string[]): OrderChange[] {
  if (isDeepStrictEqual(was, is)) return [];
  if (isObject(was) && isObject(is) && lengthOf(was) === lengthOf(is)) {
    const fields = [...new Set([...Object.keys(was), ...Object.keys(is)])];
    return fields.flatMap((field) => differences(was[field], is[field], [...path, field]));
  }
  return [{ path: path.join('.'), ...(was !== undefined && { was }), ...(is !== undefined && { is }) }];
}

/** @returns a list's length, or undefined for what is no list */
function lengthOf(value: object): number | undefined {
  return Array.isArray(value) ? value.length : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
