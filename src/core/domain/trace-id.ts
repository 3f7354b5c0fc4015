import { hash, randomUUID } from 'node:crypto';

/**
 * The trace of an order, derived from its id: every process finds the same one, hours later, and nothing is stored.
 * @returns 32 hexadecimal digits
 */
export function traceId(serviceOrderId: string): string {
  return digest(serviceOrderId).slice(0, 32);
}

/** The parent span of all others of the order. @returns 16 hexadecimal digits */
export function rootSpanId(serviceOrderId: string): string {
  return digest(serviceOrderId).slice(32, 48);
}

/** Made of the digits of a UUID that are all random, which takes a tenth of the time of `randomBytes`. */
export function newSpanId(): string {
  const uuid = randomUUID();
  return uuid.slice(0, 8) + uuid.slice(28);
}

/** Chooses by the beginning of the id, a hash: as good as random, and the same in every process. */
export function isTraced(trace: string, share: number): boolean {
  return Number.parseInt(trace.slice(0, 8), 16) < share * 2 ** 32;
}

/** Names a span for others, as W3C's Trace Context does. `share` is that of the orders that are traced. */
export function traceparent(serviceOrderId: string, spanId: string, share: number): string {
  const trace = traceId(serviceOrderId);
  return `00-${trace}-${spanId}-${isTraced(trace, share) ? '01' : '00'}`;
}

function digest(serviceOrderId: string): string {
  return hash('sha256', serviceOrderId, 'hex');
}
