import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Availability } from '../../src/core/domain/availability.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { KitchenReport } from '../../src/core/domain/webhook.ts';
import { pauseLocation } from '../../src/core/kitchens/pause-location.ts';
import { AHEAD } from '../../world/processes/move-clock.ts';
import { post, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { chance, pick } from './chance.ts';
import { simulateOutages, type Outages } from './simulate-outages.ts';
import { startPair } from './start-pair.ts';

export type KitchensResult = Outages & {
  /** Orders that the POS got once, never, and more than once. */
  ordersPlaced: number;
  ordersLost: number;
  ordersDoubled: number;
  /** Reports of POS systems, and the longest time until the topic had the last of several, in milliseconds. */
  reports: number;
  toldMaxMs: number;
};

const KITCHENS = ['by-its-end', 'by-operator', 'by-both', 'by-its-word'] as const;
const FLAPPING_MS = 30_000;
const TOLD_WITHIN_MS = 5_000;
/** Orders that wait at each closed kitchen. */
const WAITING = 5;
const HOUR_S = 3_600;
/** Shorter than a closing, so an order that waits fails unless its deadline is moved. */
const DEADLINE_S = 600;
const TOPIC = 'kitchens';

/** Counts how often each order came. */
const tickets = new Map<string, number>();
const acme: Provider = {
  integration: 'acme',
  settings: z.object({}),
  deduplicates: false,
  async createOrder({ serviceOrderId }) {
    tickets.set(serviceOrderId, (tickets.get(serviceOrderId) ?? 0) + 1);
    return {};
  },
  translateWebhook: () => [],
  readKitchen({ body }) {
    const { until: end, ...said } = JSON.parse(body.toString()) as { until: string };
    return KitchenReport.parse({ ...said, until: new Date(end) });
  },
};

/**
 * First, kitchens flap while orders come. Then all are closed for an hour with orders waiting, and open, each for
 * another reason. Then a thousand hours of POS systems that do not answer are simulated.
 */
export async function runKitchens(
  seed: number,
  print: (line: string) => void,
): Promise<{ result: KitchensResult; complaints: string[] }> {
  print(`seed ${seed}: ${KITCHENS.length} kitchens flap for ${FLAPPING_MS / 1_000} s, then they close for an hour`);
  const { complaints, ...flapped } = await flapAndClose(seed);
  print(`${flapped.ordersPlaced} orders were placed; then POS systems are simulated that do not answer`);
  const { complaints: others, ...outages } = await simulateOutages(seed);
  complaints.push(...others);
  return { result: { ...flapped, ...outages }, complaints };
}

async function flapAndClose(seed: number): Promise<Omit<KitchensResult, keyof Outages> & { complaints: string[] }> {
  const env = { KITCHEN_TOPIC: TOPIC, PLACEMENT_DEADLINE_S: String(DEADLINE_S) };
  const system = await startPair({ providers: [acme], env });
  try {
    const urls = new Map<string, string>();
    for (const id of KITCHENS) {
      await system.addLocation(id, {}, 'acme');
      urls.set(id, await system.webhookUrl(id));
    }
    const orders: string[] = [];
    const order = async (locationId: string): Promise<void> => {
      orders.push((await system.placeOrder({ locationId })).serviceOrderId);
    };
    let reports = 0;
    /** @returns the end that was said. Each is different, so that it tells the report from others */
    const say = async (id: string, state: string, hours = 1): Promise<string> => {
      const end = new Date(Date.now() + 1_000 * (hours * HOUR_S + (reports += 1))).toISOString();
      await post(urls.get(id) ?? '', { state, until: end, ...(state === 'busy' && { extraMinutes: 20 }) });
      return end;
    };
    const waits: number[] = [];
    const ends = performance.now() + FLAPPING_MS;
    const flap = async (id: string): Promise<void> => {
      for (let nth = 0, known = 'open'; performance.now() < ends; nth += 1) {
        const draw = (what: string): number => chance(seed, what, id, nth);
        // Of reports in quick succession, the topic needs only the last one.
        const isQuick = draw('quick') < 0.5;
        if (isQuick) await say(id, pick(['open', 'busy', 'closed'], draw('first')));
        await sleep(isQuick ? 2_000 * draw('pause') : 0);
        const state = pick(['busy', 'closed', isQuick || known === 'open' ? 'closed' : 'open'], draw('last'));
        const at = Date.now();
        const end = await say(id, state);
        const message = await until(() => {
          const last = told(system, id).at(-1);
          return (
            last?.state === state && (state === 'open' || Date.parse(last.until ?? '') === Date.parse(end)) && last
          );
        });
        waits.push(message.publishedAt - at);
        known = state;
        await order(id);
        await sleep(1_000 * draw('rest'));
      }
    };
    await Promise.all(KITCHENS.map(flap));

    for (const id of KITCHENS) await say(id, 'open');
    for (const id of ['by-its-end', 'by-both']) await say(id, 'closed');
    for (const id of ['by-operator', 'by-both']) await pauseLocation(system.pool, id, { by: 'Anna', minutes: 60 });
    await say('by-its-word', 'closed', 2);
    const before = orders.length;
    for (const id of KITCHENS) for (let nth = 0; nth < WAITING; nth += 1) await order(id);
    const waiting = orders.slice(before);
    for (const id of waiting) await until(async () => (await system.placement(id))?.['state'] === 'held');
    const early = waiting.filter((id) => tickets.has(id));
    await system.query(AHEAD, [HOUR_S + reports]);
    const isOfWord = new Set(waiting.filter((_, nth) => KITCHENS[Math.floor(nth / WAITING)] === 'by-its-word'));
    await until(() => waiting.every((id) => isOfWord.has(id) || tickets.has(id)));
    early.push(...[...isOfWord].filter((id) => tickets.has(id)));
    await say('by-its-word', 'open', 2);
    await until(async () => (await system.query('SELECT FROM placements WHERE finished_at IS NULL')).length === 0);
    await until(() => KITCHENS.every((id) => told(system, id).at(-1)?.state === 'open'));

    const countOf = (id: string): number => tickets.get(id) ?? 0;
    const toldMaxMs = Math.max(...waits);
    return {
      ordersPlaced: orders.filter((id) => countOf(id) === 1).length,
      ordersLost: orders.filter((id) => countOf(id) === 0).length,
      ordersDoubled: orders.filter((id) => countOf(id) > 1).length,
      reports,
      toldMaxMs,
      complaints: [
        ...orders.filter((id) => countOf(id) !== 1).map((id) => `order ${id} has ${countOf(id)} tickets`),
        ...early.map((id) => `order ${id} was sent to a closed kitchen`),
        ...KITCHENS.filter((id) => !isAscending(told(system, id))).map((id) => `messages of ${id} are out of order`),
        ...(toldMaxMs > TOLD_WITHIN_MS ? [`the topic was told ${toldMaxMs} ms after a POS had said it`] : []),
      ],
    };
  } finally {
    await system.stop();
  }
}

const told = (system: System, locationId: string): (Availability & { publishedAt: number })[] =>
  system.pubsub
    .published(TOPIC)
    .filter(({ orderingKey }) => orderingKey === locationId)
    .map(({ data, publishTime }) => ({
      ...(JSON.parse(data.toString()) as Availability),
      publishedAt: publishTime.getTime(),
    }));

/** A repeat of the last message is allowed. */
const isAscending = (messages: readonly Availability[]): boolean =>
  messages.every(({ sequence }, nth) => sequence >= (messages[nth - 1]?.sequence ?? 0));
