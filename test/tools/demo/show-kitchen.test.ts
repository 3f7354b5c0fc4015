import { afterEach, expect, it } from 'vitest';
import { showKitchen } from '../../../tools/demo/show-kitchen.ts';
import { KitchenOrder } from '../../../src/core/domain/order.ts';
import { boundedFetch } from '../../../src/core/egress/bounded-fetch.ts';
import { registry } from '../../../src/providers/index.ts';
import { inMemoryCredentials } from '../../../packages/provider-kit/contract/in-memory-credentials.ts';
import { POS_NAMES, SIMULATORS, type PosName } from '../../../world/pos/index.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** The kitchen's screen at a POS that got these orders. */
async function screenOf(name: PosName, ...orders: KitchenOrder[]): Promise<string> {
  const pos = await SIMULATORS[name]();
  const kitchen = await showKitchen(pos);
  ends.push(kitchen.stop, pos.stop);
  const provider = registry.get(name);
  const now = new Date();
  const credentials = inMemoryCredentials(() => now);
  for (const order of orders) {
    await provider?.createOrder(KitchenOrder.parse({ callOutCode: 'K472', ...order }), {
      settings: provider.settings.parse(pos.settings),
      now,
      signal: AbortSignal.timeout(10_000),
      credentials,
      fetch: boundedFetch(),
    });
  }
  return (await fetch(kitchen.url)).text();
}

// Lightspeed's orders name nothing: its tills have the names in their menu.
it.each(POS_NAMES.filter((name) => name !== 'lightspeed-k'))(
  'the kitchen of %s shows items, modifiers and notes by name, the requested time and the address',
  async (name) => {
    const order = sampleOrder({ type: 'delivery' });
    order.fulfillment.requestedAt = '2099-01-31T20:30:00Z';
    const screen = await screenOf(name, order);
    expect(screen).toMatch(/<p>wanted for 2099-01-31 20:30 \((UTC|\+00:00)\)<\/p><p>to .*Lindenstraße 14/);
    expect(screen).toMatch(/<li>2 × Classic Burger\n(Extra cheddar|Cheddar)\nNo onions\n/);
    expect(screen).toContain('One of them well done');
    expect(screen).toContain('Table by the terrace');
  },
);

it('the kitchen shows the quantity of a modifier, and does not read the text of a member as HTML', async () => {
  const order = sampleOrder({ notes: '<b>hello</b>' });
  const [burger] = order.items;
  if (burger === undefined) throw new Error('the sample has a burger');
  const dip = { serviceModifierId: 'dip', name: 'Dip', quantity: 1 };
  burger.modifiers = [{ serviceModifierId: 'cheddar', name: 'Extra "cheddar"', quantity: 2, modifiers: [dip] }];
  burger.notes = 'rare & fast';
  order.money = { ...order.money, discount: 100, total: order.money.total - 100 };
  const screen = await screenOf('standard', order);
  expect(screen).toContain('<li>2 × Classic Burger\n2 × Extra &quot;cheddar&quot;\n  Dip\nrare &amp; fast</li>');
  expect(screen).toContain('<p>discount: 100 minor units</p><p>&lt;b&gt;hello');
  expect(screen).not.toContain('<b>hello');
});

it.each(POS_NAMES)('the kitchen of %s shows the newest ticket first', async (name) => {
  const orders = ['order-old', 'order-new'].map((serviceOrderId) => ({ ...sampleOrder(), serviceOrderId }));
  expect(await screenOf(name, ...orders)).toMatch(/order-new,[^]*order-old,/);
});
