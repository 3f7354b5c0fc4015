import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memberStateAt, rankOf } from '../../src/core/domain/lifecycle.ts';
import { registry } from '../../src/providers/index.ts';
import { SIMULATORS } from '../../world/pos/index.ts';
import { startDeliverect } from '../../world/pos/deliverect/start-deliverect.ts';
import { balanceLoad } from '../../world/network/balance-load.ts';
import type { HttpServer } from '../../world/network/serve-http.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

let system: System;
let balancer: HttpServer;
let instances: string[] = [];

beforeAll(async () => {
  balancer = await balanceLoad(() => instances);
  system = await startSystem({
    stepped: ['placements', 'relay'],
    env: { PUBLIC_URL: balancer.url, LOG_LEVEL: 'warn' },
  });
  instances = system.urls;
  await until(async () => (await fetch(`${balancer.url}/readyz`)).ok);
});
afterAll(async () => {
  await system?.stop();
  await balancer?.stop();
});

it('every provider has a simulator', () => {
  expect([...registry.keys()].toSorted()).toEqual(Object.keys(SIMULATORS).toSorted());
});

describe.each(Object.entries(SIMULATORS))('an order sent to %s', (integration, startSimulator) => {
  it.each(['pickup', 'delivery'] as const)(
    'becomes one ticket if it is for %s, and its member gets every state up to completed',
    async (type) => {
      const pos = await startSimulator({ hurry: 600 });
      const locationId = `${integration}-${type}`;
      try {
        await system.addLocation(locationId, pos.settings, integration);
        const url = (await system.webhookUrl(locationId)).replace(system.urls[0] ?? '', balancer.url);
        const { serviceOrderId } = await system.placeOrder({ locationId, type });
        await system.round('placements');
        expect(pos.refusals).toEqual([]);
        const [ticket] = pos.tickets;
        if (ticket === undefined) throw new Error('the POS has no ticket');
        const answers = [];
        for (const status of pos.lifeOf(type)) answers.push(await pos.report(url, ticket, status));
        expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
        expect(JSON.stringify(answers)).not.toMatch(/dropped|stale/);

        await system.finish('relay');
        const messages = system.live(serviceOrderId);
        expect(messages.at(-1)).toMatchObject({ memberState: memberStateAt(rankOf('completed'), type) });
        expect(messages.map((message) => message.sequence)).toEqual(messages.map((_, nth) => nth + 1));
        expect(messages[0]).toMatchObject({ memberState: 'placed' });
        const [callOutCode = 'none', ...others] = new Set(messages.map((message) => message.callOutCode));
        expect(others).toEqual([]);
        expect(ticket.callOut?.split(' ')).toContain(callOutCode);
        expect(pos.tickets).toHaveLength(1);
        expect(await system.order(serviceOrderId)).toMatchObject({ provider_order_id: ticket.providerOrderId });
        expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'sent' });
      } finally {
        await pos.stop();
      }
    },
  );

  if (registry.get(integration)?.readKitchen === undefined) return;
  it('waits until the kitchen reports that it is open', async () => {
    const pos = await startSimulator({ hurry: 600 });
    const locationId = `${integration}-closed`;
    try {
      await system.addLocation(locationId, pos.settings, integration);
      const url = await system.webhookUrl(locationId);
      const applied = { status: 200, body: { outcome: 'applied' } };
      expect(await pos.setKitchen?.(url, { state: 'closed' })).toMatchObject(applied);
      const { serviceOrderId } = await system.placeOrder({ locationId });
      await system.round('placements');
      expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'held' });
      expect(pos.requests).toBe(0);
      expect(await pos.setKitchen?.(url, { state: 'open' })).toMatchObject(applied);
      await system.round('end of pauses');
      await system.round('placements');
      expect(pos.tickets).toHaveLength(1);
    } finally {
      await pos.stop();
    }
  });
});

it("Deliverect's status 121 fails the order, with that code in the reason for the member", async () => {
  const pos = await startDeliverect();
  try {
    await system.addLocation('unreached', pos.settings, 'deliverect');
    const url = await system.webhookUrl('unreached');
    const { serviceOrderId } = await system.placeOrder({ locationId: 'unreached' });
    await system.round('placements');
    const [ticket] = pos.tickets;
    if (ticket === undefined) throw new Error('the POS has no ticket');
    expect(await pos.report(url, ticket, '121')).toMatchObject({ status: 200, body: { outcome: 'applied' } });
    await system.finish('relay');
    expect(system.live(serviceOrderId).at(-1)).toMatchObject({
      memberState: 'failed',
      reason: 'The restaurant could not take this order (Deliverect 121).',
    });
  } finally {
    await pos.stop();
  }
});
