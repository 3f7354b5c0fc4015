/**
 * Runs the ordering platform, the POS and Pub/Sub in their own process, so that their work does not count as the
 * service's. The arguments are the number of locations, and of those whose POS is ill: the first hangs, the others answer
 * 503. The first message is answered with the addresses, every later one
 * with what happened since the previous message. The process ends when its parent disconnects.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { startOrderingPlatform } from '../../../world/platform/start-ordering-platform.ts';
import { startPos } from '../../../world/pos/start-pos.ts';
import { openTopic } from './open-topic.ts';

/** Values for the service's environment and its locations' settings. */
export type OutsideWorld = {
  env: Record<
    'ORDER_API_URL' | 'ORDER_MODULE' | 'PUBSUB_EMULATOR_HOST' | 'GOOGLE_CLOUD_PROJECT' | 'STATUS_TOPIC',
    string
  >;
  pos: { ordersUrl: string; cancelUrl: string };
};

export type Happened = {
  /** Each ticket's order and its time, in milliseconds since 1970 with fractions. */
  tickets: [nth: number, at: number][];
  /** The same for each request to cancel. */
  cancels: [nth: number, at: number][];
  /** The number of POSTs of orders, with repeats. */
  requests: number;
  /** The number of live messages, with repeats. */
  published: number;
  /** The milliseconds from the commit of each until it was published. */
  lagsMs: number[];
  /** This process's share of one processor. */
  cpu: number;
};

const PROJECT = 'bench';
const TOPIC = 'order-status';
/** Milliseconds from a ticket to its answer. */
const POS_TAKES_MS = 50;

const [locations = 0, ill = 0] = process.argv.slice(2).map(Number);
const nthOf = (serviceOrderId: string): number => Number(serviceOrderId.slice('order-'.length));
/** As webhooks name it. */
const idOf = (serviceOrderId: string): string => `pos-${nthOf(serviceOrderId)}`;
const [platform, pos, topic] = await Promise.all([
  startOrderingPlatform(),
  startPos({ idOf }),
  openTopic(PROJECT, TOPIC),
]);

// Every order exists when it is fetched for the first time, and is cancelled when it is fetched again.
platform.answer = (serviceOrderId) => {
  const locationId = `club-${(nthOf(serviceOrderId) % locations) + 1}`;
  const cancelled = platform.orders.has(serviceOrderId) && { cancelledAt: '2027-01-31T18:00:00Z' };
  platform.orders.set(serviceOrderId, { ...sampleOrder({ serviceOrderId, locationId }), ...cancelled });
  return undefined;
};
const now = (): number => performance.timeOrigin + performance.now();
pos.behave = ({ order }) => {
  const nth = nthOf(order.serviceOrderId) % locations;
  if (nth >= ill) return undefined;
  return nth === 0 ? 'hang' : { status: 503 };
};
let tickets: Happened['tickets'] = [];
pos.onTicket = async ({ serviceOrderId }) => {
  tickets.push([nthOf(serviceOrderId), now()]);
  await sleep(POS_TAKES_MS);
};
let cancels: Happened['cancels'] = [];
pos.miscancel = ({ serviceOrderId }) => {
  cancels.push([nthOf(serviceOrderId), now()]);
  return undefined;
};

type Totals = { at: number; requests: number; published: number; cpuMs: number };
const totals = (): Totals => {
  const { user, system } = process.cpuUsage();
  return { at: performance.now(), requests: pos.requests, published: topic.count(), cpuMs: (user + system) / 1_000 };
};

let before: Totals | undefined;
process.on('message', () => {
  const sums = totals();
  if (before === undefined) {
    const env = {
      ORDER_API_URL: platform.url,
      ORDER_MODULE: fileURLToPath(new URL('../../../examples/order-with-cancels.ts', import.meta.url)),
      PUBSUB_EMULATOR_HOST: topic.host,
      GOOGLE_CLOUD_PROJECT: PROJECT,
      STATUS_TOPIC: TOPIC,
    };
    const { ordersUrl, cancelUrl } = pos;
    process.send?.({ env, pos: { ordersUrl, cancelUrl } } satisfies OutsideWorld);
  } else {
    process.send?.({
      tickets,
      cancels,
      requests: sums.requests - before.requests,
      published: sums.published - before.published,
      lagsMs: topic.lagsMs(before.published),
      cpu: (sums.cpuMs - before.cpuMs) / (sums.at - before.at),
    } satisfies Happened);
    tickets = [];
    cancels = [];
  }
  before = sums;
});
