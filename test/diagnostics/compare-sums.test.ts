import { expect, it } from 'vitest';
import { compareSums } from '../../src/diagnostics/check-order.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';

const { items, money } = sampleOrder({ type: 'delivery' });
const { tax } = money;
const unpriced = items.map(({ unitPrice: _none, ...item }) => item);

it.each([
  ['tax on top', items, money],
  ['tax in the prices', items, { ...money, total: money.total - tax }],
  [
    'tax in the prices and not in the subtotal',
    items,
    { ...money, subtotal: money.subtotal - tax, total: money.total - tax },
  ],
  ['tax in the subtotal and not in the prices', items, { ...money, subtotal: money.subtotal + tax }],
  ['items without prices', unpriced, money],
])('compareSums reports nothing for an order with %s', (_what, items, money) => {
  expect(compareSums(sampleOrder({ items, money }))).toEqual([]);
});

it('compareSums reports each sum that does not add up, with the decimals of the currency', () => {
  const odd = { ...money, subtotal: 3000, currency: 'KWD' };
  expect(compareSums(sampleOrder({ items, money: odd }))).toEqual([
    { path: 'money.subtotal', says: 'is 3.000 KWD, but the items with their modifiers add up to 3.810 KWD' },
    {
      path: 'money.total',
      says: 'is 5.184 KWD, and subtotal, tip and fee add up to 3.650 KWD, 4.374 KWD with the tax. It may include a fee that has no field',
    },
  ]);
  const discounted = { ...money, subtotal: 3810, tax: 0, tip: 0, fee: 0, total: 3000 };
  expect(compareSums(sampleOrder({ items, money: { ...discounted, discount: 810 } }))).toEqual([]);
  expect(compareSums(sampleOrder({ items, money: { ...discounted, discount: 800 } }))).toMatchObject([
    {
      says: 'is 30.00 EUR, and subtotal less the discount, tip and fee add up to 30.10 EUR. Is a discount missing (money.discount)?',
    },
  ]);
  expect(compareSums(sampleOrder({ items, money: discounted }))).toEqual([
    {
      path: 'money.total',
      says: 'is 30.00 EUR, and subtotal, tip and fee add up to 38.10 EUR. Is a discount missing (money.discount)?',
    },
  ]);
  // A fee of 2.90 that was multiplied by 100.
  const swollen = { ...discounted, total: 4100, fee: 29_000 };
  expect(compareSums(sampleOrder({ items, money: swollen }))).toMatchObject([
    { says: expect.stringMatching(/ add up to 328\.10 EUR\. Is money\.fee in another unit\?$/) },
  ]);
});
