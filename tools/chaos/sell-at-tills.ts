import { chance } from './chance.ts';
import { sendStatus } from './send-status.ts';
import type { Served } from './serve-orders.ts';
import type { Kitchen } from './send-status.ts';

/** Sales per second and location. Each is a webhook about a completed sale whose POS id is of no order of ours. */
const PER_SECOND = 50;
/**
 * Locations whose tills send all their sales. With more of them, a machine with two cores would be at its limit of
 * webhooks, and the run would measure that limit, as the benchmark does.
 */
export const TILL_LOCATIONS = 2;
/** The share of sales that are sent twice, as after a lost answer. */
const AGAIN = 0.2;
const ANSWER_MS = 3_000;
/** The most sales without an answer. Then no more are sent. */
const MAX_UNDER_WAY = 200;

/** Allowed outcomes of a sale, whose POS id belongs to no order, or not yet. A spilled one is `accepted`. */
const MAY_BE = new Set(['parked', 'unmatched', 'accepted']);

export type Tills = {
  /** Sales that were answered 200. */
  sales(): number;
  stop(): Promise<void>;
  /** A sentence for each outcome that a sale must not have. */
  misjudged(): string[];
};

/** Sends webhooks about the tills' own sales at a few locations, at a steady pace, whatever the answers. */
export function sellAtTills(kitchens: readonly Kitchen[], seed: number, { answers, acknowledged }: Served): Tills {
  // Not the first location, which the probe measures, and not the second, whose POS may be dead.
  const selling = kitchens.slice(2, 2 + TILL_LOCATIONS);
  const outcomes = new Map<string, number>();
  const underWay = new Set<Promise<void>>();
  let nth = 0;

  const sell = async (kitchen: Kitchen, providerOrderId: string): Promise<void> => {
    const again = chance(seed, 'sale', providerOrderId) < AGAIN;
    for (let times = again ? 2 : 1; times > 0; times -= 1) {
      const answer = await sendStatus(kitchen, { providerOrderId, status: 'completed' }, ANSWER_MS);
      answers.push(answer);
      const { status, webhookId, outcome } = answer;
      if (status !== 200) continue;
      acknowledged.push({ webhookId, outcome, locationId: kitchen.locationId });
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  };
  const timer = setInterval(() => {
    nth += 1;
    for (const kitchen of selling) {
      if (underWay.size >= MAX_UNDER_WAY) return;
      const selling: Promise<void> = sell(kitchen, `sale-${seed}-${nth}`).finally(() => underWay.delete(selling));
      underWay.add(selling);
    }
  }, 1_000 / PER_SECOND);

  return {
    sales: () => [...outcomes.values()].reduce((sum, count) => sum + count, 0),
    async stop() {
      clearInterval(timer);
      await Promise.all(underWay);
    },
    misjudged: () =>
      [...outcomes]
        .filter(([outcome]) => !MAY_BE.has(outcome))
        .map(([outcome, count]) => `${count} sales of tills were answered ${outcome}`),
  };
}
