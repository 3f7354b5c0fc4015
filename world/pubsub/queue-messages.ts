/**
 * The messages of one Pub/Sub subscription, whoever consumes them: a lease per delivery, redelivery when it is refused
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

export function queueMessages(options: {
  ordered: boolean;
  backoff?: Backoff | undefined;
  lastResort?: LastResort | undefined;
}): MessageQueue {
  const lanes = new Map<string, Lane>();
  let ready: Lane[] = [];
  const outstanding = new Map<string, Outstanding>();
  const load = new Map<Consumer, number>();
  const resting = new Set<NodeJS.Timeout>();
  let unacknowledged = 0;

  function add(messages: readonly Message[]): void {
    unacknowledged += messages.length;
    for (const message of messages) {
      const lane = queueFor(options.ordered && message.orderingKey !== '' ? message.orderingKey : undefined);
      lane.entries.push({ message, lane, attempt: 0, acknowledged: false, ackId: '' });
      wake(lane);
    }
    deliver();
  }

  function queueFor(key: string | undefined): Lane {
    const known = key === undefined ? undefined : lanes.get(key);
    if (known !== undefined) return known;
    const lane: Lane = { key, entries: [], sent: 0, consumer: undefined, state: 'idle' };
    if (key !== undefined) lanes.set(key, lane);
    return lane;
  }

  function wake(lane: Lane): void {
    if (lane.state !== 'idle' || lane.sent === lane.entries.length) return;
    lane.state = 'ready';
    ready.push(lane);
  }

  function deliver(): void {
    const batches = new Map<Consumer, Lease[]>();
    const blocked: Lane[] = [];
    while (ready.length > 0 && leastBusy() !== undefined) {
      const lane = ready.shift();
      if (lane?.state !== 'ready') continue;
      const consumer = lane.sent > 0 ? lane.consumer : leastBusy();
      if (consumer === undefined) continue;
      const batch = batches.get(consumer) ?? [];
      batches.set(consumer, batch);
      batch.push(...leaseFrom(lane, consumer));
      if (lane.sent === lane.entries.length || consumer.oneOfAKey === true) lane.state = 'idle';
      else blocked.push(lane);
    }
    if (blocked.length > 0) ready = [...blocked, ...ready];
    for (const [consumer, batch] of batches) {
      while (batch.length > 0) consumer.receive(batch.splice(0, BATCH_MAX));
    }
  }

  function leastBusy(): Consumer | undefined {
    let least: Consumer | undefined;
    for (const [consumer, held] of load) {
      if (held < consumer.maxOutstanding && (least === undefined || held < (load.get(least) ?? 0))) least = consumer;
    }
    return least;
  }

  /** Leases messages; none to a consumer that is full or has left. */
  function leaseFrom(lane: Lane, consumer: Consumer): Lease[] {
    const held = load.get(consumer) ?? Infinity;
    const room = consumer.oneOfAKey === true ? 1 - lane.sent : lane.entries.length - lane.sent;
    const count = Math.max(0, Math.min(room, consumer.maxOutstanding - held));
    const leases = lane.entries.slice(lane.sent, lane.sent + count).map((entry) => lease(entry, consumer));
    if (count > 0) {
      lane.sent += count;
      lane.consumer = consumer;
      load.set(consumer, held + count);
    }
    return leases;
  }

  function lease(entry: Entry, consumer: Consumer): Lease {
    entry.ackId = randomUUID();
    entry.attempt += 1;
    outstanding.set(entry.ackId, { entry, consumer, expiry: expireAfter(entry.ackId, consumer.ackDeadlineMs) });
    return { ackId: entry.ackId, message: entry.message, attempt: entry.attempt };
  }

  function expireAfter(ackId: string, ms: number): NodeJS.Timeout {
    return setTimeout(() => nack([ackId]), ms).unref();
  }

  function settle(ackId: string): Entry | undefined {
    const held = outstanding.get(ackId);
    if (held === undefined) return undefined;
    outstanding.delete(ackId);
    clearTimeout(held.expiry);
    const count = load.get(held.consumer);
    if (count !== undefined) load.set(held.consumer, count - 1);
    return held.entry;
  }

  function ack(ackIds: readonly string[]): void {
    for (const ackId of ackIds) {
      const entry = settle(ackId);
      if (entry !== undefined) finish(entry);
    }
    deliver();
  }

  function finish(entry: Entry): void {
    entry.acknowledged = true;
    unacknowledged -= 1;
    const { lane } = entry;
    while (lane.entries[0]?.acknowledged) {
      lane.entries.shift();
      lane.sent -= 1;
    }
    if (lane.key !== undefined && lane.entries.length === 0) lanes.delete(lane.key);
    wake(lane);
  }

  function nack(ackIds: readonly string[]): void {
    for (const ackId of ackIds) {
      const entry = settle(ackId);
      if (entry === undefined) continue;
      if (isGivenAway(entry)) {
        finish(entry);
        continue;
      }
      takeBack(entry);
      if (options.backoff === undefined) wake(entry.lane);
      else rest(entry, options.backoff);
    }
    deliver();
  }

  function isGivenAway({ message, attempt }: Entry): boolean {
    const { lastResort } = options;
    return lastResort !== undefined && attempt >= lastResort.maxAttempts && lastResort.take(message, attempt);
  }

  /** Takes back a message and all that follow in its lane. */
  function takeBack({ lane, ackId }: Entry): void {
    const first = lane.entries.findIndex((entry) => entry.ackId === ackId);
    for (const later of lane.entries.slice(first, lane.sent)) {
      settle(later.ackId);
      if (later.acknowledged) unacknowledged += 1;
      later.acknowledged = false;
    }
    lane.sent = first;
  }

  /** Lets the whole lane wait, so that nothing of a key overtakes. */
  function rest({ lane, attempt }: Entry, { minMs, maxMs }: Backoff): void {
    lane.state = 'resting';
    const timer = setTimeout(
      () => {
        resting.delete(timer);
        lane.state = 'idle';
        wake(lane);
        deliver();
      },
      Math.min(maxMs, minMs * 2 ** (attempt - 1)),
    ).unref();
    resting.add(timer);
  }

  return {
    add,
    ack,
    nack,
    wake: deliver,
    unacknowledged: () => unacknowledged,
    attach(consumer) {
      load.set(consumer, 0);
      deliver();
      return () => void load.delete(consumer);
    },
    extend(ackIds, ms) {
      for (const ackId of ackIds) {
        const held = outstanding.get(ackId);
        if (held === undefined) continue;
        clearTimeout(held.expiry);
        held.expiry = expireAfter(ackId, ms);
      }
    },
    close() {
      load.clear();
      for (const timer of resting) clearTimeout(timer);
      for (const { expiry } of outstanding.values()) clearTimeout(expiry);
    },
  };
}
