/**
 * What one Pub/Sub subscription does with its messages, whoever takes them: a lease per delivery, redelivery when it
 * is refused or runs out, and order within a key.
 */
import { randomUUID } from 'node:crypto';

export type Message = {
  messageId: string;
  publishTime: Date;
  data: Buffer;
  attributes: Record<string, string>;
  /** Empty when the message has none. */
  orderingKey: string;
};

/** One delivery of one message. `attempt` counts from 1. */
export type Lease = { ackId: string; message: Message; attempt: number };

/** A stream, a single pull, or the push deliverer. */
export type Consumer = {
  maxOutstanding: number;
  ackDeadlineMs: number;
  receive(leases: Lease[]): void;
};

/** How long a refused message rests: doubled from attempt to attempt, from `minMs` to `maxMs`. */
export type Backoff = { minMs: number; maxMs: number };

export type MessageQueue = {
  add(messages: readonly Message[]): void;
  /** Returns what detaches it again; its leases run on. */
  attach(consumer: Consumer): () => void;
  /** An unknown or expired `ackId` is ignored, as Pub/Sub does. */
  ack(ackIds: readonly string[]): void;
  nack(ackIds: readonly string[]): void;
  extend(ackIds: readonly string[], ms: number): void;
  close(): void;
};

type Entry = { message: Message; attempt: number };
type Outstanding = { entry: Entry; consumer: Consumer; expiry: NodeJS.Timeout };

const BATCH_MAX = 200;

export function queueMessages(options: { ordered: boolean; backoff?: Backoff | undefined }): MessageQueue {
  const ready: Entry[] = [];
  /** Present for each key with a message that is ready, leased or resting; holds those behind it. */
  const behind = new Map<string, Entry[]>();
  const outstanding = new Map<string, Outstanding>();
  const load = new Map<Consumer, number>();
  const resting = new Set<NodeJS.Timeout>();

  function add(messages: readonly Message[]): void {
    for (const message of messages) {
      const entry = { message, attempt: 0 };
      const waiting = behind.get(message.orderingKey);
      if (waiting === undefined) ready.push(entry);
      else waiting.push(entry);
      if (waiting === undefined && options.ordered && message.orderingKey !== '') behind.set(message.orderingKey, []);
    }
    deliver();
  }

  function deliver(): void {
    while (ready.length > 0) {
      // The least busy consumer first, so that several share the work.
      const [next] = [...load].filter(([one, held]) => held < one.maxOutstanding).toSorted(([, a], [, b]) => a - b);
      if (next === undefined) return;
      const [consumer, held] = next;
      const batch = ready.splice(0, Math.min(BATCH_MAX, consumer.maxOutstanding - held));
      load.set(consumer, held + batch.length);
      consumer.receive(batch.map((entry) => lease(entry, consumer)));
    }
  }

  function lease(entry: Entry, consumer: Consumer): Lease {
    const ackId = randomUUID();
    entry.attempt += 1;
    outstanding.set(ackId, { entry, consumer, expiry: expireAfter(ackId, consumer.ackDeadlineMs) });
    return { ackId, message: entry.message, attempt: entry.attempt };
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
      const key = entry?.message.orderingKey ?? '';
      const next = behind.get(key)?.shift();
      if (next === undefined) behind.delete(key);
      else ready.push(next);
    }
    deliver();
  }

  function nack(ackIds: readonly string[]): void {
    for (const ackId of ackIds) {
      const entry = settle(ackId);
      if (entry === undefined) continue;
      if (options.backoff === undefined) ready.push(entry);
      else rest(entry, options.backoff);
    }
    deliver();
  }

  /** Its key stays taken meanwhile: nothing of the key overtakes it. */
  function rest(entry: Entry, { minMs, maxMs }: Backoff): void {
    const timer = setTimeout(
      () => {
        resting.delete(timer);
        ready.push(entry);
        deliver();
      },
      Math.min(maxMs, minMs * 2 ** (entry.attempt - 1)),
    ).unref();
    resting.add(timer);
  }

  return {
    add,
    ack,
    nack,
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
