import { expect } from 'vitest';
import { GiveUp } from '../../../src/core/domain/errors.ts';
import type { CanonicalOrder } from '../../../src/core/domain/order.ts';
import type { Fault, Ticket } from '../../../world/pos/simulator.ts';
import { orderOf, WEBHOOK_URL, type Claim, type Theatre } from './open-theatre.ts';

/** The longest possible id, in scripts that no header allows. */
const LONGEST_ID = 'Заказ-🎂-№7-'.padEnd(254, '注文');
/** Number of orders whose keys are compared, and in how many places the keys must differ: 16 hex digits are 64 bits. */
const [COMPARED, PLACES] = [6, 16];

/** Claims that one order is one ticket, however often it is sent. */
export function repeatClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, canRepeat, said, stage, received, again } = theatre;

  claim('the simulator counts every request and calls behave with its order', async () => {
    const at = await stage();
    const heard: string[] = [];
    at.pos.behave = ({ serviceOrderId }) => void heard.push(serviceOrderId);
    for (const nth of [1, 2]) {
      await at.create(orderOf());
      expect(at.pos.requests, 'Simulator.requests').toBeGreaterThanOrEqual(nth);
      expect(new Set(heard).size, 'as many orders as Simulator.behave was asked about').toBe(nth);
    }
  });

  if (canRepeat) {
    claim('make one ticket', async () => {
      const at = await stage();
      const order = orderOf();
      const first = await at.create(order);
      const second = await again(at, order);
      expect(at.pos.tickets).toHaveLength(1);
      expect(second).toEqual(first);
    });

    claim('make one ticket although the order changed when it was fetched again', async () => {
      const at = await stage();
      const order = orderOf();
      const first = await at.create(order);
      const { items, money, member } = order;
      const [burger, ...others] = items as [CanonicalOrder['items'][number]];
      const changed = {
        ...order,
        member: { ...member, name: 'Ada King' },
        items: [{ ...burger, quantity: burger.quantity + 1 }, ...others],
        money: { ...money, subtotal: money.subtotal + 1440, total: money.total + 1440 },
        notes: 'No terrace after all',
      };
      expect(await again(at, changed)).toEqual(first);
      expect(at.pos.tickets).toHaveLength(1);
    });

    claim('different orders have different keys at the POS', async () => {
      const at = await stage();
      for (let nth = 0; nth < COMPARED; nth += 1) await at.create(orderOf());
      const { tickets } = at.pos;
      expect(tickets).toHaveLength(COMPARED);
      for (const name of ['key', 'serviceOrderId'] as const) {
        const keys = tickets.map((ticket) => ticket[name]);
        expect(placesThatDiffer(keys), `characters of ${name} that differ: ${keys[0]}`).toBeGreaterThanOrEqual(PLACES);
      }
    });
  }

  if (provider.findOrder !== undefined) {
    claim('findOrder returns undefined before the first request', async () => {
      const at = await stage();
      expect(await provider.findOrder?.('no-such-order', at.contextOf())).toBeUndefined();
    });
  }

  claim('two orders with the longest ids get two tickets, or createOrder throws GiveUp without a request', async () => {
    const at = await stage();
    const [order, other] = ['a', 'b'].map((end) =>
      orderOf({ serviceOrderId: LONGEST_ID + end, type: said.fulfillment }),
    ) as [CanonicalOrder, CanonicalOrder];
    const first = await at.create(order).catch((error: unknown) => error as Error);
    if (first instanceof Error) {
      expect(first).toBeInstanceOf(GiveUp);
      expect(at.pos.requests, 'sent anyway').toBe(0);
      expect(() => provider.checkOrder?.(order), 'checkOrder says so').toThrow(GiveUp);
      return;
    }
    expect(at.pos.tickets).toHaveLength(1);
    if (canRepeat) expect(await again(at, order)).toEqual(first);
    expect(at.pos.tickets).toHaveLength(1);
    const webhook = received(at.pos.sign(WEBHOOK_URL, at.pos.tickets[0] as Ticket, said.native));
    const events = provider.translateWebhook(webhook, at.settings);
    expect(events).toHaveLength(1);
    for (const event of events) {
      expect([undefined, order.serviceOrderId], "our id, or the POS's alone").toContain(event.serviceOrderId);
      const name = event.serviceOrderId ?? event.providerOrderId;
      expect([order.serviceOrderId, first.providerOrderId], 'an id that the core knows').toContain(name);
    }
    await at.create(other);
    expect(at.pos.tickets, 'ids that differ in their last character are different orders').toHaveLength(2);
    expect(at.pos.refusals).toEqual([]);
  });

  claim(
    'make no second ticket after a lost answer, for which createOrder throws TryAgain with sent: true',
    async () => {
      const at = await stage();
      const order = orderOf();
      at.pos.behave = once('drop-answer');
      await expect(at.create(order)).rejects.toMatchObject({ name: 'TryAgain', sent: true });
      expect(at.pos.tickets).toHaveLength(1);
      if (!canRepeat) return;
      const ref = await again(at, order);
      expect(at.pos.tickets).toHaveLength(1);
      expect([undefined, at.pos.tickets[0]?.providerOrderId]).toContain(ref?.providerOrderId);
    },
  );
}

/** Number of places in which the texts do not all have the same character. */
function placesThatDiffer(texts: readonly string[]): number {
  const [first = ''] = texts;
  return first.split('').filter((_, place) => new Set(texts.map((text) => text[place])).size > 1).length;
}

function once(fault: Fault): () => Fault | undefined {
  let left: Fault | undefined = fault;
  return () => {
    const now = left;
    left = undefined;
    return now;
  };
}
