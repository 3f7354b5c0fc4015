/**
 * The messages of one Pub/Sub subscription, with any consumer: a lease per delivery, redelivery when it is refused
 * or expires, order within a key, and dead lettering. As with Google's, a redelivered message brings all later ones of
 * its key again, acknowledged ones too.
 */
import { randomUUID } from 'node:crypto';

export type Message = {
  messageId: string;
  publishTime: Date;
  data: Buffer;
  attributes: Record<string, string>;
  /** Empty if the message has none. */
  orderingKey: string;
};

/** One delivery of one message. `attempt` counts from 1. */
export type Lease = { ackId: string; message: Message; attempt: number };

/** A stream, a single pull, or the pusher. */
export type Consumer = {
  /** Read before each delivery. A consumer that raises it calls `wake`. */
  readonly maxOutstanding: number;
  ackDeadlineMs: number;
  /** True if the next message of a key is wanted only after the one before is acknowledged, as for push. */
  oneOfAKey?: boolean;
  receive(leases: Lease[]): void;
};

/** The wait of a refused message: doubled from attempt to attempt, from `minMs` to `maxMs`. */
export type Backoff = { minMs: number; maxMs: number };

/** Takes messages after `maxAttempts` deliveries. `take` returns false if it cannot: they are delivered again. */
export type LastResort = { maxAttempts: number; take(message: Message, attempts: number): boolean };

export type MessageQueue = {
  add(messages: readonly Message[]): void;
  /** @returns a function that detaches the consumer; its leases continue */
  attach(consumer: Consumer): () => void;
  /** Ignores an unknown or expired `ackId`, as Pub/Sub does. */
  ack(ackIds: readonly string[]): void;
  nack(ackIds: readonly string[]): void;
  extend(ackIds: readonly string[], ms: number): void;
  /** Delivers waiting messages to consumers that take more than before. */
  wake(): void;
  /** Returns how many messages are not acknowledged, leased ones included. */
  unacknowledged(): number;
  close(): void;
};

/** Messages that must stay in order: those of one key, or a single one without a key. */
type Lane = {
  key: string | undefined;
  /** Messages from the oldest that is not acknowledged. */
  entries: Entry[];
  /** How many of them, from the first, are leased to `consumer`. */
  sent: number;
  consumer: Consumer | undefined;
  state: 'idle' | 'ready' | 'resting';
};
type Entry = { message: Message; lane: Lane; attempt: number; acknowledged: boolean; ackId: string };
type Outstanding = { entry: Entry; consumer: Consumer; expiry: NodeJS.Timeout };

export const BATCH_MAX = 200;

type Queue = {
  readonly options: QueueOptions;
  /** Lanes by key. */
  readonly lanes: Map<string, Lane>;
  ready: Lane[];
  readonly outstanding: Map<string, Outstanding>;
  /** How many messages each consumer has. */
  readonly load: Map<Consumer, number>;
  readonly resting: Set<NodeJS.Timeout>;
  unacknowledged: number;
};
type QueueOptions = { ordered: boolean; backoff?: Backoff | undefined; lastResort?: LastResort | undefined };

export function queueMessages(options: QueueOptions): MessageQueue {
  const queue: Queue = {
    options,
    lanes: new Map(),
    ready: [],
    outstanding: new Map(),
    load: new Map(),
    resting: new Set(),
    unacknowledged: 0,
  };
  const { outstanding, load, resting } = queue;
  return {
    add: (messages) => add(queue, messages),
    ack: (ackIds) => ack(queue, ackIds),
    nack: (ackIds) => nack(queue, ackIds),
    wake: () => deliver(queue),
    unacknowledged: () => queue.unacknowledged,
    attach(consumer) {
      load.set(consumer, 0);
      deliver(queue);
      return () => void load.delete(consumer);
    },
    extend(ackIds, ms) {
      for (const ackId of ackIds) {
        const held = outstanding.get(ackId);
        if (held === undefined) continue;
        clearTimeout(held.expiry);
        held.expiry = expireAfter(queue, ackId, ms);
      }
    },
    close() {
      load.clear();
      for (const timer of resting) clearTimeout(timer);
      for (const { expiry } of outstanding.values()) clearTimeout(expiry);
    },
  };
}

function add(queue: Queue, messages: readonly Message[]): void {
  queue.unacknowledged += messages.length;
  for (const message of messages) {
    const lane = queueFor(queue, queue.options.ordered && message.orderingKey !== '' ? message.orderingKey : undefined);
    lane.entries.push({ message, lane, attempt: 0, acknowledged: false, ackId: '' });
    wake(queue, lane);
  }
  deliver(queue);
}

function queueFor(queue: Queue, key: string | undefined): Lane {
  const known = key === undefined ? undefined : queue.lanes.get(key);
  if (known !== undefined) return known;
  const lane: Lane = { key, entries: [], sent: 0, consumer: undefined, state: 'idle' };
  if (key !== undefined) queue.lanes.set(key, lane);
  return lane;
}

function wake(queue: Queue, lane: Lane): void {
  if (lane.state !== 'idle' || lane.sent === lane.entries.length) return;
  lane.state = 'ready';
  queue.ready.push(lane);
}

function deliver(queue: Queue): void {
  const batches = new Map<Consumer, Lease[]>();
  const blocked: Lane[] = [];
  while (queue.ready.length > 0 && leastBusy(queue) !== undefined) {
    const lane = queue.ready.shift();
    if (lane?.state !== 'ready') continue;
    const consumer = lane.sent > 0 ? lane.consumer : leastBusy(queue);
    if (consumer === undefined) continue;
    const batch = batches.get(consumer) ?? [];
    batches.set(consumer, batch);
    batch.push(...leaseFrom(queue, lane, consumer));
    if (lane.sent === lane.entries.length || consumer.oneOfAKey === true) lane.state = 'idle';
    else blocked.push(lane);
  }
  if (blocked.length > 0) queue.ready = [...blocked, ...queue.ready];
  for (const [consumer, batch] of batches) {
    while (batch.length > 0) consumer.receive(batch.splice(0, BATCH_MAX));
  }
}

function leastBusy(queue: Queue): Consumer | undefined {
  let least: Consumer | undefined;
  for (const [consumer, held] of queue.load) {
    if (held < consumer.maxOutstanding && (least === undefined || held < (queue.load.get(least) ?? 0)))
      least = consumer;
  }
  return least;
}

/** Leases messages; none to a consumer that is full or has left. */
function leaseFrom(queue: Queue, lane: Lane, consumer: Consumer): Lease[] {
  const held = queue.load.get(consumer) ?? Infinity;
  const room = consumer.oneOfAKey === true ? 1 - lane.sent : lane.entries.length - lane.sent;
  const count = Math.max(0, Math.min(room, consumer.maxOutstanding - held));
  const leases = lane.entries.slice(lane.sent, lane.sent + count).map((entry) => lease(queue, entry, consumer));
  if (count > 0) {
    lane.sent += count;
    lane.consumer = consumer;
    queue.load.set(consumer, held + count);
  }
  return leases;
}

function lease(queue: Queue, entry: Entry, consumer: Consumer): Lease {
  entry.ackId = randomUUID();
  entry.attempt += 1;
  queue.outstanding.set(entry.ackId, {
    entry,
    consumer,
    expiry: expireAfter(queue, entry.ackId, consumer.ackDeadlineMs),
  });
  return { ackId: entry.ackId, message: entry.message, attempt: entry.attempt };
}

function expireAfter(queue: Queue, ackId: string, ms: number): NodeJS.Timeout {
  return setTimeout(() => nack(queue, [ackId]), ms).unref();
}

function settle(queue: Queue, ackId: string): Entry | undefined {
  const held = queue.outstanding.get(ackId);
  if (held === undefined) return undefined;
  queue.outstanding.delete(ackId);
  clearTimeout(held.expiry);
  const count = queue.load.get(held.consumer);
  if (count !== undefined) queue.load.set(held.consumer, count - 1);
  return held.entry;
}

function ack(queue: Queue, ackIds: readonly string[]): void {
  for (const ackId of ackIds) {
    const entry = settle(queue, ackId);
    if (entry !== undefined) finish(queue, entry);
  }
  deliver(queue);
}

function finish(queue: Queue, entry: Entry): void {
  entry.acknowledged = true;
  queue.unacknowledged -= 1;
  const { lane } = entry;
  while (lane.entries[0]?.acknowledged) {
    lane.entries.shift();
    lane.sent -= 1;
  }
  if (lane.key !== undefined && lane.entries.length === 0) queue.lanes.delete(lane.key);
  wake(queue, lane);
}

function nack(queue: Queue, ackIds: readonly string[]): void {
  for (const ackId of ackIds) {
    const entry = settle(queue, ackId);
    if (entry === undefined) continue;
    if (isGivenAway(queue, entry)) {
      finish(queue, entry);
      continue;
    }
    takeBack(queue, entry);
    if (queue.options.backoff === undefined) wake(queue, entry.lane);
    else rest(queue, entry, queue.options.backoff);
  }
  deliver(queue);
}

function isGivenAway(queue: Queue, { message, attempt }: Entry): boolean {
  const { lastResort } = queue.options;
  return lastResort !== undefined && attempt >= lastResort.maxAttempts && lastResort.take(message, attempt);
}

/** Takes back a message and all that follow in its lane. */
function takeBack(queue: Queue, { lane, ackId }: Entry): void {
  const first = lane.entries.findIndex((entry) => entry.ackId === ackId);
  for (const later of lane.entries.slice(first, lane.sent)) {
    settle(queue, later.ackId);
    if (later.acknowledged) queue.unacknowledged += 1;
    later.acknowledged = false;
  }
  lane.sent = first;
}

/** Lets the whole lane wait, so that nothing of a key overtakes. */
function rest(queue: Queue, { lane, attempt }: Entry, { minMs, maxMs }: Backoff): void {
  lane.state = 'resting';
  const timer = setTimeout(
    () => {
      queue.resting.delete(timer);
      lane.state = 'idle';
      wake(queue, lane);
      deliver(queue);
    },
    Math.min(maxMs, minMs * 2 ** (attempt - 1)),
  ).unref();
  queue.resting.add(timer);
}
