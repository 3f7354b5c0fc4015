/**
 * A Pub/Sub in this process, for the unmodified client: point `PUBSUB_EMULATOR_HOST` at its `host`. The gRPC interface
 * is the real one, from the client's own protos. Messages are in memory; snapshots, schemas and exactly-once delivery
 * are missing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Server, ServerCredentials, status, type ServerDuplexStream, type ServiceDefinition } from '@grpc/grpc-js';
import { loadPubsubProtos } from './load-pubsub-protos.ts';
import { pushMessages, type PushConfig } from './push-messages.ts';
import {
  BATCH_MAX,
  queueMessages,
  type Backoff,
  type LastResort,
  type Lease,
  type Message,
  type MessageQueue,
} from './queue-messages.ts';
import { signPushTokens, type PushClaims } from './sign-push-tokens.ts';
import { toDeadLetter } from './to-dead-letter.ts';
import { Refusal, unary } from './unary.ts';

export type PubsubOptions = {
  /** The gRPC interface's port; any free one by default. */
  port?: number;
  /** The `iss` of push tokens; the stand-in's own URL by default. */
  issuer?: string;
  /** The wait between the attempts of a push, unless the subscription's retry policy sets it. */
  pushBackoff?: Backoff;
  /**
   * The wait of a whole subscription between pushes after nacks; Google's is from 100 ms to 60 s. Without it pushes go
   * at full speed, whatever the answers.
   */
  pushSlowdown?: Backoff;
  /** The least number of a topic's messages that `published` keeps. */
  remember?: number;
};

/** Faults, which may be set and removed at any time. */
export type PubsubFaults = {
  /** Refuses a publish request with this gRPC status. */
  publishError?: (() => status | undefined) | undefined;
  /** Takes the messages, then answers with this gRPC status: the publisher cannot know. */
  publishAnswerError?: (() => status | undefined) | undefined;
  publishDelayMs?: number | undefined;
  /**
   * Publish requests get no answer. When this is removed they continue, also those whose publisher has given up: what
   * is on its way cannot be taken back.
   */
  publishHangs?: boolean | undefined;
  /** The caller's permissions on everything. Without it permissions are not checked, as at an emulator. */
  permissions?: readonly string[] | undefined;
};

export type Pubsub = {
  /** The value of `PUBSUB_EMULATOR_HOST`. */
  readonly host: string;
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly faults: PubsubFaults;
  /** Signs a token for a push; requires `aud` and `email`. Another stand-in with the same issuer makes forged ones. */
  signPushToken(claims: PushClaims): Promise<string>;
  /** Messages published to a topic so far, oldest first, by its short or full name. */
  published(topic: string): readonly Message[];
  /** The number of a subscription's messages that are not acknowledged, by its short or full name. */
  unacknowledged(subscription: string): number;
  /** Ends streams and pushes. Safe to repeat. */
  stop(): Promise<void>;
};

type Subscription = {
  definition: SubscriptionRequest;
  matches: (message: Message) => boolean;
  queue: MessageQueue;
  ends: Set<() => void>;
};
type Topic = { subscriptions: Set<Subscription>; published: Message[] };

type Broker = {
  readonly pushBackoff: Backoff;
  readonly pushSlowdown: Backoff | undefined;
  readonly remember: number;
  readonly tokens: Awaited<ReturnType<typeof signPushTokens>>;
  readonly topics: Map<string, Topic>;
  readonly subscriptions: Map<string, Subscription>;
  readonly faults: PubsubFaults;
  lastMessageId: number;
  /** Shared by all hanging requests, so that they continue in their order. */
  hanging: Promise<void> | undefined;
};

/** The fields of requests that are used here. Absent ones have the protos' defaults. */
type SubscriptionRequest = {
  name: string;
  topic: string;
  pushConfig: PushConfig | null;
  ackDeadlineSeconds: number;
  enableMessageOrdering: boolean;
  filter: string;
  retryPolicy: { minimumBackoff: Duration | null; maximumBackoff: Duration | null } | null;
  deadLetterPolicy: { deadLetterTopic: string; maxDeliveryAttempts: number } | null;
};
type Duration = { seconds: string; nanos: number };
type Content = Pick<Message, 'data' | 'attributes' | 'orderingKey'>;
type PublishRequest = { topic: string; messages: Content[] };
type AckRequest = { subscription: string; ackIds: string[]; ackDeadlineSeconds: number };
type PullRequest = { subscription: string; maxMessages: number; returnImmediately: boolean };
type StreamingPullRequest = {
  subscription: string;
  streamAckDeadlineSeconds: number;
  maxOutstandingMessages: string;
  ackIds: string[];
  modifyDeadlineAckIds: string[];
  modifyDeadlineSeconds: number[];
};

const DEFAULT_ACK_DEADLINE_S = 10;
const PULL_WAITS_MS = 5000;
const HANG_POLL_MS = 10;
const DEAD_LETTER_AFTER = { fewest: 5, most: 100 };

/** The one call of another service that Pub/Sub answers as well. Its answer is a list of names, its field 1. */
const IAM: ServiceDefinition = {
  testIamPermissions: {
    path: '/google.iam.v1.IAMPolicy/TestIamPermissions',
    requestStream: false,
    responseStream: false,
    requestSerialize: (request: Buffer) => request,
    requestDeserialize: (request: Buffer) => request,
    responseSerialize: (names: readonly string[]) =>
      Buffer.concat(names.map((name) => Buffer.from(`\n${String.fromCharCode(name.length)}${name}`))),
    responseDeserialize: (answer: Buffer) => answer,
  },
};

/** Resolves when it serves. */
export async function startPubsub(options: PubsubOptions = {}): Promise<Pubsub> {
  const { pushBackoff = { minMs: 100, maxMs: 10_000 }, pushSlowdown, remember = 100_000 } = options;
  const tokens = await signPushTokens(options.issuer);
  const broker: Broker = {
    pushBackoff,
    pushSlowdown,
    remember,
    tokens,
    topics: new Map(),
    subscriptions: new Map(),
    faults: {},
    lastMessageId: 0,
    hanging: undefined,
  };
  const { topics, subscriptions, faults } = broker;
  const protos = loadPubsubProtos();
  const server = new Server({ 'grpc.max_receive_message_length': 20 * 2 ** 20 });
  server.addService(protos.publisher, publisherOf(broker));
  server.addService(protos.subscriber, subscriberOf(broker));
  server.addService(IAM, {
    testIamPermissions: unary(() => {
      if (faults.permissions === undefined) throw new Refusal(status.UNIMPLEMENTED, 'This stand-in asks for none');
      return faults.permissions;
    }),
  });
  const port = await new Promise<number>((bound, failed) => {
    server.bindAsync(`127.0.0.1:${options.port ?? 0}`, ServerCredentials.createInsecure(), (error, boundPort) =>
      error === null ? bound(boundPort) : failed(error),
    );
  }).catch(async (error: unknown) => {
    await tokens.stop();
    throw error;
  });

  return {
    host: `127.0.0.1:${port}`,
    jwksUrl: tokens.jwksUrl,
    issuer: tokens.issuer,
    faults,
    signPushToken: (claims) => tokens.sign(claims),
    published: (topic) => byName(topics, 'topics', topic)?.published ?? [],
    unacknowledged: (subscription) => byName(subscriptions, 'subscriptions', subscription)?.queue.unacknowledged() ?? 0,
    async stop() {
      delete faults.publishHangs;
      server.forceShutdown();
      for (const subscription of subscriptions.values()) close(subscription);
      await tokens.stop();
    },
  };
}

async function untilLifted(broker: Broker): Promise<void> {
  while (broker.faults.publishHangs === true) await sleep(HANG_POLL_MS);
  broker.hanging = undefined;
}

function publishTo(broker: Broker, topic: Topic, contents: readonly Content[]): Message[] {
  const publishTime = new Date();
  const messages = contents.map(({ data, attributes, orderingKey }) => {
    broker.lastMessageId += 1;
    return { messageId: String(broker.lastMessageId), publishTime, data, attributes, orderingKey };
  });
  topic.published.push(...messages);
  if (topic.published.length > 2 * broker.remember) topic.published.splice(0, topic.published.length - broker.remember);
  for (const { queue, matches } of topic.subscriptions) queue.add(messages.filter(matches));
  return messages;
}

/** Makes the dead lettering. As at Google, if the topic is gone meanwhile, messages are delivered again. */
function lastResortOf(broker: Broker, { name, deadLetterPolicy }: SubscriptionRequest): LastResort | undefined {
  if (deadLetterPolicy === null) return undefined;
  const { deadLetterTopic, maxDeliveryAttempts } = deadLetterPolicy;
  const { fewest, most } = DEAD_LETTER_AFTER;
  const maxAttempts = maxDeliveryAttempts || fewest;
  if (maxAttempts < fewest || maxAttempts > most) {
    throw new Refusal(status.INVALID_ARGUMENT, `max_delivery_attempts must be from ${fewest} to ${most}`);
  }
  find(broker.topics, deadLetterTopic);
  return {
    maxAttempts,
    take(message, attempts) {
      const topic = broker.topics.get(deadLetterTopic);
      if (topic !== undefined) publishTo(broker, topic, [toDeadLetter(message, name, attempts)]);
      return topic !== undefined;
    },
  };
}

function queueOf(broker: Broker, definition: SubscriptionRequest): MessageQueue {
  const backoff = policyOf(definition) ?? (isPush(definition.pushConfig) ? broker.pushBackoff : undefined);
  const lastResort = lastResortOf(broker, definition);
  return queueMessages({ ordered: definition.enableMessageOrdering, backoff, lastResort });
}

function publisherOf(broker: Broker) {
  return {
    createTopic: unary((request: { name: string }) => {
      if (broker.topics.has(request.name))
        throw new Refusal(status.ALREADY_EXISTS, `Topic already exists: ${request.name}`);
      broker.topics.set(request.name, { subscriptions: new Set(), published: [] });
      return { name: request.name };
    }),

    getTopic: unary(({ topic }: { topic: string }) => {
      find(broker.topics, topic);
      return { name: topic };
    }),

    listTopics: unary(({ project }: { project: string }) => {
      const names = [...broker.topics.keys()].filter((name) => name.startsWith(`${project}/topics/`));
      return { topics: names.map((name) => ({ name })) };
    }),

    listTopicSubscriptions: unary(({ topic }: { topic: string }) => {
      const names = [...find(broker.topics, topic).subscriptions].map(({ definition }) => definition.name);
      return { subscriptions: names };
    }),

    deleteTopic: unary(({ topic }: { topic: string }) => {
      find(broker.topics, topic);
      broker.topics.delete(topic);
      return {};
    }),

    publish: unary(async (request: PublishRequest) => {
      if (broker.faults.publishDelayMs !== undefined) await sleep(broker.faults.publishDelayMs);
      if (broker.faults.publishHangs === true) broker.hanging ??= untilLifted(broker);
      await broker.hanging;
      refuseIf(broker.faults.publishError?.());
      const topic = find(broker.topics, request.topic);
      for (const { data, attributes } of request.messages) {
        if (data.length === 0 && Object.keys(attributes).length === 0) {
          throw new Refusal(status.INVALID_ARGUMENT, 'A message needs data or an attribute');
        }
      }
      const messages = publishTo(broker, topic, request.messages);
      refuseIf(broker.faults.publishAnswerError?.());
      return { messageIds: messages.map(({ messageId }) => messageId) };
    }),
  };
}

function subscriberOf(broker: Broker) {
  return {
    createSubscription: unary((request: SubscriptionRequest) => {
      if (broker.subscriptions.has(request.name)) {
        throw new Refusal(status.ALREADY_EXISTS, `Subscription already exists: ${request.name}`);
      }
      const topic = find(broker.topics, request.topic);
      const definition = { ...request, ackDeadlineSeconds: request.ackDeadlineSeconds || DEFAULT_ACK_DEADLINE_S };
      const matches = readFilter(definition.filter);
      const subscription = { definition, matches, queue: queueOf(broker, definition), ends: new Set<() => void>() };
      broker.subscriptions.set(definition.name, subscription);
      topic.subscriptions.add(subscription);
      startPushing(broker, subscription);
      return definition;
    }),

    getSubscription: unary(
      (request: { subscription: string }) => find(broker.subscriptions, request.subscription).definition,
    ),

    deleteSubscription: unary((request: { subscription: string }) => {
      const subscription = find(broker.subscriptions, request.subscription);
      broker.subscriptions.delete(request.subscription);
      broker.topics.get(subscription.definition.topic)?.subscriptions.delete(subscription);
      close(subscription);
      return {};
    }),

    modifyPushConfig: unary((request: { subscription: string; pushConfig: PushConfig | null }) => {
      const subscription = find(broker.subscriptions, request.subscription);
      end(subscription);
      subscription.definition.pushConfig = request.pushConfig;
      startPushing(broker, subscription);
      return {};
    }),

    /** As of a subscription that retains acknowledged messages. Streams stay with the messages of before. */
    seek: unary(({ subscription, time }: { subscription: string; time: Duration }) => {
      const sought = find(broker.subscriptions, subscription);
      end(sought);
      sought.queue.close();
      sought.queue = queueOf(broker, sought.definition);
      const from = Number(time.seconds) * 1000 + time.nanos / 1e6;
      const { published } = find(broker.topics, sought.definition.topic);
      sought.queue.add(published.filter(sought.matches).filter(({ publishTime }) => publishTime.getTime() >= from));
      startPushing(broker, sought);
      return {};
    }),

    acknowledge: unary((request: AckRequest) => {
      find(broker.subscriptions, request.subscription).queue.ack(request.ackIds);
      return {};
    }),

    modifyAckDeadline: unary((request: AckRequest) => {
      modifyDeadline(
        find(broker.subscriptions, request.subscription).queue,
        request.ackIds,
        request.ackDeadlineSeconds,
      );
      return {};
    }),

    pull: unary(async ({ subscription, maxMessages, returnImmediately }: PullRequest) => {
      const { queue, definition } = find(broker.subscriptions, subscription);
      const received = Promise.withResolvers<Lease[]>();
      const ackDeadlineMs = definition.ackDeadlineSeconds * 1000;
      const detach = queue.attach({
        // One answer has one batch.
        maxOutstanding: Math.min(maxMessages, BATCH_MAX),
        ackDeadlineMs,
        receive: received.resolve,
      });
      const late = setTimeout(() => received.resolve([]), returnImmediately ? 0 : PULL_WAITS_MS);
      const leases = await received.promise;
      clearTimeout(late);
      detach();
      return { receivedMessages: leases.map((lease) => toReceived(lease, definition)) };
    }),

    streamingPull: (stream: ServerDuplexStream<StreamingPullRequest, unknown>) => pullStreaming(broker, stream),
  };
}

function pullStreaming(broker: Broker, stream: ServerDuplexStream<StreamingPullRequest, unknown>): void {
  let subscription: Subscription | undefined;
  let detach: (() => void) | undefined;
  const refuse = (): void => {
    detach?.();
    stream.emit('error', new Refusal(status.NOT_FOUND, 'Subscription does not exist'));
  };
  stream.on('data', (request: StreamingPullRequest) => {
    if (subscription === undefined) {
      const opened = broker.subscriptions.get(request.subscription);
      if (opened === undefined) {
        refuse();
        return;
      }
      subscription = opened;
      subscription.ends.add(refuse);
      detach = subscription.queue.attach({
        maxOutstanding: Number(request.maxOutstandingMessages) || Infinity,
        ackDeadlineMs: (request.streamAckDeadlineSeconds || opened.definition.ackDeadlineSeconds) * 1000,
        receive(leases) {
          stream.write({ receivedMessages: leases.map((lease) => toReceived(lease, opened.definition)) });
        },
      });
    }
    subscription.queue.ack(request.ackIds);
    for (const [index, ackId] of request.modifyDeadlineAckIds.entries()) {
      modifyDeadline(subscription.queue, [ackId], request.modifyDeadlineSeconds[index] ?? 0);
    }
  });
  const leave = (): void => {
    detach?.();
    subscription?.ends.delete(refuse);
  };
  stream.on('error', leave);
  stream.on('cancelled', leave);
  stream.on('end', () => {
    leave();
    stream.end();
  });
}

function startPushing(broker: Broker, { definition, queue, ends }: Subscription): void {
  const { name, pushConfig, deadLetterPolicy, ackDeadlineSeconds } = definition;
  if (!isPush(pushConfig)) return;
  const subscription = {
    name,
    ackDeadlineMs: ackDeadlineSeconds * 1000,
    tellsAttempt: deadLetterPolicy !== null,
    slowsDown: broker.pushSlowdown,
  };
  ends.add(pushMessages(queue, subscription, pushConfig, broker.tokens));
}

function refuseIf(code: status | undefined): void {
  if (code !== undefined) throw new Refusal(code, 'A fault of the stand-in');
}

/** Finds by a short name, of whichever project, or by the full one. */
function byName<Found>(all: Map<string, Found>, kind: string, name: string): Found | undefined {
  const full = [...all.keys()].find((known) => known === name || known.endsWith(`/${kind}/${name}`));
  return all.get(full ?? '');
}

function find<Found>(all: Map<string, Found>, name: string): Found {
  const found = all.get(name);
  if (found === undefined) throw new Refusal(status.NOT_FOUND, `Resource not found: ${name}`);
  return found;
}

function close(subscription: Subscription): void {
  end(subscription);
  subscription.queue.close();
}

function end({ ends }: Subscription): void {
  for (const stop of ends) stop();
  ends.clear();
}

/**
 * Reads a filter: one condition on an attribute, also negated. Messages that do not match are never delivered.
 * @see https://cloud.google.com/pubsub/docs/subscription-message-filter
 */
function readFilter(filter: string): (message: Message) => boolean {
  if (filter === '') return () => true;
  const condition = /^(NOT )?(?:attributes\.(\w+) = "([^"]*)"|hasPrefix\(attributes\.(\w+), "([^"]*)"\))$/.exec(filter);
  if (condition === null) throw new Refusal(status.INVALID_ARGUMENT, `This stand-in cannot read the filter ${filter}`);
  const [, not, equal, value, begins, prefix = ''] = condition;
  return ({ attributes }) => {
    const isMatch =
      equal === undefined ? attributes[begins ?? '']?.startsWith(prefix) === true : attributes[equal] === value;
    return isMatch !== (not !== undefined);
  };
}

/** True for a push subscription. A pull subscription may have an empty endpoint. */
function isPush(config: PushConfig | null): config is PushConfig {
  return config !== null && config.pushEndpoint !== '';
}

function policyOf({ retryPolicy }: SubscriptionRequest): Backoff | undefined {
  if (retryPolicy === null) return undefined;
  const toMs = (duration: Duration | null, otherwise: number): number =>
    duration === null ? otherwise : Number(duration.seconds) * 1000 + duration.nanos / 1e6;
  return { minMs: toMs(retryPolicy.minimumBackoff, 10_000), maxMs: toMs(retryPolicy.maximumBackoff, 600_000) };
}

/** Sets a deadline. Zero seconds are a client's nack. */
function modifyDeadline(queue: MessageQueue, ackIds: readonly string[], seconds: number): void {
  if (seconds === 0) queue.nack(ackIds);
  else queue.extend(ackIds, seconds * 1000);
}

function toReceived({ ackId, message, attempt }: Lease, { deadLetterPolicy }: SubscriptionRequest): object {
  const ms = message.publishTime.getTime();
  const publishTime = { seconds: Math.floor(ms / 1000), nanos: (ms % 1000) * 1e6 };
  return { ackId, message: { ...message, publishTime }, deliveryAttempt: deadLetterPolicy === null ? 0 : attempt };
}
