/**
 * The ordering platform, the POS and Pub/Sub in a process of their own, so that what they cost is not counted as the
 * service's. Forked with how many locations there are; answers its first message with where they are and every further
 * one with what happened since the one before. Ends when its parent lets it go.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { sampleOrder } from '../test/support/sample-order.ts';
import { startOrderingPlatform } from '../test/support/start-ordering-platform.ts';
import { startPos } from '../test/support/start-pos.ts';
import { openTopic } from './open-topic.ts';

/** For the environment of the service, and for the settings of its locations. */
export type OutsideWorld = {
  env: { ORDER_API_URL: string; PUBSUB_EMULATOR_HOST: string; GOOGLE_CLOUD_PROJECT: string; STATUS_TOPIC: string };
  ordersUrl: string;
};

export type Happened = {
  /** Each ticket's order and when it came, in milliseconds since 1970 with their fractions. */
  tickets: [nth: number, at: number][];
  /** POSTs of orders, repeats and all. */
  requests: number;
  /** Live messages, repeats and all. */
  published: number;
  /** Of this process, as a share of one processor. */
  cpu: number;
};

const PROJECT = 'bench';
const TOPIC = 'order-status';
/** From a ticket to its answer. */
const POS_TAKES_MS = 50;

const locations = Number(process.argv[2]);
const [platform, pos, topic] = await Promise.all([startOrderingPlatform(), startPos(), openTopic(PROJECT, TOPIC)]);

const nthOf = (serviceOrderId: string): number => Number(serviceOrderId.slice('order-'.length));
// Every order is there as soon as somebody asks for it.
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
