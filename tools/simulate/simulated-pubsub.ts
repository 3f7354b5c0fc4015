/** Takes the place of the package `@google-cloud/pubsub`: clients of a broker on the simulated network. */
import { EventEmitter } from 'node:events';
import { queueMessages, type Lease, type Message, type MessageQueue } from '../../world/pubsub/queue-messages.ts';
import { theNetwork, type Answer } from './network.ts';
import { asParty, currentParty, newParty, theSchedule, type Party } from './schedule.ts';

export const PUBSUB = 'http://pubsub.test';
const PUSH_URL = 'https://expediter.test/pubsub/push';
const ACK_DEADLINE_MS = 10_000;
const DRAIN_DEADLINE_MS = 30_000;
const BACKOFF = { minMs: 100, maxMs: 3_000 };
const DELIVERY_ATTEMPTS = 100;
const PUSHES = 20;

type Sent = { data: string; attributes: Record<string, string>; orderingKey: string };
export type Broker = {
  published(topic: string): readonly Message[];
  unacknowledged(): number;
  /** The signals that were given up. */
  dead(): readonly Message[];
  publish(topic: string, data: Buffer): Promise<unknown>;
  /** Ends the deliveries to a process that is dead. Its messages are delivered again after their deadline. */
  leave(party: Party): void;
};
type Topic = { published: Message[]; queue: MessageQueue | undefined };

let broker: (Broker & { party: Party; drain: MessageQueue; join(party: Party, detach: () => void): void }) | undefined;

/** Starts the broker of a run, in its own party. It pushes signals, and keeps the spill until it is read. */
export function startBroker(onPublished: (topic: string, message: Message) => void): Broker {
  const party = newParty('pubsub');
  const given: Message[] = [];
  let lastId = 0;
  const giveUp = {
    maxAttempts: DELIVERY_ATTEMPTS,
    take(message: Message): boolean {
      given.push(message);
      return true;
    },
  };
  return asParty(party, () => {
    const signals = queueMessages({ ordered: false, backoff: BACKOFF, lastResort: giveUp });
    const drain = queueMessages({ ordered: false, backoff: BACKOFF });
    const topics = new Map<string, Topic>([
      ['orders', { published: [], queue: signals }],
      ['spill', { published: [], queue: drain }],
    ]);
    const joined = new Map<Party, Set<() => void>>();
    const topicOf = (name: string): Topic => {
      const known = topics.get(name) ?? { published: [], queue: undefined };
      topics.set(name, known);
      return known;
    };
    const take = (name: string, sent: readonly Sent[]): string[] => {
      const topic = topicOf(name);
      const messages = sent.map((each): Message => {
        lastId += 1;
        const data = Buffer.from(each.data, 'base64');
        return { ...each, data, messageId: String(lastId), publishTime: new Date() };
      });
      for (const message of messages) {
        topic.published.push(message);
        onPublished(name, message);
      }
      topic.queue?.add(messages);
      return messages.map(({ messageId }) => messageId);
    };
    theNetwork().serve(PUBSUB, () => ({
      party,
      async answer({ url, body }): Promise<Answer> {
        const ids = take(url.pathname.slice(1), JSON.parse(body.toString()) as Sent[]);
        return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(ids)) };
      },
    }));
    const push = async ({ ackId, message }: Lease): Promise<void> => {
      const { messageId, attributes } = message;
      const body = JSON.stringify({
        message: { data: message.data.toString('base64'), messageId, attributes },
        subscription: 'projects/simulated/subscriptions/orders-push',
      });
      const signal = AbortSignal.timeout(ACK_DEADLINE_MS);
      const headers = { 'content-type': 'application/json' };
      const answer = await theNetwork()
        .fetch(PUSH_URL, { method: 'POST', headers, body, signal })
        .catch(() => undefined);
      if (answer?.ok === true) signals.ack([ackId]);
      else signals.nack([ackId]);
    };
    signals.attach({
      maxOutstanding: PUSHES,
      ackDeadlineMs: 2 * ACK_DEADLINE_MS,
      receive: (leases) => void Promise.all(leases.map(push)),
    });
    broker = {
      party,
      published: (name) => topicOf(name).published,
      unacknowledged: () => signals.unacknowledged() + drain.unacknowledged(),
      dead: () => given,
      publish: (name, data) => publishTo(name, [{ data, attributes: {}, orderingKey: '' }], 5_000),
      leave(leaving) {
        for (const detach of joined.get(leaving) ?? []) detach();
        joined.delete(leaving);
      },
      drain,
      join(joining, detach) {
        joined.set(joining, (joined.get(joining) ?? new Set()).add(detach));
      },
    };
    return broker;
  });
}

type Content = { data: Buffer; attributes?: Record<string, string>; orderingKey?: string };

async function publishTo(topic: string, messages: readonly Content[], timeoutMs: number): Promise<string[]> {
  const sent = messages.map(({ data, attributes = {}, orderingKey = '' }): Sent => ({
    data: data.toString('base64'),
    attributes,
    orderingKey,
  }));
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await theNetwork().fetch(`${PUBSUB}/${topic}`, {
      method: 'POST',
      body: JSON.stringify(sent),
      signal,
    });
    if (!answer.ok) throw new Error(`Pub/Sub answered ${answer.status}`);
    return (await answer.json()) as string[];
  } catch (error) {
    const isLate = (error as Error).name === 'TimeoutError';
    throw Object.assign(new Error(isLate ? '4 DEADLINE_EXCEEDED' : '14 UNAVAILABLE', { cause: error }), {
      code: isLate ? 4 : 14,
    });
  }
}

const shortName = (name: string): string => name.split('/').at(-1) ?? name;

/** The low-level client. */
function PublisherClient(): object {
  return {
    async initialize() {},
    async publish(request: { topic: string; messages: Content[] }, { timeout }: { timeout: number }) {
      return [{ messageIds: await publishTo(shortName(request.topic), request.messages, timeout) }];
    },
    async close() {},
  };
}
export const v1 = { PublisherClient };
export const Duration = { from: (about: object): object => about };

/** The library's client. */
export function PubSub(): object {
  return {
    topic: (name: string) => ({ name: `projects/simulated/topics/${shortName(name)}` }),
    subscription: () => subscribe(),
    getClientConfig: async () => ({}),
    async close() {},
  };
}

/** A subscription to the spill. Messages are delivered to the party that subscribes. */
function subscribe(): object {
  const party = currentParty();
  if (party === undefined || broker === undefined) throw new Error('there is no broker');
  const { drain, join, party: owner } = broker;
  const emitter = new EventEmitter();
  const schedule = theSchedule();
  const way = (): number => 1 + 20 * schedule.draw('spill way');
  const settle = (how: 'ack' | 'nack', ackId: string): void =>
    void schedule.after(way(), owner, () => {
      schedule.note(`pubsub gets ${how} of ${party.name}`);
      drain[how]([ackId]);
    });
  const receive = (leases: Lease[]): void => {
    for (const { ackId, message } of leases) {
      schedule.note(`pubsub sends spilled ${message.messageId} to ${party.name}`);
      schedule.after(way(), party, () =>
        emitter.emit('message', {
          data: message.data,
          publishTime: message.publishTime,
          ack: () => settle('ack', ackId),
          nack: () => settle('nack', ackId),
        }),
      );
    }
  };
  // The deadlines of leases are the broker's.
  const detach = asParty(owner, () =>
    drain.attach({ maxOutstanding: 1_000, ackDeadlineMs: DRAIN_DEADLINE_MS, receive }),
  );
  join(party, detach);
  return Object.assign(emitter, {
    async close() {
      detach();
    },
  });
}
