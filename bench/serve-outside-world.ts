/**
 * Runs the ordering platform, the POS and Pub/Sub in a process of their own, so that their costs are not the service's.
 * Its argument is the number of locations. It answers its first message with their addresses, and every further one
 * with what happened since the last. Ends when its parent disconnects.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { sampleOrder } from '../test/support/sample-order.ts';
import { startOrderingPlatform } from '../test/support/start-ordering-platform.ts';
import { startPos } from '../test/support/start-pos.ts';
import { openTopic } from './open-topic.ts';

/** Values for the service's environment and its locations' settings. */
export type OutsideWorld = {
  env: { ORDER_API_URL: string; PUBSUB_EMULATOR_HOST: string; GOOGLE_CLOUD_PROJECT: string; STATUS_TOPIC: string };
  ordersUrl: string;
};

export type Happened = {
  /** Each ticket's order and its time, in milliseconds since 1970 with fractions. */
  tickets: [nth: number, at: number][];
  /** POSTs of orders, repeats included. */
  requests: number;
  /** Live messages, repeats included. */
  published: number;
  /** This process's share of one processor. */
  cpu: number;
};

const PROJECT = 'bench';
const TOPIC = 'order-status';
/** Milliseconds from a ticket to its answer. */
const POS_TAKES_MS = 50;

const locations = Number(process.argv[2]);
const [platform, pos, topic] = await Promise.all([startOrderingPlatform(), startPos(), openTopic(PROJECT, TOPIC)]);

const nthOf = (serviceOrderId: string): number => Number(serviceOrderId.slice('order-'.length));
// Every order exists as soon as it is asked for.
platform.answer = (serviceOrderId) => {
  const locationId = `club-${(nthOf(serviceOrderId) % locations) + 1}`;
  platform.orders.set(serviceOrderId, sampleOrder({ serviceOrderId, locationId }));
  return undefined;
};
let tickets: Happened['tickets'] = [];
pos.onTicket = async ({ serviceOrderId }) => {
  tickets.push([nthOf(serviceOrderId), performance.timeOrigin + performance.now()]);
  await sleep(POS_TAKES_MS);
};

type Totals = { at: number; requests: number; published: number; cpuMs: number };
const totals = (): Totals => {
  const { user, system } = process.cpuUsage();
  return { at: performance.now(), requests: pos.requests, published: topic.count(), cpuMs: (user + system) / 1_000 };
};

let before: Totals | undefined;
process.on('message', () => {
  const now = totals();
  if (before === undefined) {
    const env = {
      ORDER_API_URL: platform.url,
      PUBSUB_EMULATOR_HOST: topic.host,
      GOOGLE_CLOUD_PROJECT: PROJECT,
      STATUS_TOPIC: TOPIC,
    };
    process.send?.({ env, ordersUrl: pos.ordersUrl } satisfies OutsideWorld);
  } else {
    process.send?.({
      tickets,
      requests: now.requests - before.requests,
      published: now.published - before.published,
      cpu: (now.cpuMs - before.cpuMs) / (now.at - before.at),
    } satisfies Happened);
    tickets = [];
  }
  before = now;
});
