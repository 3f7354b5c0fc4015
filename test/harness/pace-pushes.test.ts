import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { pacePushes } from '../../world/pubsub/pace-pushes.ts';
import { readBody } from '../../world/network/serve-http.ts';
import { until } from '../../world/processes/until.ts';
import { connectPubsub, serveEndpoint } from './connect-pubsub.ts';

const SLOWDOWN = { minMs: 50, maxMs: 400 };
/** Milliseconds that a timer may be early. */
const TOLERANCE_MS = 2;

const pushBackoff = { minMs: 1, maxMs: 1 };
let client: PubSub;
let stop: () => Promise<void>;
let names = 0;

beforeAll(async () => {
  ({ client, stop } = await connectPubsub({ pushBackoff, pushSlowdown: SLOWDOWN }));
});
afterAll(() => stop());

type Push = { text: string; at: number };

/** Pushes to an endpoint whose answer is a status, or comes later. */
async function subscribe(answer: (text: string, response: ServerResponse) => number | undefined) {
  const pushes: Push[] = [];
  const endpoint = await serveEndpoint(async (request, response) => {
    const at = performance.now();
    const { message } = JSON.parse((await readBody(request)).toString()) as { message: { data: string } };
    const text = Buffer.from(message.data, 'base64').toString();
    pushes.push({ text, at });
    const status = answer(text, response);
    if (status !== undefined) response.writeHead(status).end();
  });
  names += 1;
  const [topic] = await client.createTopic(`paced-${names}`);
  const [subscription] = await topic.createSubscription(`paced-${names}`, { pushEndpoint: endpoint.url });
  onTestFinished(async () => void (await subscription.delete()));
  const publish = (text: string): Promise<string> => topic.publishMessage({ data: Buffer.from(text) });
  return { pushes, publish };
}

const gaps = (pushes: readonly Push[]): number[] =>
  pushes.slice(1).map(({ at }, index) => at - (pushes[index]?.at ?? 0));

describe('a push subscription', () => {
  it('whose message is refused waits longer after each refusal, also with its other messages', async () => {
    const { pushes, publish } = await subscribe((text) => (text === 'poison' ? 500 : 204));
    await publish('poison');
    await until(() => pushes.length >= 6);
    for (const [index, gap] of gaps(pushes).entries()) {
      expect(gap).toBeGreaterThanOrEqual(Math.min(SLOWDOWN.maxMs, SLOWDOWN.minMs * 2 ** index) - TOLERANCE_MS);
    }
    const published = performance.now();
    await publish('soup');
    await until(() => pushes.some(({ text }) => text === 'soup'));
    expect(performance.now() - published).toBeGreaterThan(SLOWDOWN.maxMs / 4);
  });

  it('begins with few requests at a time, and doubles them each round', async () => {
    let held: ServerResponse[] = [];
    const { pushes, publish } = await subscribe((_, response) => {
      held.push(response);
      return undefined;
    });
    await Promise.all(Array.from({ length: 25 }, (_, nth) => publish(String(nth))));
    const rounds: number[] = [];
    while (pushes.length < 21) {
      await sleep(100);
      rounds.push(held.length);
      const round = held;
      held = [];
      for (const response of round) response.writeHead(204).end();
    }
    expect(rounds).toEqual([3, 6, 12]);
    await until(() => held.length === 4);
    for (const response of held) response.writeHead(204).end();
  });

  it('does not slow down after refusals unless that is configured', async () => {
    const fast = await connectPubsub({ pushBackoff });
    onTestFinished(() => fast.stop());
    let pushes = 0;
    const endpoint = await serveEndpoint((_, response) => {
      pushes += 1;
      response.writeHead(500).end();
    });
    const [topic] = await fast.client.createTopic('fast');
    await topic.createSubscription('fast', { pushEndpoint: endpoint.url });
    await topic.publishMessage({ data: Buffer.from('poison') });
    await until(() => pushes >= 20, 1000);
  });
});

describe('the number of simultaneous requests of a push subscription', () => {
  it('grows to its limit after quick answers, and halves after a refusal', () => {
    const pace = pacePushes({ minMs: 1, maxMs: 1 }, 5, () => {});
    expect(pace.window()).toBe(3);
    pace.acknowledged(1000);
    expect(pace.window()).toBe(3);
    for (let nth = 0; nth < 5; nth += 1) pace.acknowledged(999);
    expect(pace.window()).toBe(5);
    pace.refused();
    expect(pace.window()).toBe(0);
    pace.acknowledged(1000);
    expect(pace.window()).toBe(2);
    pace.stop();
  });

  it('is 0 after refusals for no longer than the limit, and then grows again', async () => {
    const over = Promise.withResolvers<void>();
    const pace = pacePushes({ minMs: 100, maxMs: 110 }, 100, over.resolve);
    for (let nth = 0; nth < 10; nth += 1) pace.refused();
    const began = performance.now();
    await over.promise;
    expect(performance.now() - began).toBeLessThan(190);
    for (let nth = 0; nth < 4; nth += 1) pace.acknowledged(1);
    expect(pace.window()).toBeGreaterThan(1);
    pace.stop();
  });

  it('is 1 at most between the waits after refusals', async () => {
    const over = Promise.withResolvers<void>();
    const pace = pacePushes({ minMs: 5, maxMs: 20 }, 100, over.resolve);
    for (let nth = 0; nth < 10; nth += 1) pace.acknowledged(1);
    pace.refused();
    pace.refused();
    expect(pace.window()).toBe(0);
    await over.promise;
    expect(pace.window()).toBe(1);
    pace.stop();
  });
});
