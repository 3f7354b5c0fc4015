import { hash, randomUUID } from 'node:crypto';

/**
 * The trace of an order, derived from its id: every process derives the same one, even hours later, and none is stored.
 * @returns 32 hexadecimal digits
 */
export function traceId(serviceOrderId: string): string {
  return digest(serviceOrderId).slice(0, 32);
}

/** The parent of all other spans of the order. @returns 16 hexadecimal digits */
export function rootSpanId(serviceOrderId: string): string {
  return digest(serviceOrderId).slice(32, 48);
}

/** Uses the random digits of a UUID, because `randomBytes` would take ten times as long. */
export function newSpanId(): string {
  const uuid = randomUUID();
  return uuid.slice(0, 8) + uuid.slice(28);
}

/** Decides by the first digits of the id. It is a hash, so they are as good as random, and all processes agree. */
export function isTraced(trace: string, share: number): boolean {
  return Number.parseInt(trace.slice(0, 8), 16) < share * 2 ** 32;
}

/** Names a span in the format of W3C's Trace Context. `share` is the share of traced orders. */
export function traceparent(serviceOrderId: string, spanId: string, share: number): string {
  const trace = traceId(serviceOrderId);
  return `00-${trace}-${spanId}-${isTraced(trace, share) ? '01' : '00'}`;
}

function digest(serviceOrderId: string): string {
  return hash('sha256', serviceOrderId, 'hex');
}
