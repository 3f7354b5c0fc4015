import type { Sender } from './prepare-bench-database.ts';
import { fillOrder } from './fill-order.ts';
import { orderId } from './seed-orders.ts';
import { MOVES, signRequest, type SignedRequest } from './sign-request.ts';

/**
 * Kinds of load. `spread`: each webhook moves an order, never the same twice in a row. `hot`: nine of ten are about one
 * order. `poison`: one of a hundred holds what Postgres cannot store.
 */
export const PLANS = ['spread', 'hot', 'poison'] as const;
export type Plan = (typeof PLANS)[number];

/** Requests per poison one in the plan `poison`. It is in their middle. */
export const POISON_EVERY = 100;

/** The step from order to order. A prime, so that every order gets its turn, far from the one before. */
const STRIDE = 611_953;
const POISONS = [
  { thirdPartyReference: `${orderId(0)}\0` },
  { thirdPartyReference: 'half of a \uD83C slice' },
  { id: 'x'.repeat(10_000) },
  { occurredAt: '0000-01-31T18:30:00Z' },
];

/**
 * Returns the g-th request of a load on `orders` orders.
 * @param bodyBytes of the order that is sent whole, about; 0 if only what the service reads is sent
 */
export function chooseRequest(
  senders: readonly Sender[],
  plan: Plan,
  orders: number,
  g: number,
  bodyBytes = 0,
): SignedRequest {
  const move = MOVES[Math.floor(g / orders) % MOVES.length] ?? 'completed';
  const nth = (g * STRIDE) % orders;
  if (plan === 'hot' && g % 10 !== 0) return signRequest(senders, 0, MOVES[g % MOVES.length] ?? 'completed');
  if (countPoison(plan, g, 1) === 1) {
    return signRequest(senders, nth, move, POISONS[Math.floor(g / POISON_EVERY) % POISONS.length]);
  }
  return signRequest(senders, nth, move, bodyBytes === 0 ? {} : fillOrder(g, bodyBytes));
}

/** Counts the poison among `requests` requests from the `from`-th on. */
export function countPoison(plan: Plan, from: number, requests: number): number {
  if (plan !== 'poison') return 0;
  const before = (g: number): number => Math.floor((g + POISON_EVERY / 2 - 1) / POISON_EVERY);
  return before(from + requests) - before(from);
}
