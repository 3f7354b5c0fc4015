/** A POS's word about its kitchen, on its whole way: to the platform, to the next order, and to operators. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { TryAgain } from '../../src/core/domain/errors.ts';
import type { KitchenOrder } from '../../src/core/domain/order.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { KitchenReport } from '../../src/core/domain/webhook.ts';
import { BURST } from '../../src/http/throttle-failures.ts';
import {
  OPERATOR_TOKEN,
  askOperator,
  mustBeProblem,
  sendAsIs,
  type Operator,
} from '../../world/system/ask-operator.ts';
import { kitchensModule } from '../../src/server/modules/kitchens.ts';
import { digest } from '../../src/core/domain/make-token.ts';
import { resumeEndpoint } from '../../src/core/live/status-endpoint.ts';
import { runCli } from '../support/run-cli.ts';
import { startReceiver } from '../../world/receiver/start-receiver.ts';
import { post, startSystem, type System } from '../../world/system/start-system.ts';

const AVAILABILITY_TOKEN = 'cHkVGk31wo45SmNBqVekrkXIvjZv0uFrVn9PDeyjFLA';
const KITCHEN_TOPIC = 'kitchen-availability';
const HOUR_MS = 3_600_000;

const sent: KitchenOrder[] = [];
let take: () => Promise<void> = async () => {};
const acme: Provider = {
  integration: 'acme',
  settings: z.object({}),
  deduplicates: true,
  usesExtraMinutes: true,
  async createOrder(order) {
    sent.push(order);
    await take();
    return {};
  },
  translateWebhook: () => [],
  readKitchen({ body }) {
    const until = new Date(Date.now() + HOUR_MS);
    return KitchenReport.parse({ until, ...(JSON.parse(body.toString()) as object) });
  },
};

let system: System;
let operator: Operator;
let locationId: string;
let webhook: string;
let nth = 0;
beforeAll(async () => {
  system = await startSystem({
    providers: [acme],
    env: { OPERATOR_TOKEN, AVAILABILITY_TOKEN, KITCHEN_TOPIC },
    stepped: ['placements', 'kitchens'],
  });
  operator = await askOperator(system.urls[0] ?? '');
});
afterAll(() => system?.stop());
beforeEach(async () => {
  nth += 1;
  locationId = `club-${nth}`;
  await system.addLocation(locationId, {}, 'acme');
  webhook = await system.webhookUrl(locationId);
  take = async () => {};
});

/** What the platform was told. */
async function told(): Promise<Record<string, unknown>[]> {
  await system.round('availability of kitchens');
  await system.finish('kitchens');
  return system.pubsub
    .published(KITCHEN_TOPIC)
    .filter(({ orderingKey }) => orderingKey === locationId)
    .map(({ data }) => JSON.parse(data.toString()) as Record<string, unknown>);
}
const isDue = (id: string): Promise<unknown> =>
  system.query('UPDATE placements SET next_attempt_at = now() WHERE service_order_id = $1', [id]);
const ofOrder = (id: string): KitchenOrder[] => sent.filter(({ serviceOrderId }) => serviceOrderId === id);
/** Tries what is due. @returns the state of an order */
async function tried(id: string): Promise<unknown> {
  await system.round('placements');
  return (await system.placement(id))?.['state'];
}

describe('a kitchen', () => {
  it('that is busy is published to the platform, and the next order has the extra minutes', async () => {
    expect((await post(webhook, { state: 'busy', extraMinutes: 20 })).body).toMatchObject({ outcome: 'applied' });
    expect(await told()).toEqual([
      expect.objectContaining({ locationId, integration: 'acme', state: 'busy', source: 'pos', extraMinutes: 20 }),
    ]);
    const { serviceOrderId } = await system.placeOrder({ locationId });
    expect(await tried(serviceOrderId)).toBe('sent');
    expect(ofOrder(serviceOrderId)).toMatchObject([{ extraMinutes: 20 }]);
    const { timeline } = (await operator.get(`/orders/${serviceOrderId}`)).body as { timeline: object[] };
    expect(timeline).toContainEqual(
      expect.objectContaining({ what: 'call began', details: { attempt: 1, call: 'createOrder', extraMinutes: 20 } }),
    );
    const { out } = await runCli(system.env, ['order', 'show', serviceOrderId]);
    expect(out).toMatch(/^kitchen was busy +20 minutes were added$/m);

    await post(webhook, { state: 'open' });
    expect(await told()).toMatchObject([{}, { state: 'open', source: 'pos', extraMinutes: null }]);
    const later = await system.placeOrder({ locationId });
    expect(await tried(later.serviceOrderId)).toBe('sent');
    expect(ofOrder(later.serviceOrderId)[0]).not.toHaveProperty('extraMinutes');
  });

  it('that becomes busier does not change the extra minutes of a repeated call', async () => {
    await operator.send('PUT', `/locations/${locationId}/busy`, { extraMinutes: 15 });
    take = async () => {
      await operator.send('PUT', `/locations/${locationId}/busy`, { extraMinutes: 40 });
      take = async () => {};
      throw new TryAgain('the connection broke', { sent: true });
    };
    const { serviceOrderId } = await system.placeOrder({ locationId });
    expect(await tried(serviceOrderId)).toBe('in_doubt');
    await isDue(serviceOrderId);
    expect(await tried(serviceOrderId)).toBe('sent');
    expect(ofOrder(serviceOrderId).map(({ extraMinutes }) => extraMinutes)).toEqual([15, 15]);
  });

  it('that is closed holds orders, and is published once', async () => {
    await post(webhook, { state: 'closed' });
    expect(await told()).toMatchObject([{ state: 'closed' }]);
    const { serviceOrderId } = await system.placeOrder({ locationId });
    expect(await tried(serviceOrderId)).toBe('held');
    expect(ofOrder(serviceOrderId)).toEqual([]);
    await operator.post(`/locations/${locationId}/resume`);
    expect(await tried(serviceOrderId)).toBe('sent');
    expect((await told()).map(({ state }) => state)).toEqual(['closed', 'open']);
  });
});

it('the kitchen of a POS that does not answer is published as unreachable', async () => {
  take = async () => {
    throw new TryAgain('no answer', { sent: false });
  };
  const { serviceOrderId } = await system.placeOrder({ locationId });
  for (const _call of [1, 2]) {
    await isDue(serviceOrderId);
    expect(await tried(serviceOrderId)).toBe('waiting');
  }
  // The first call was ten seconds ago, and the location is older.
  await system.query(
    `WITH l AS (UPDATE locations SET created_at = created_at - interval '1 h', settings_changed_at = NULL)
     UPDATE placement_attempts SET ended_at = ended_at - interval '10 s' WHERE service_order_id = $1 AND attempt = 1`,
    [serviceOrderId],
  );
  await system.round('suspicion of kitchens');
  await system.round('probing of kitchens');
  expect(await told()).toMatchObject([{ state: 'unreachable', source: 'inferred', until: null }]);
});

describe('an operator', () => {
  it('makes a kitchen busy and ends its busy time, and the audit has both actions', async () => {
    const about = { extraMinutes: 20, minutes: 60, reason: 'One cook is ill' };
    const made = await operator.send('PUT', `/locations/${locationId}/busy`, about);
    expect(made.body).toMatchObject({ state: 'busy', source: 'operator', extraMinutes: 20, reason: about.reason });
    expect((await operator.get(`/locations/${locationId}/availability`)).body).toEqual(made.body);
    const list = async (query: string): Promise<unknown> => (await operator.get(`/availability?${query}`)).body;
    expect(await list(`state=busy&location=${locationId}`)).toEqual({ kitchens: [made.body], next: null });
    expect(await list(`state=open&location=${locationId}`)).toEqual({ kitchens: [], next: null });
    expect(await list('integration=acme&limit=1')).toMatchObject({ kitchens: [{}], next: 'club-1' });
    const { out } = await runCli(system.env, ['location', 'availability', '--location', locationId]);
    expect(out).toMatch(/busy, 20 minutes more until .* \(OPERATOR_TOKEN\) .* One cook is ill$/m);

    const { body } = await operator.send('DELETE', `/locations/${locationId}/busy`);
    expect(body).toMatchObject({ state: 'open', source: 'operator', reason: null });
    const { actions } = (await operator.get(`/audit?location=${locationId}`)).body as { actions: object[] };
    expect(actions).toMatchObject([
      { action: 'end busy', outcome: 'done' },
      { action: 'make busy', outcome: 'done', after: '20 minutes for 60 minutes: One cook is ill' },
    ]);
  });

  it.each([
    {},
    { extraMinutes: 0 },
    { extraMinutes: 5, minutes: 5, until: '2027-01-31T18:00:00Z' },
    // It has passed.
    { extraMinutes: 5, until: '2020-01-31T18:00:00Z' },
  ])('gets 400 for making a kitchen busy with %o', async (body) => {
    expect((await operator.send('PUT', `/locations/${locationId}/busy`, body)).status).toBe(400);
  });
});

describe('GET /availability', () => {
  const get = (query: string, headers: Record<string, string> = {}): ReturnType<typeof sendAsIs> =>
    sendAsIs(system.urls[0] ?? '', `/availability${query}`, {
      headers: { authorization: `Bearer ${AVAILABILITY_TOKEN}`, ...headers },
    });

  it('answers with the existing kitchens, and answers 304 until a kitchen changes', async () => {
    const query = `?locations=${locationId},nowhere`;
    const first = await get(query);
    expect(first.status).toBe(200);
    expect(first.body).toEqual({
      kitchens: [
        {
          locationId,
          integration: 'acme',
          state: 'open',
          source: 'inferred',
          since: expect.any(String),
          until: null,
          extraMinutes: null,
          sequence: 0,
        },
      ],
    });
    const etag = first.headers.get('etag') ?? '';
    expect(first.headers.get('cache-control')).toBe('private, max-age=5');
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await get(query, { 'if-none-match': known });
      expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag]);
    }
    await operator.send('PUT', `/locations/${locationId}/busy`, { extraMinutes: 20, reason: 'for operators only' });
    const changed = await get(query, { 'if-none-match': etag });
    expect(changed.body).toMatchObject({ kitchens: [{ state: 'busy', extraMinutes: 20 }] });
    expect(changed.text).not.toContain('operators only');
  });

  it.each(['', '?locations=', `?locations=${Array.from({ length: 101 }, (_, id) => id).join()}`])(
    'answers 400 to the query "%s"',
    async (query) => {
      const answer = await get(query);
      expect(answer.status).toBe(400);
      mustBeProblem(answer);
    },
  );

  it('answers 401 to wrong tokens, which do not block the right one', async () => {
    const wrong = (): ReturnType<typeof get> => get('?locations=a', { authorization: 'Bearer wrong' });
    const none = await get('?locations=a', { authorization: '' });
    const first = await wrong();
    for (const answer of [none, first]) {
      expect(answer.status).toBe(401);
      mustBeProblem(answer);
    }
    const answers = await Promise.all(Array.from({ length: BURST + 5 }, wrong));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    expect((await get('?locations=a')).status).toBe(200);
    expect(system.logged.join()).not.toContain(AVAILABILITY_TOKEN);
  });

  it('is not a route of the service without AVAILABILITY_TOKEN', () => {
    const app = { database: {}, observability: {}, providers: {}, pubsub: {} };
    const { endpoint } = kitchensModule(app as never, {} as never, { breaker: {} as never });
    expect(endpoint).toBeUndefined();
  });
});

it('the metrics count kitchens by state', async () => {
  await operator.send('PUT', `/locations/${locationId}/busy`, { extraMinutes: 20 });
  await system.round('measurement of the backlog');
  const { text } = await operator.get('/metrics');
  expect(Number(/^expediter_kitchens\{state="busy"\} (\d+)/m.exec(text)?.[1])).toBeGreaterThan(0);
});

it('an availability that the webhook refuses is published to the topic once, and comes by the webhook unless that is stopped', async () => {
  const topic = 'kitchens-by-both-ways';
  const receiver = await startReceiver();
  const both = await startSystem({
    providers: [acme],
    stepped: ['kitchens'],
    pubsub: system.pubsub,
    env: { KITCHEN_TOPIC: topic, STATUS_WEBHOOK_URL: receiver.url, STATUS_WEBHOOK_SECRET: receiver.secret },
  });
  onTestFinished(() => both.stop().then(() => receiver.stop()));
  await both.addLocation('with-webhook', {}, 'acme');
  await post(await both.webhookUrl('with-webhook'), { state: 'busy', extraMinutes: 20 });
  await both.round('availability of kitchens');
  const again = async (): Promise<unknown> => {
    await both.query('UPDATE kitchens SET lease_until = NULL');
    return both.round('kitchens');
  };
  receiver.behave = () => ({ status: 500 });
  for (let turn = 0; turn < 3; turn += 1) expect(await again()).toBe(1);
  expect(receiver.taken).toEqual([]);
  receiver.behave = () => undefined;
  await both.query('INSERT INTO status_endpoints (endpoint, problem, stopped_at) VALUES ($1, $2, now())', [
    digest(receiver.url),
    'it is gone',
  ]);
  const before = receiver.received.length;
  await again();
  expect(receiver.received).toHaveLength(before);
  await resumeEndpoint(both.pool);
  expect([await again(), await again()]).toEqual([1, 0]);
  expect(receiver.taken.map(({ subject }) => subject)).toEqual(['with-webhook']);
  const onTopic = system.pubsub.published(topic).filter(({ orderingKey }) => orderingKey === 'with-webhook');
  expect(onTopic).toHaveLength(1);
});
