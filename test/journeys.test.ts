import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startPos, type Pos } from './support/start-pos.ts';
import { startSystem, type System } from './support/start-system.ts';

const SECRET = `whsec_${Buffer.alloc(24, 3).toString('base64')}`;

let system: System;
let pos: Pos;
let webhookUrl: string;

beforeAll(async () => {
  [system, pos] = await Promise.all([startSystem({ stepped: ['placements', 'relay'] }), startPos({ secret: SECRET })]);
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl, secret: SECRET });
  webhookUrl = await system.webhookUrl('club-1');
});
afterAll(() => Promise.all([system?.stop(), pos?.stop()]));

describe('an order from the member to the kitchen and back', () => {
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
    'a %s order becomes one ticket and the member sees every step, numbered',
    async (type, states, statuses) => {
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
});
