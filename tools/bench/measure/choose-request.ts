import type { Sender } from '../stage/prepare-bench-database.ts';
import { fillOrder } from '../load/fill-order.ts';
import { orderId } from '../load/seed-orders.ts';
import { MOVES, signRequest, type SignedRequest } from '../load/sign-request.ts';

/**
 * Kinds of load. `spread`: each webhook moves an order, and consecutive webhooks are about different orders. `hot`:
 * nine of ten webhooks are about one order. `poison`: one of a hundred has a value that Postgres cannot store.
 */
export const PLANS = ['spread', 'hot', 'poison'] as const;
export type Plan = (typeof PLANS)[number];

/** In the plan `poison`, one of this many requests is poison: the one in the middle. */
export const POISON_EVERY = 100;

/** The step from one order to the next. It is a prime, so that every order gets its turn, far from the previous one. */
const STRIDE = 611_953;
/** An event is dropped if neither of its ids can be read. */
const POISONS = [
  { thirdPartyReference: `${orderId(0)}\0`, id: '\0' },
  { thirdPartyReference: 'half of a \uD83C slice', id: 'x'.repeat(10_000) },
];

/**
 * Returns the g-th request of a load on `orders` orders.
 * @param bodyBytes the approximate size of a whole order in the body; 0 sends only the fields that the service reads
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

/** Counts the poison in `requests` requests, beginning with number `from`. */
export function countPoison(plan: Plan, from: number, requests: number): number {
  if (plan !== 'poison') return 0;
  const before = (g: number): number => Math.floor((g + POISON_EVERY / 2 - 1) / POISON_EVERY);
  return before(from + requests) - before(from);
}
