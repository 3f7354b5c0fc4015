import { expect, it } from 'vitest';
import { ticketText } from '../../src/diagnostics/ticket-text.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';

it('a ticket has all that the kitchen sees, in 42 columns', () => {
  const { items, money, fulfillment, ...order } = sampleOrder({ type: 'delivery' });
  const [burger, , beer] = items;
  Object.assign(fulfillment, { requestedAt: '2027-01-31T18:30:00+01:00' });
  const text = ticketText({
    ...order,
    fulfillment,
    items: [burger!, { ...beer!, name: 'Pale Ale of the brewery around the corner 0.33 l', notes: 'cold\nplease' }],
    money: { ...money, subtotal: 3360, discount: 360, tax: 479, fee: 350, total: 3650, pricesIncludeTax: true },
    discounts: [{ name: 'Club', amount: 360 }],
    fees: [
      { name: 'Bag', amount: 20 },
      { name: 'Delivery', amount: 330 },
    ],
    taxes: [{ name: 'VAT', amount: 479, rate: 19 }],
  });
  expect(text).toBe(
    `
(code)                            DELIVERY
Ada Lovelace                 +493012345678
Wanted: 2027-01-31 18:30:00+01:00
------------------------------------------
2 x Classic Burger                   25.80
    + 2 x Extra cheddar               3.00
    + 2 x No onions
    ! One of them well done
1 x Pale Ale of the brewery around    4.80
the corner 0.33 l
    CHECK AGE
    ! cold please
------------------------------------------
! Table by the terrace, if there is one
------------------------------------------
Subtotal                             33.60
Club                                 -3.60
Bag                                   0.20
Delivery                              3.30
Tip                                   3.00
VAT 19 %, included                    4.79
TOTAL                            36.50 EUR
------------------------------------------
Lindenstraße 14, 3. OG
10969 Berlin, DE
Ring twice`.trim(),
  );
});

it('a ticket of a guest who picks up has no empty lines, and no text is wider than the paper', () => {
  const { items, money } = sampleOrder();
  const order = sampleOrder({
    member: { id: 'guest-1', name: 'W'.repeat(90) },
    items: items.slice(1, 2).map((item) => ({ ...item, unitPrice: undefined, name: `${'é'.repeat(40)} with dips` })),
    money: { ...money, tax: 0, tip: 0, currency: 'JPY' },
  });
  const lines = ticketText({ ...order, notes: undefined }).split('\n');
  expect(lines.filter((line) => line.trim() === '')).toEqual([]);
  expect(Math.max(...lines.map((line) => line.length))).toBe(42);
  expect(lines.join('').replaceAll(' ', '')).toContain('W'.repeat(90));
  expect(lines).toContain('Wanted: as soon as possible');
  expect(lines.join('\n')).not.toMatch(/Tax|Tip|undefined/);
});
