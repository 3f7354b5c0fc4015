import { chance } from './chance.ts';
import { sendStatus } from './send-status.ts';
import type { Served } from './serve-orders.ts';
import type { Kitchen } from './send-status.ts';

/** Sales a second and location: a POS id that is never ours, and its end. */
const PER_SECOND = 50;
/**
 * Locations whose tills send all their sales. More of them, and on two cores the run would measure how many webhooks
 * these take, which the benchmark does.
 */
export const TILL_LOCATIONS = 2;
/** Sales that are sent once more, as after an answer that was lost. */
const AGAIN = 0.2;
const ANSWER_MS = 3_000;
/** Sales under way; a till that hears nothing sends no more. */
const MAX_UNDER_WAY = 200;

/** Answers to a sale under a POS id that is nobody's, or not yet: spilled, it is judged later. */
const MAY_BE = new Set(['parked', 'unmatched', 'accepted']);

export type Tills = {
  /** Sales that were answered 200. */
  sales(): number;
  stop(): Promise<void>;
  /** What became of sales that must not, in words. */
  misjudged(): string[];
};

/** Sends the tills' own sales of a few locations, at a steady pace, whatever the answers. */
export function sellAtTills(kitchens: readonly Kitchen[], seed: number, { answers, acknowledged }: Served): Tills {
  // Not of the location whose door is measured, nor of the one whose POS is dead.
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
