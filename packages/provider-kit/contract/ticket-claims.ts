import { expect } from 'vitest';
import { GiveUp } from '../../../src/core/domain/errors.ts';
import type { CanonicalOrder } from '../../../src/core/domain/order.ts';
import type { Ticket, TicketModifier } from '../../../world/pos/simulator.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import type { Stage } from './open-stage.ts';
import { FULFILLMENTS, orderOf, type Claim, type Theatre } from './open-theatre.ts';
import type { TicketField } from './provider-fixtures.ts';

/** An hour is too near for some kitchens, and a day too far. */
const AHEAD_MS = 2 * 3_600_000;

/** Claims about the ticket's content. */
export function ticketClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  contentClaims(theatre, claim);
  moneyClaims(theatre, claim);
  textClaims(theatre, claim);
}

/** What was ordered, by whom and for when. */
function contentClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { referenceOf, stage, ticketOf } = theatre;
  const has = fieldsOf(theatre);
  const paidOf = paidIn(theatre);

  for (const type of FULFILLMENTS) {
    claim(`a complete ${type} order`, async () => {
      const at = await stage();
      const order = wholeOrder(type);
      const ref = await at.create(order);
      expect(at.pos.refusals).toEqual([]);
      expect(at.pos.tickets).toHaveLength(1);
      const ticket = at.pos.tickets[0] as Ticket;
      expect(ticket).toMatchObject({ serviceOrderId: referenceOf(order.serviceOrderId), fulfillment: type });
      expect([undefined, ticket.providerOrderId]).toContain(ref.providerOrderId);
      expect(ticket.lines.map((line) => line.quantity)).toEqual(order.items.map((item) => item.quantity));
      expect(ticket.lines[0]?.note ?? ticket.note).toContain('well done');
      expect(ticket.note).toContain('terrace');
      if (ticket.lines[2]?.ageRestricted !== true) {
        expect(ticket.note, 'the age check must come first').toMatch(/^AGE CHECK: Pale Ale/);
      }
    });
  }

  claim('every item and modifier in the ordered quantity', async () => {
    const ticket = await ticketOf(await stage(), wholeOrder());
    const [burger] = ticket.lines;
    expect(burger?.modifiers.map((modifier) => modifier.quantity).toSorted()).toEqual([1, 3]);
    const references = ticket.lines.flatMap((line) => [
      line.reference,
      ...line.modifiers.map((each) => each.reference),
    ]);
    expect(new Set(references).size, 'five things are five').toBe(5);
    const names = ticket.lines.map((line) => line.name);
    const ofModifiers = burger?.modifiers.map((modifier) => modifier.name);
    const { items } = wholeOrder();
    expect(names).toEqual(items.map((item) => (has('itemNames') ? item.name : undefined)));
    const ordered = items[0]?.modifiers.map((modifier) => (has('itemNames') ? modifier.name : undefined));
    expect(ofModifiers?.toSorted()).toEqual(ordered?.toSorted());
  });

  claim('the price of each item and modifier', async () => {
    const ticket = await ticketOf(await stage(), wholeOrder());
    const { items } = wholeOrder();
    const priceOf = (price: number | undefined): number | undefined => (has('prices') ? price : undefined);
    expect(ticket.lines.map((line) => line.price)).toEqual(items.map((item) => priceOf(item.unitPrice)));
    expect(ticket.lines[0]?.modifiers.map((modifier) => modifier.price)).toContain(priceOf(150));
  });

  claim('modifiers of modifiers, three levels deep, and the price of each', async () => {
    const at = await stage();
    const order = nestedOrder();
    const ticket = await ticketOf(at, order);
    expect(at.pos.refusals).toEqual([]);
    const [burger] = ticket.lines;
    const said = burger?.modifiers ?? [];
    expect(levelsOf(said), 'levels of a POS that nests, and of one that cannot').toBe(has('nesting') ? 3 : 1);
    expect(new Set(countsOf(said).values()), 'cheddar 2 + 2 + 2 × 3, and two without onions').toEqual(new Set([10, 2]));
    expect({ paid: ticket.paid, total: ticket.total }).toEqual({
      paid: paidOf(order),
      total: has('total') ? paidOf(order) : undefined,
    });
  });

  claim("the member's name, telephone and e-mail", async () => {
    const { guest } = await ticketOf(await stage(), wholeOrder());
    const { name, phone, email } = sampleOrder().member;
    expect(guest).toEqual({
      name: has('name') ? name : undefined,
      phone: has('phone') ? phone : undefined,
      email: has('email') ? email : undefined,
    });
  });

  claim('the whole address of a delivery, and the directions to the door', async () => {
    const ticket = await ticketOf(await stage(), wholeOrder('delivery'));
    if (!has('address')) return expect(ticket.address).toBeUndefined();
    for (const part of ['Lindenstraße 14', '3. OG', '10969', 'Berlin']) expect(ticket.address).toContain(part);
    expect(`${ticket.note} ${ticket.address}`).toContain('Ring twice');
  });

  claim('the requested time, or no time if the order is for as soon as possible', async () => {
    const at = await stage();
    for (const type of FULFILLMENTS) {
      const wanted = new Date(Math.ceil((Date.now() + AHEAD_MS) / 60_000) * 60_000);
      const { fulfillment } = sampleOrder({ type });
      const requestedAt = inBerlin(wanted);
      const later = await ticketOf(at, { fulfillment: { ...fulfillment, requestedAt } });
      const { wantedAt } = later;
      if (!has('wantedAt')) expect(wantedAt).toBeUndefined();
      else expect(wantedAt && new Date(wantedAt).toISOString(), type).toBe(wanted.toISOString());
      expect((await ticketOf(at, { type })).wantedAt, `${type}, as soon as possible`).toBeUndefined();
    }
  });
}

/** What was paid, and for what. */
function moneyClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { stage, ticketOf } = theatre;
  const { unwritable = [] } = theatre.fixtures;
  const has = fieldsOf(theatre);
  const paidOf = paidIn(theatre);

  claim('tip and fee as separate amounts', async () => {
    const at = await stage();
    for (const type of FULFILLMENTS) {
      const { money, ...order } = wholeOrder(type);
      const fee = type === 'pickup' ? 75 : money.fee;
      const total = money.total - money.fee + fee;
      const ticket = await ticketOf(at, { ...order, money: { ...money, fee, total } });
      expect({ tip: ticket.tip, fee: ticket.fee }, type).toEqual({
        tip: has('tip') ? money.tip : undefined,
        fee: has('fee') ? fee : undefined,
      });
    }
  });

  for (const currency of ['EUR', 'JPY', 'KWD']) {
    claim(`exactly the paid amount in ${currency}`, async () => {
      const at = await stage(currency);
      const order = orderOf({ type: 'delivery' });
      order.money.currency = currency;
      if (unwritable.includes(currency)) {
        await expect(at.create(order)).rejects.toBeInstanceOf(GiveUp);
        expect(at.pos.tickets).toEqual([]);
        return;
      }
      await at.create(order);
      expect(at.pos.refusals).toEqual([]);
      expect(at.pos.tickets.map((ticket) => ticket.paid)).toEqual([paidOf(order)]);
      expect(at.pos.tickets.map((ticket) => ticket.total)).toEqual([has('total') ? paidOf(order) : undefined]);
    });

    claim(`discounts in ${currency}, so that the till's total is the paid amount`, async () => {
      const at = await stage(currency);
      const named = [
        { name: 'Club: 5 off', amount: 500 },
        { name: 'Zoë’s “birthday” 🎂', amount: 111 },
      ];
      for (const type of FULFILLMENTS)
        for (const taxOnTop of [true, false])
          for (const discounts of [named, undefined]) {
            const order = discounted(orderOf({ type }), 611, { currency, taxOnTop });
            if (discounts !== undefined) order.discounts = discounts;
            if (unwritable.includes(currency)) {
              await expect(at.create(order)).rejects.toBeInstanceOf(GiveUp);
              continue;
            }
            await expectPaid(at, order);
          }
    });
  }

  claim('a discount that equals the subtotal, and a free order', async () => {
    const at = await stage();
    for (const taxOnTop of [true, false]) {
      const order = orderOf();
      await expectPaid(at, discounted(order, order.money.subtotal, { taxOnTop }));
    }
    const { money, ...free } = orderOf();
    const nothing = { ...money, tax: 0, tip: 0, fee: 0 };
    await expectPaid(at, discounted({ ...free, money: nothing }, money.subtotal, { taxOnTop: true }));
  });

  async function expectPaid(at: Stage<Settings>, order: CanonicalOrder): Promise<void> {
    const { discount, paid, total } = await ticketOf(at, order);
    expect(at.pos.refusals).toEqual([]);
    expect({ discount, paid, total }).toEqual({
      discount: has('discount') ? order.money.discount : undefined,
      paid: paidOf(order),
      total: has('total') ? paidOf(order) : undefined,
    });
  }
}

/** Texts and lists of any size. */
function textClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { stage, ticketOf } = theatre;
  const has = fieldsOf(theatre);

  claim('every script and symbol', async () => {
    const at = await stage();
    const [burger, ...others] = sampleOrder().items;
    const name = '山田 👩‍🍳 Zoë';
    const ticket = await ticketOf(at, {
      member: { id: 'm-1', name, email: 'zoe@example.com', phone: '+493012345678' },
      items: [{ ...(burger as CanonicalOrder['items'][number]), notes: 'ohne 🧅, مع الجبن' }, ...others],
      notes: 'Zum Geburtstag 🎂: "Zoë\\n"',
    });
    expect(at.pos.refusals).toEqual([]);
    expect(ticket.guest.name).toBe(has('name') ? name : undefined);
    expect(ticket.note).toContain('Zum Geburtstag 🎂: "Zoë\\n"');
    expect(ticket.lines[0]?.note ?? ticket.note).toContain('ohne 🧅, مع الجبن');
  });

  claim('a note that is too long with a mark where it is cut', async () => {
    const at = await stage();
    const ticket = await ticketOf(at, { notes: '🎂'.repeat(20_000) });
    expect(at.pos.refusals).toEqual([]);
    expect(ticket.note.isWellFormed()).toBe(true);
    if (ticket.note.length < 40_000) expect(ticket.note).toContain('[…]');
  });

  claim('an order of 300 items', async () => {
    const at = await stage();
    const { items } = sampleOrder();
    const many = Array.from({ length: 100 }, () => items).flat();
    const ticket = await ticketOf(at, { items: many });
    expect(ticket.lines.reduce((sum, line) => sum + line.quantity, 0)).toBe(400);
  });
}

/** Whether tickets of the POS have a field. */
function fieldsOf<Settings>({ fixtures: { lacks = [] } }: Theatre<Settings>): (field: TicketField) => boolean {
  return (field) => !lacks.includes(field);
}

/** What the POS gets as paid. */
function paidIn<Settings>({ fixtures }: Theatre<Settings>): (order: CanonicalOrder) => number | undefined {
  return fixtures.paid ?? ((order) => order.money.total);
}

function discounted(
  order: CanonicalOrder,
  discount: number,
  { currency = 'EUR', taxOnTop }: { currency?: string; taxOnTop: boolean },
): CanonicalOrder {
  const { subtotal, tax, tip, fee } = order.money;
  const total = subtotal - discount + (taxOnTop ? tax : 0) + tip + fee;
  return { ...order, money: { subtotal, discount, tax, tip, fee, total, currency } };
}

/** The sample with a modifier three times, so that a lost quantity shows. */
function wholeOrder(type: 'pickup' | 'delivery' = 'pickup'): CanonicalOrder {
  const order = orderOf({ type });
  const [burger] = order.items;
  const [cheddar] = burger?.modifiers ?? [];
  if (burger === undefined || cheddar === undefined) throw new Error('the sample has no burger with cheddar');
  const added = 2 * burger.quantity * (cheddar.unitPrice ?? 0);
  cheddar.quantity += 2;
  order.money.subtotal += added;
  order.money.total += added;
  return order;
}

/** The sample with nested modifiers. All are modifiers of the sample, which every POS knows. */
function nestedOrder(): CanonicalOrder {
  const order = orderOf();
  const [burger] = order.items;
  const [cheddar, noOnions] = burger?.modifiers ?? [];
  if (burger === undefined || cheddar === undefined || noOnions === undefined)
    throw new Error('the sample has no burger with cheddar and no-onions');
  const inner = { ...cheddar, modifiers: [{ ...cheddar, quantity: 3 }, noOnions] };
  burger.modifiers = [{ ...cheddar, quantity: 2, modifiers: [inner] }];
  const added = burger.quantity * 9 * (cheddar.unitPrice ?? 0);
  order.money.subtotal += added;
  order.money.total += added;
  return order;
}

function levelsOf(modifiers: readonly TicketModifier[]): number {
  return Math.max(0, ...modifiers.map((each) => 1 + levelsOf(each.modifiers ?? [])));
}

function countsOf(modifiers: readonly TicketModifier[], times = 1, counts = new Map<string, number>()) {
  for (const { reference, quantity, modifiers: inner = [] } of modifiers) {
    counts.set(reference, (counts.get(reference) ?? 0) + quantity * times);
    countsOf(inner, quantity * times, counts);
  }
  return counts;
}

/** RFC 3339 with the offset of a winter in Berlin. */
function inBerlin(time: Date): string {
  return new Date(time.getTime() + 3_600_000).toISOString().replace('Z', '+01:00');
}
