/** A POS's word about its kitchen, on its whole way: to the platform, to the next order, and to operators. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { TryAgain } from '../../src/core/domain/errors.ts';
import type { KitchenOrder } from '../../src/core/domain/order.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { KitchenReport } from '../../src/core/domain/webhook.ts';
import { BURST } from '../../src/http/throttle-failures.ts';
import { OPERATOR_TOKEN, askOperator, mustBeProblem, sendAsIs, type Operator } from '../support/ask-operator.ts';
import { runCli } from '../support/run-cli.ts';
import { post, startSystem, type System } from '../support/start-system.ts';
import { until } from '../support/until.ts';

const AVAILABILITY_TOKEN = 'the-availability-token-of-a-test-which-is-long-enough';
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
  system = await startSystem({ providers: [acme], env: { OPERATOR_TOKEN, AVAILABILITY_TOKEN, KITCHEN_TOPIC } });
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

const told = (of = locationId): Record<string, unknown>[] =>
  system.pubsub
    .published(KITCHEN_TOPIC)
    .filter(({ orderingKey }) => orderingKey === of)
    .map(({ data }) => JSON.parse(data.toString()) as Record<string, unknown>);
const ofOrder = (id: string): KitchenOrder[] => sent.filter(({ serviceOrderId }) => serviceOrderId === id);
const untilSent = (id: string): Promise<unknown> =>
  until(async () => (await system.placement(id))?.['state'] === 'sent');

describe('a busy kitchen', () => {
  it('is told to the platform, and the next order has its minutes and says so', async () => {
    expect((await post(webhook, { state: 'busy', extraMinutes: 20 })).body).toMatchObject({ outcome: 'applied' });
    await until(() => told().length === 1);
    expect(told()).toEqual([
      expect.objectContaining({ locationId, integration: 'acme', state: 'busy', source: 'pos', extraMinutes: 20 }),
    ]);
    const { serviceOrderId } = await system.placeOrder({ locationId });
    await untilSent(serviceOrderId);
    expect(ofOrder(serviceOrderId)).toMatchObject([{ extraMinutes: 20 }]);
    const { timeline } = (await operator.get(`/orders/${serviceOrderId}`)).body as { timeline: object[] };
    expect(timeline).toContainEqual(
      expect.objectContaining({ what: 'call began', details: { attempt: 1, call: 'createOrder', extraMinutes: 20 } }),
    );
    const { out } = await runCli(system.env, ['order', 'show', serviceOrderId]);
    expect(out).toMatch(/^kitchen was busy +20 minutes were added$/m);

    await post(webhook, { state: 'open' });
    await until(() => told().length === 2);
    expect(told().at(-1)).toMatchObject({ state: 'open', source: 'pos', extraMinutes: null });
    const later = await system.placeOrder({ locationId });
    await untilSent(later.serviceOrderId);
    expect(ofOrder(later.serviceOrderId)[0]).not.toHaveProperty('extraMinutes');
  });

  it('gives the repeat of a call whose answer was lost the same minutes', async () => {
    await operator.send('PUT', `/locations/${locationId}/busy`, { extraMinutes: 15 });
    take = async () => {
      await operator.send('PUT', `/locations/${locationId}/busy`, { extraMinutes: 40 });
      take = async () => {};
      throw new TryAgain('the connection broke', { sent: true });
    };
    const { serviceOrderId } = await system.placeOrder({ locationId });
    await untilSent(serviceOrderId);
    expect(ofOrder(serviceOrderId).map(({ extraMinutes }) => extraMinutes)).toEqual([15, 15]);
  });

  it('holds orders if it is closed instead, and its row is not published twice', async () => {
    await post(webhook, { state: 'closed' });
    await until(() => told().length === 1);
    const { serviceOrderId } = await system.placeOrder({ locationId });
    await until(async () => (await system.placement(serviceOrderId))?.['state'] === 'held');
    expect(ofOrder(serviceOrderId)).toEqual([]);
    await operator.post(`/locations/${locationId}/resume`);
    await untilSent(serviceOrderId);
    await until(() => told().length === 2);
    expect(told().map(({ state }) => state)).toEqual(['closed', 'open']);
  });
});

it('a POS that gives no answer is unreachable within a minute', async () => {
  take = async () => {
    throw new TryAgain('no answer', { sent: false });
  };
  await system.placeOrder({ locationId });
  await until(async () => {
    const { rows } = await system.pool.query(
      `SELECT FROM placement_attempts a JOIN placements p USING (service_order_id) WHERE p.location_id = $1 AND ended_at IS NOT NULL`,
      [locationId],
    );
    return rows.length >= 2;
  });
  // The first call was ten seconds ago.
  await system.query(
    `UPDATE placement_attempts a SET ended_at = ended_at - interval '10 s' FROM placements p
     WHERE p.service_order_id = a.service_order_id AND p.location_id = $1 AND a.attempt = 1`,
    [locationId],
  );
  await until(() => told().length === 1);
  expect(told()).toMatchObject([{ state: 'unreachable', source: 'inferred', until: null }]);
  await operator.post(`/locations/${locationId}/pause`);
});

describe('an operator', () => {
  it('sets and ends a busy kitchen, which the audit has, and lists kitchens', async () => {
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
      { action: 'make busy', outcome: 'done', after: '20 minutes' },
    ]);
  });

  it.each([{}, { extraMinutes: 0 }, { extraMinutes: 5, minutes: 5, until: '2027-01-31T18:00:00Z' }])(
    'cannot make a kitchen busy by %o',
    async (body) => {
      expect((await operator.send('PUT', `/locations/${locationId}/busy`, body)).status).toBe(400);
    },
  );

  it('cannot make a kitchen busy until a time that has passed', async () => {
    const body = { extraMinutes: 5, until: '2020-01-31T18:00:00Z' };
    expect((await operator.send('PUT', `/locations/${locationId}/busy`, body)).status).toBe(400);
  });
});

describe('GET /availability', () => {
  const get = (query: string, headers: Record<string, string> = {}): ReturnType<typeof sendAsIs> =>
    sendAsIs(system.urls[0] ?? '', `/availability${query}`, {
      headers: { authorization: `Bearer ${AVAILABILITY_TOKEN}`, ...headers },
    });

  it('answers with the kitchens that there are, and 304 until one changes', async () => {
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
    'refuses %s',
    async (query) => {
      const answer = await get(query);
      expect(answer.status).toBe(400);
      mustBeProblem(answer);
    },
  );

  it('refuses a wrong token, and then slows its sender, but not one who has the right one', async () => {
    const wrong = (): ReturnType<typeof get> => get('?locations=a', { authorization: 'Bearer wrong' });
    const none = await get('?locations=a', { authorization: '' });
    const first = await wrong();
    for (const answer of [none, first]) {
      expect(answer.status).toBe(401);
      mustBeProblem(answer);
    }
    const answers = await Promise.all(Array.from({ length: BURST + 5 }, wrong));
    const slowed = answers.find(({ status }) => status === 429);
    if (slowed === undefined) throw new Error('nobody was slowed');
    mustBeProblem(slowed);
    expect((await get('?locations=a')).status).toBe(200);
    expect(system.logged.join()).not.toContain(AVAILABILITY_TOKEN);
  });

  it('is not there without a token of its own', async () => {
    const other = await startSystem();
    expect((await sendAsIs(other.urls[0] ?? '', '/availability?locations=a')).status).toBe(404);
    await other.stop();
  });
});

it('counts the kitchens by state', async () => {
  await operator.send('PUT', `/locations/${locationId}/busy`, { extraMinutes: 20 });
  await until(async () => {
    const { text } = await operator.get('/metrics');
    return Number(/^expediter_kitchens\{state="busy"\} (\d+)/m.exec(text)?.[1]) > 0;
  });
});
