import { setTimeout as sleep } from 'node:timers/promises';
import type { Message, PubSub, Subscription } from '@google-cloud/pubsub';
import { status } from '@grpc/grpc-js';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { readBody } from '../../world/network/serve-http.ts';
import type { Pubsub } from '../../world/pubsub/start-pubsub.ts';
import { connectPubsub, serveEndpoint } from './connect-pubsub.ts';

let pubsub: Pubsub;
let client: PubSub;
let stop: () => Promise<void>;
let names = 0;

beforeAll(async () => {
  ({ pubsub, client, stop } = await connectPubsub({ pushBackoff: { minMs: 20, maxMs: 100 } }));
});
afterAll(() => stop());

async function newTopic() {
  names += 1;
  const name = `topic-${names}`;
  await client.createTopic(name);
  return client.topic(name, {
    messageOrdering: true,
    batching: { maxMilliseconds: 1 },
    gaxOpts: { timeout: 3000, retry: null },
  });
}

/** Passes every message to `take`. Closed after the test. */
function listen(subscription: Subscription, take: (message: Message) => void): void {
  subscription.on('message', take);
  onTestFinished(() => subscription.close());
}

test("Google's client receives messages in the sequence of their publishing, also after a nack", async () => {
  const topic = await newTopic();
  const [subscription] = await topic.createSubscription('in-order', { enableMessageOrdering: true });
  const received: Record<string, number[]> = { a: [], b: [] };
  const refused: number[] = [];
  listen(subscription, (message) => {
    const number = Number(message.data.toString());
    if (number === 25 && refused.length < 2) {
      refused.push(number);
      message.nack();
      return;
    }
    received[message.orderingKey ?? '']?.push(number);
    message.ack();
  });

  const numbers = Array.from({ length: 50 }, (_, index) => index);
  await Promise.all(
    numbers.flatMap((number) =>
      ['a', 'b'].map((orderingKey) => topic.publishMessage({ data: Buffer.from(String(number)), orderingKey })),
    ),
  );
  // Messages behind a refused one come again: by their last delivery, all are in order.
  const lastTimes = (all: number[] = []) => [...new Set(all.toReversed())].toReversed();
  await vi.waitFor(() => {
    expect(lastTimes(received['a'])).toEqual(numbers);
    expect(lastTimes(received['b'])).toEqual(numbers);
  }, 5000);
  expect(refused).toEqual([25, 25]);
  expect(pubsub.published(topic.name)).toHaveLength(100);
});

test('a message whose lease has expired is delivered again', async () => {
  const topic = await newTopic();
  const [subscription] = await topic.createSubscription('leased', { ackDeadlineSeconds: 10 });
  await topic.publishMessage({ data: Buffer.from('soup'), attributes: { table: '7' } });
  const pull = async () => {
    const api = new (await import('@google-cloud/pubsub')).v1.SubscriberClient({
      servicePath: '127.0.0.1',
      port: Number(pubsub.host.split(':')[1]),
      sslCreds: (await import('@grpc/grpc-js')).credentials.createInsecure(),
    });
    onTestFinished(() => api.close());
    return { api, answer: (await api.pull({ subscription: subscription.name, maxMessages: 5 }))[0].receivedMessages };
  };
  const first = await pull();
  expect(first.answer).toMatchObject([{ message: { data: Buffer.from('soup'), attributes: { table: '7' } } }]);
  const ackId = first.answer?.[0]?.ackId ?? '';
  await first.api.modifyAckDeadline({ subscription: subscription.name, ackIds: [ackId], ackDeadlineSeconds: 1 });
  const second = await pull();
  expect(second.answer).toMatchObject([{ message: { messageId: first.answer?.[0]?.message?.messageId } }]);
});

test('a push has the envelope and a valid token, and is repeated until it is acknowledged', async () => {
  const pushes: { body: unknown; authorization: string | undefined }[] = [];
  const answers = [500, 302, 401, 204];
  const endpoint = await serveEndpoint(async (request, response) => {
    const body: unknown = JSON.parse((await readBody(request)).toString());
    pushes.push({ body, authorization: request.headers.authorization });
    response.writeHead(answers[pushes.length - 1] ?? 204).end();
  });
  const topic = await newTopic();
  await topic.createSubscription('pushed', {
    pushConfig: {
      pushEndpoint: `${endpoint.url}/push`,
      oidcToken: { serviceAccountEmail: 'push@test.iam.gserviceaccount.com', audience: 'https://service/push' },
    },
  });
  const messageId = await topic.publishMessage({ json: { id: 'order-1' }, attributes: { type: 'orderPlaced' } });

  await vi.waitFor(() => expect(pushes).toHaveLength(4), 5000);
  await sleep(150);
  expect(pushes).toHaveLength(4);
  const [{ body, authorization = '' }] = pushes as [(typeof pushes)[number]];
  expect(body).toEqual({
    message: {
      data: Buffer.from('{"id":"order-1"}').toString('base64'),
      attributes: { type: 'orderPlaced' },
      messageId,
      message_id: messageId,
      publishTime: expect.stringMatching(/Z$/),
      publish_time: expect.stringMatching(/Z$/),
    },
    subscription: 'projects/test/subscriptions/pushed',
  });
  const { payload } = await jwtVerify(
    authorization.replace('Bearer ', ''),
    createRemoteJWKSet(new URL(pubsub.jwksUrl)),
    { issuer: pubsub.issuer, audience: 'https://service/push', algorithms: ['RS256'] },
  );
  expect(payload).toMatchObject({ email: 'push@test.iam.gserviceaccount.com', email_verified: true });
});

test('a 1xx answer does not acknowledge a push', async () => {
  const answers = [500, 204];
  let pushes = 0;
  const endpoint = await serveEndpoint((_, response) => {
    response.writeProcessing();
    response.writeHead(answers[pushes] ?? 204).end();
    pushes += 1;
  });
  const topic = await newTopic();
  await topic.createSubscription('processing', { pushEndpoint: endpoint.url });
  await topic.publishMessage({ data: Buffer.from('x') });
  await vi.waitFor(() => expect(pushes).toBe(2), 5000);
  await sleep(150);
  expect(pushes).toBe(2);
});

test('a message whose push failed five times goes to the dead-letter topic with its origin', async () => {
  const attempts: unknown[] = [];
  const endpoint = await serveEndpoint(async (request, response) => {
    const body = JSON.parse((await readBody(request)).toString()) as { deliveryAttempt: unknown };
    attempts.push(body.deliveryAttempt);
    response.writeHead(503).end();
  });
  const [topic, dead] = [await newTopic(), await newTopic()];
  await topic.createSubscription('mortal', {
    pushEndpoint: endpoint.url,
    deadLetterPolicy: { deadLetterTopic: dead.name, maxDeliveryAttempts: 5 },
  });
  await topic.publishMessage({ data: Buffer.from('poison'), attributes: { type: 'orderPlaced' }, orderingKey: 'a' });
  await vi.waitFor(() => expect(pubsub.published(dead.name)).toHaveLength(1), 5000);
  await sleep(250);
  expect(attempts).toEqual([1, 2, 3, 4, 5]);
  const [original] = pubsub.published(topic.name);
  expect(pubsub.published(dead.name)).toEqual([
    {
      messageId: expect.not.stringMatching(`^${original?.messageId}$`),
      publishTime: expect.any(Date),
      data: Buffer.from('poison'),
      orderingKey: 'a',
      attributes: {
        type: 'orderPlaced',
        CloudPubSubDeadLetterSourceSubscription: 'mortal',
        CloudPubSubDeadLetterSourceSubscriptionProject: 'test',
        CloudPubSubDeadLetterSourceDeliveryCount: '5',
        CloudPubSubDeadLetterSourceTopicPublishTime: original?.publishTime.toISOString().replace('Z', '+00:00'),
      },
    },
  ]);
});

test('a dead letter does not block later messages', async () => {
  const pushed: string[] = [];
  const endpoint = await serveEndpoint(async (request, response) => {
    const { message } = JSON.parse((await readBody(request)).toString()) as { message: { data: string } };
    const text = Buffer.from(message.data, 'base64').toString();
    pushed.push(text);
    response.writeHead(text === 'poison' ? 503 : 204).end();
  });
  const [topic, dead] = [await newTopic(), await newTopic()];
  await topic.createSubscription('makes-way', {
    pushEndpoint: endpoint.url,
    enableMessageOrdering: true,
    deadLetterPolicy: { deadLetterTopic: dead.name },
  });
  for (const text of ['poison', 'soup']) {
    await topic.publishMessage({ data: Buffer.from(text), orderingKey: 'a' });
  }
  await vi.waitFor(() => expect(pushed).toHaveLength(6), 5000);
  expect(pushed).toEqual([...Array.from({ length: 5 }, () => 'poison'), 'soup']);
  expect(pubsub.published(dead.name)).toHaveLength(1);
});

test('a pulled message has the number of its attempt, which a nack raises', async () => {
  const [topic, dead] = [await newTopic(), await newTopic()];
  const [subscription] = await topic.createSubscription('told', { deadLetterPolicy: { deadLetterTopic: dead.name } });
  const attempts: number[] = [];
  listen(subscription, (message) => {
    attempts.push(message.deliveryAttempt);
    message.nack();
  });
  await topic.publishMessage({ data: Buffer.from('poison') });
  await vi.waitFor(() => expect(pubsub.published(dead.name)).toHaveLength(1), 5000);
  expect(attempts).toEqual([1, 2, 3, 4, 5]);
});

test('an acknowledged message counts as unacknowledged again if an earlier message is repeated', async () => {
  const topic = await newTopic();
  const [subscription] = await topic.createSubscription('counted', { enableMessageOrdering: true });
  const held: Message[] = [];
  listen(subscription, (message) => void held.push(message));
  for (const text of ['soup', 'fish']) await topic.publishMessage({ data: Buffer.from(text), orderingKey: 'a' });
  await vi.waitFor(() => expect(held).toHaveLength(2));
  expect(pubsub.unacknowledged('counted')).toBe(2);
  held[1]?.ack();
  await vi.waitFor(() => expect(pubsub.unacknowledged('counted')).toBe(1));
  held[0]?.nack();
  await vi.waitFor(() => expect(held).toHaveLength(4));
  expect(pubsub.unacknowledged(subscription.name)).toBe(2);
  for (const message of held) message.ack();
  await vi.waitFor(() => expect(pubsub.unacknowledged('counted')).toBe(0));
});

test('a message is delivered beyond five attempts if the dead-letter topic is missing', async () => {
  let pushes = 0;
  const endpoint = await serveEndpoint((_, response) => {
    pushes += 1;
    response.writeHead(pushes < 8 ? 503 : 204).end();
  });
  const [topic, dead] = [await newTopic(), await newTopic()];
  const deadLetterPolicy = { deadLetterTopic: dead.name, maxDeliveryAttempts: 5 };
  await topic.createSubscription('outlives', { pushEndpoint: endpoint.url, deadLetterPolicy });
  await dead.delete();
  await topic.publishMessage({ data: Buffer.from('x') });
  await vi.waitFor(() => expect(pushes).toBe(8), 5000);
});

test('a dead-letter policy needs an existing topic, and five to a hundred attempts', async () => {
  const topic = await newTopic();
  const create = (deadLetterTopic: string, maxDeliveryAttempts: number) =>
    topic.createSubscription('refused', { deadLetterPolicy: { deadLetterTopic, maxDeliveryAttempts } });
  await expect(create('projects/test/topics/nowhere', 5)).rejects.toMatchObject({ code: status.NOT_FOUND });
  for (const attempts of [4, 101]) {
    await expect(create(topic.name, attempts)).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
  }
});
