import { hash } from 'node:crypto';

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

function digest(serviceOrderId: string): string {
  return hash('sha256', serviceOrderId, 'hex');
}
