import { setTimeout as sleep } from 'node:timers/promises';
import type { Offered } from '../load/offer-steadily.ts';
import { seedOrders } from '../load/seed-orders.ts';
import type { LiveStage } from '../stage/set-live-stage.ts';
import { median } from './summarize.ts';

export type Pair<Turn> = { quiet: Turn; beside: Turn };

/**
 * Takes turns in pairs, with a disturbance and without it. The first pair warms up. The order alternates, so that a
 * change of the machine's speed affects both.
 * @returns the pairs without the first
 */
export async function takePairs<Turn>(
  pairs: number,
  take: (kind: keyof Pair<Turn>) => Promise<Turn>,
  onPair: (pair: Pair<Turn>) => void,
): Promise<Pair<Turn>[]> {
  const taken: Pair<Turn>[] = [];
  for (let nth = 0; nth <= pairs; nth += 1) {
    const turn: Partial<Pair<Turn>> = {};
    for (const kind of nth % 2 === 0 ? (['quiet', 'beside'] as const) : (['beside', 'quiet'] as const)) {
      turn[kind] = await take(kind);
    }
    onPair(turn as Pair<Turn>);
    taken.push(turn as Pair<Turn>);
  }
  return taken.slice(1);
}

/** @returns the median of a value of the disturbed turns, against the quiet ones */
export function medianRatio<Turn>(pairs: readonly Pair<Turn>[], of: (turn: Turn) => number): number {
  return median(pairs.map(({ quiet, beside }) => of(beside) / of(quiet)));
}

/** A disturbance begins this long before the webhooks, so that its connections are open. */
const WARM_UP_S = 1;

/**
 * Offers webhooks, all of which must be answered 200.
 * @param disturb begins earlier. It gets the seconds for which it lasts; undefined in a quiet turn
 * @param meanwhile begins with the webhooks
 */
export async function offerBeside<Disturbed, Done>(
  stage: LiveStage,
  { perSecond, seconds }: { perSecond: number; seconds: number },
  disturb: ((seconds: number) => Promise<Disturbed>) | undefined,
  meanwhile: () => Promise<Done>,
): Promise<Offered & { spent: string; disturbed: Disturbed | undefined; done: Done }> {
  const webhooks = perSecond * seconds;
  await seedOrders(stage.databaseUrl, stage.senders, webhooks);
  const begin = await stage.sign({ perSecond, webhooks });
  const disturbing = disturb?.(WARM_UP_S + seconds);
  await sleep(WARM_UP_S * 1_000);
  const processors = stage.watchProcessors();
  const [offered, done] = await Promise.all([begin(), meanwhile()]);
  const spent = processors();
  const disturbed = await disturbing;
  if (offered.answers['200'] !== webhooks) {
    throw new Error(`not all webhooks got 200: ${JSON.stringify(offered.answers)}`);
  }
  return { ...offered, spent, done, disturbed };
}
