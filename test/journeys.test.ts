import { readFile } from 'node:fs/promises';
import { status } from '@grpc/grpc-js';
import type { ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleOrder } from '../world/platform/sample-order.ts';
import { startPos, type Pos } from '../world/pos/start-pos.ts';
import { DOORS, type Doors } from '../world/system/fixtures.ts';
import { startSystem, type System } from '../world/system/start-system.ts';

const SECRET = `whsec_${Buffer.alloc(24, 3).toString('base64')}`;

/** A system with these doors, and a POS for its location club-1. */
function startWith(doors: Doors): () => { system: System; pos: Pos; webhookUrl: string } {
  let started: ReturnType<ReturnType<typeof startWith>> | undefined;
  beforeAll(async () => {
    const [system, pos] = await Promise.all([
      startSystem({ doors, stepped: ['placements', 'relay'] }),
      startPos({ secret: SECRET }),
    ]);
    await system.addLocation('club-1', { ordersUrl: pos.ordersUrl, secret: SECRET });
    started = { system, pos, webhookUrl: await system.webhookUrl('club-1') };
  });
  afterAll(() => Promise.all([started?.system.stop(), started?.pos.stop()]));
  return () => started ?? expect.fail('it has not started');
}

const stages = { pubsub: startWith('pubsub'), http: startWith('http') };

it('a signal and a webhook are accepted with additional slashes in the path', async () => {
  const { system, pos, webhookUrl } = stages.pubsub();
  for (const path of ['/pubsub/push/', '//pubsub/push', '//pubsub//push/']) {
    const order = sampleOrder();
    system.platform.orders.set(order.serviceOrderId, order);
    expect(await system.signal(order.serviceOrderId, path)).toBe(204);
    expect(await system.placement(order.serviceOrderId)).toMatchObject({ state: 'waiting' });
  }
  const url = webhookUrl.replace('/webhook/', '//webhook/').replace('?token', '/?token');
  const event = { serviceOrderId: 'none', providerOrderId: 'none', status: 'READY' } as const;
  expect(await pos.sendStatus(url, event)).toMatchObject({ status: 200, body: { outcome: 'unmatched' } });
});

describe.each(DOORS)('with signals and statuses by %s', (doors) => {
  const stage = stages[doors];

  it.each([
    [
      'pickup',
      ['placed', 'sent', 'confirmed', 'preparing', 'ready_for_pickup', 'picked_up'],
      ['RECEIVED', 'IN_PROGRESS', 'READY', 'COMPLETED'],
    ],
    [
      'delivery',
      ['placed', 'sent', 'confirmed', 'preparing', 'ready_for_delivery', 'out_for_delivery', 'delivered'],
      ['RECEIVED', 'IN_PROGRESS', 'READY', 'EN_ROUTE', 'COMPLETED'],
    ],
  ] as const)(
    'a %s order becomes one ticket, and the platform gets every step with its number',
    async (type, states, statuses) => {
      const { system, pos, webhookUrl } = stage();
      const { serviceOrderId } = await system.placeOrder({ type });
      await system.round('placements');
      const [ticket, ...others] = pos.tickets.filter((each) => each.serviceOrderId === serviceOrderId);
      if (ticket === undefined) throw new Error('the POS has no ticket');
      expect(others).toEqual([]);
      for (const status of statuses) {
        const answer = await pos.sendStatus(webhookUrl, {
          serviceOrderId,
          providerOrderId: ticket.providerOrderId,
          status,
        });
        expect(answer).toMatchObject({ status: 200, body: { outcome: 'applied', webhookId: expect.any(String) } });
      }
      await system.finish('relay');
      const live = system.live(serviceOrderId);
      expect(live.map((message) => message.memberState)).toEqual(states);
      expect(live.map((message) => message.sequence)).toEqual(states.map((_, index) => index + 1));
      expect(live.at(-1)).toMatchObject({
        serviceOrderId,
        locationId: 'club-1',
        status: 'completed',
        fulfillment: type,
        providerOrderId: ticket.providerOrderId,
      });
    },
  );

  it('a signal that was answered 204 and a webhook that was answered 200 are committed', async () => {
    const { system, pos, webhookUrl } = stage();
    const { serviceOrderId } = await system.placeOrder();
    expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'waiting' });
    await system.round('placements');
    expect(await pos.sendStatus(webhookUrl, { serviceOrderId, status: 'READY' })).toMatchObject({ status: 200 });
    expect(await system.order(serviceOrderId)).toMatchObject({ status: 'ready' });
  });

  it('an order that is signalled many times, also at once, gets one ticket and each message once', async () => {
    const { system, pos } = stage();
    const { serviceOrderId } = await system.placeOrder();
    const signals = Array.from({ length: 10 }, () => system.signal(serviceOrderId));
    await system.finish('placements');
    await Promise.all(signals);
    expect(await system.signal(serviceOrderId)).toBe(204);
    await system.finish('placements');
    await system.finish('relay');
    expect(pos.tickets.filter((each) => each.serviceOrderId === serviceOrderId)).toHaveLength(1);
    expect(system.live(serviceOrderId).map(({ memberState }) => memberState)).toEqual(['placed', 'sent']);
  });

  it('the same statuses in any order, and repeated, end in the same status, and the numbers of its messages rise', async () => {
    const { system, pos, webhookUrl } = stage();
    for (const statuses of [
      ['RECEIVED', 'IN_PROGRESS', 'READY', 'COMPLETED'],
      ['COMPLETED', 'READY', 'RECEIVED', 'COMPLETED', 'IN_PROGRESS'],
    ]) {
      const { serviceOrderId } = await system.placeOrder();
      await system.round('placements');
      for (const status of statuses) await pos.sendStatus(webhookUrl, { serviceOrderId, status });
      await system.finish('relay');
      expect(await system.order(serviceOrderId)).toMatchObject({ status: 'completed' });
      const live = system.live(serviceOrderId);
      expect(live.map(({ sequence }) => sequence)).toEqual(live.map((_, nth) => nth + 1));
      expect(live.at(-1)).toMatchObject({ status: 'completed' });
    }
  });

  it('every message comes in order after an outage of the platform', async () => {
    const { system, pos, webhookUrl } = stage();
    const breakDown = (isDown: boolean): void => {
      if (doors === 'http') system.receiver.behave = isDown ? () => ({ status: 500 }) : undefined;
      else system.pubsub.faults.publishError = isDown ? () => status.UNAVAILABLE : undefined;
    };
    breakDown(true);
    const { serviceOrderId } = await system.placeOrder();
    await system.round('placements');
    await pos.sendStatus(webhookUrl, { serviceOrderId, status: 'READY' });
    await system.finish('relay');
    expect(system.live(serviceOrderId)).toEqual([]);
    breakDown(false);
    await system.query('UPDATE outbox SET lease_until = NULL, webhook_lease_until = NULL');
    await system.finish('relay');
    expect(system.live(serviceOrderId).map(({ memberState }) => memberState)).toEqual([
      'placed',
      'sent',
      'ready_for_pickup',
    ]);
  });

  it('an order that the platform cannot give does not hold up the others', async () => {
    const { system, pos } = stage();
    const stuck = await system.placeOrder();
    system.platform.answer = (id) => (id === stuck.serviceOrderId ? 'down' : undefined);
    const others = [await system.placeOrder(), await system.placeOrder()];
    await system.round('placements');
    system.platform.answer = undefined;
    const sent = pos.tickets.map((ticket) => ticket.serviceOrderId);
    expect(sent).toEqual(expect.arrayContaining(others.map((order) => order.serviceOrderId)));
    expect(sent).not.toContain(stuck.serviceOrderId);
  });

  it("one location's token changes no order of another location", async () => {
    const { system, pos } = stage();
    await system.addLocation('club-2', { ordersUrl: pos.ordersUrl, secret: SECRET });
    const { serviceOrderId } = await system.placeOrder();
    await system.round('placements');
    const foreign = await pos.sendStatus(await system.webhookUrl('club-2'), { serviceOrderId, status: 'CANCELLED' });
    expect(foreign).toMatchObject({ status: 200, body: { outcome: 'unmatched' } });
    await system.finish('relay');
    expect(system.live(serviceOrderId).map(({ memberState }) => memberState)).toEqual(['placed', 'sent']);
  });
});

describe('the JSON Schema accepts', () => {
  async function validatorOf(file: string): Promise<ValidateFunction> {
    const schema = await readFile(new URL(`../docs/${file}`, import.meta.url), 'utf8');
    return new Ajv2020({ validateFormats: false }).compile(JSON.parse(schema) as object);
  }

  it('an order at its POS, whether it has all fields or only the required ones', async () => {
    const { system, pos } = stages.pubsub();
    const validate = await validatorOf('providers/standard-order.schema.json');
    const requestedAt = new Date(Date.now() + 3_600_000).toISOString();
    const { fulfillment } = sampleOrder({ type: 'delivery' });
    const whole = await system.placeOrder({ fulfillment: { ...fulfillment, requestedAt } });
    const { notes: _notes, ...fewest } = sampleOrder({
      member: { id: 'member-42', name: 'Ada' },
      items: [{ serviceItemId: 'soup', name: 'Soup', quantity: 1, ageRestricted: false, modifiers: [] }],
    });
    system.platform.orders.set(fewest.serviceOrderId, fewest);
    expect(await system.signal(fewest.serviceOrderId)).toBe(204);
    await system.round('placements');

    const ids = [whole, fewest].map(({ serviceOrderId }) => serviceOrderId);
    const sent = pos.tickets.filter(({ serviceOrderId }) => ids.includes(serviceOrderId)).map(({ order }) => order);
    expect(sent).toHaveLength(2);
    for (const order of sent) expect([validate(order), validate.errors]).toEqual([true, null]);
    expect(sent.filter((order) => order.notes === undefined)).toHaveLength(1);
    expect(sent.map((order) => order.callOutCode)).not.toContain(undefined);
    expect(validate({ ...sent[0], items: [] })).toBe(false);
    expect(validate({ ...sent[0], serviceOrderId: undefined })).toBe(false);
  });

  it('a message on the topic, whether it has all fields or only the required ones', async () => {
    const { system, pos, webhookUrl } = stages.pubsub();
    const validate = await validatorOf('live-message.schema.json');
    await system.seedOrder({ serviceOrderId: 'schema', locationId: 'club-1', fulfillment: 'delivery' });
    await pos.sendStatus(webhookUrl, {
      serviceOrderId: 'schema',
      providerOrderId: 'pos-2',
      status: 'CANCELLED',
      reason: 'the oven is cold',
      occurredAt: '2026-11-21T18:30:00+01:00',
    });
    system.platform.answer = () => ({ errors: [{ message: 'no', extensions: { code: 'BAD_USER_INPUT' } }] });
    const { serviceOrderId } = await system.placeOrder();
    await system.round('placements');
    system.platform.answer = undefined;
    await system.finish('relay');

    const messages = [...system.live(serviceOrderId), ...system.live('schema')];
    expect(messages).toHaveLength(2);
    for (const message of messages) expect([validate(message), validate.errors]).toEqual([true, null]);
    expect(messages[0]).not.toHaveProperty('locationId');
    expect(messages[1]).toMatchObject({ reason: 'the oven is cold', occurredAt: expect.any(String) });
    expect(validate({ ...messages[1], sequence: 0 })).toBe(false);
    expect(validate({ ...messages[1], memberState: 'lost' })).toBe(false);
  });
});
