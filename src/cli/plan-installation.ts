import { daysPast, REST_DAYS } from '../core/retention/past-orders.ts';
import type { Config } from '../config/config.ts';

export type Load = {
  locations: number;
  /** Orders of one location a day. */
  ordersPerLocation: number;
  /** The share of a day's orders that come in its busiest hour. */
  busiestHour: number;
} & Pick<Config, 'POOL_SIZE' | 'WEBHOOK_RETENTION_DAYS' | 'PII_RETENTION_DAYS' | 'HISTORY_DAYS'>;

/** The usual order: webhooks of 1,000 bytes, of which one changes nothing. */
const WEBHOOKS = 5;
const MESSAGES = 6;

/**
 * Processor milliseconds a second of one process, and of Postgres for it, at `orders` a second: `base * orders ** power`,
 * because a batch holds more when more comes. An idle process needs `idle`. An order takes at least `least`: five webhooks
 * and messages in full batches, and its placement. Measured on two shared cores (AMD EPYC, 2026-11-26) by the part `cost`
 * of the benchmark, which compares five loads with these curves.
 */
type Curve = { idle: number; base: number; power: number; least: number };
export const PROCESSOR: { node: Curve; postgres: Curve } = {
  node: { idle: 11, base: 63, power: 0.51, least: 4 },
  postgres: { idle: 5, base: 31, power: 0.62, least: 2 },
};
export const processorMsAt = ({ idle, base, power, least }: Curve, orders: number): number =>
  Math.max(idle, base * orders ** power, least * orders);

/** Bytes of disk with indexes, from docs/scaling.md. */
const DISK = { webhook: 1_710, contents: 1_450, currentOrder: 4_600, pastOrder: 1_275, tombstone: 23 };
/** The share of a disk for the write-ahead log, vacuum and growth. */
const SPARE_DISK = 0.3;
/** Bytes per order that leave the service, without Postgres and Pub/Sub: the ticket, the query, answers to webhooks. */
const SENT = 5_300;
/** Bytes of a live message, with its attributes. */
const MESSAGE = 1_060;
/** The least that is billed for publishing a signal, and for its push. */
const SIGNAL = 2_000;

/** The busiest share of a processor that leaves room for a burst. */
const BUSY = { process: 0.6, postgres: 0.5 };
/** Connections for commands and to spare. During a rollout, Cloud Run runs twice as many processes. */
const CONNECTIONS = { commands: 3, spare: 20 };
const ROLLOUT = 2;
/** Orders a second that one Postgres may carry, see docs/scaling.md. Above the first it was not measured. */
const POSTGRES = { measured: 120, most: 2_000 };

const HOURS = 730;
const GIB = 2 ** 30;
/** Google's list prices of us-central1 in US dollars, without discounts and free amounts, as read on 2026-11-26. */
const PRICE = {
  /** https://cloud.google.com/run/pricing: instance-based, 1 vCPU and 1 GiB. */
  process: HOURS * 3_600 * (0.000018 + 0.000002),
  /** https://cloud.google.com/sql/pricing: Enterprise. */
  vcpu: HOURS * 0.0413,
  gigabyteOfMemory: HOURS * 0.007,
  gigabyteOfDisk: 0.17,
  /** https://cloud.google.com/pubsub/pricing */
  pubsub: 40 / 2 ** 40,
  /** https://cloud.google.com/vpc/network-pricing: to the internet. */
  egress: 0.12 / GIB,
};
const MEMORY_PER_VCPU = 3.75;

export type Plan = {
  ordersPerDay: number;
  /** In the busiest hour. */
  perSecond: { orders: number; webhooks: number; messages: number };
  /** Cores in use in the busiest hour. */
  cores: { service: number; postgres: number };
  processes: number;
  postgres: { machine: string; vcpus: number; memoryGb: number; connections: number };
  /** Gigabytes. */
  disk: { afterAYear: number; afterFive: number; provisioned: number };
  /** Gigabytes a month. */
  traffic: { egress: number; pubsub: number };
  doubts: string[];
  /** Dollars a month. */
  money: { service: number; postgres: number; disk: number; pubsub: number; egress: number; total: number };
};

/** Computes what an installation needs. The second Postgres of high availability is counted in the money. */
export function planInstallation(load: Load): Plan {
  const { PII_RETENTION_DAYS: piiDays } = load;
  const ordersPerDay = load.locations * load.ordersPerLocation;
  const orders = (ordersPerDay * load.busiestHour) / 3_600;
  const { node, postgres } = PROCESSOR;
  let enough = 1;
  while (processorMsAt(node, orders / enough) > BUSY.process * 1_000) enough += 1;
  // If one process dies, the others suffice.
  const processes = enough + 1;
  const coresFor = (curve: Curve): number => (processes * processorMsAt(curve, orders / processes)) / 1_000;
  const cores = { service: coresFor(node), postgres: coresFor(postgres) };
  const vcpus = Math.max(2, 2 * Math.ceil(cores.postgres / BUSY.postgres / 2));
  const memoryGb = vcpus * MEMORY_PER_VCPU;

  const past = piiDays + REST_DAYS;
  // A month is dropped when its last order is old enough.
  const gone = past + daysPast(load) + 31;
  const storedAfter = (days: number): number => {
    const daysOf = (first: number, last: number): number => Math.max(0, Math.min(days, last) - first);
    const bytes =
      WEBHOOKS * daysOf(0, load.WEBHOOK_RETENTION_DAYS) * DISK.webhook +
      daysOf(0, piiDays) * DISK.contents +
      daysOf(0, past) * DISK.currentOrder +
      daysOf(past, gone) * DISK.pastOrder +
      daysOf(gone, Infinity) * DISK.tombstone;
    return (ordersPerDay * bytes) / 1e9;
  };
  const [afterAYear, afterFive] = [storedAfter(365), storedAfter(5 * 365)];
  const provisioned = Math.max(10, Math.ceil(afterFive / (1 - SPARE_DISK)));

  const ordersPerMonth = (ordersPerDay * HOURS) / 24;
  const sent = ordersPerMonth * SENT;
  // Each message is published once, and delivered to one subscription.
  const messages = ordersPerMonth * (SIGNAL + MESSAGES * 2 * MESSAGE);
  const money = {
    service: processes * PRICE.process,
    postgres: 2 * (vcpus * PRICE.vcpu + memoryGb * PRICE.gigabyteOfMemory),
    disk: 2 * provisioned * PRICE.gigabyteOfDisk,
    pubsub: messages * PRICE.pubsub,
    egress: sent * PRICE.egress,
  };
  return {
    ordersPerDay,
    perSecond: { orders, webhooks: orders * WEBHOOKS, messages: orders * MESSAGES },
    cores,
    processes,
    postgres: {
      machine: `db-custom-${vcpus}-${memoryGb * 1_024}`,
      vcpus,
      memoryGb,
      connections: ROLLOUT * processes * load.POOL_SIZE + CONNECTIONS.commands + CONNECTIONS.spare,
    },
    disk: { afterAYear, afterFive, provisioned },
    traffic: { egress: sent / 1e9, pubsub: messages / 1e9 },
    doubts: [
      ...(orders > POSTGRES.measured ? [`Postgres was measured with up to ${POSTGRES.measured} orders a second`] : []),
      ...(orders > POSTGRES.most ? ['one Postgres may not suffice: docs/scaling.md#more-than-one-postgres'] : []),
    ],
    money: { ...money, total: Object.values(money).reduce((sum, each) => sum + each, 0) },
  };
}
