import { expect, it } from 'vitest';
import { checkSums, type Sums } from '../../../src/core/domain/check-sums.ts';

/** Two burgers with cheddar, and fries: 33.30, with 19 % on top 6.33; a bag, delivery and a tip. */
const items = [
  { quantity: 2, unitPrice: 1290, modifiers: [{ quantity: 1, unitPrice: 150 }, { quantity: 1 }] },
  { quantity: 1, unitPrice: 450 },
];
const net = { subtotal: 3330, tax: 633, tip: 300, fee: 350, total: 4613, currency: 'EUR' };
const gross = { ...net, tax: 532, total: 3980 };
const fees = [
  { name: 'Bag', amount: 20 },
  { name: 'Delivery', amount: 330 },
];
const taxes = [{ name: 'VAT', amount: 633, rate: 19 }];

it.each<[string, Sums]>([
  ['tax on top', { items, money: net }],
  ['tax on top, as the platform says', { items, money: { ...net, pricesIncludeTax: false }, fees, taxes }],
  ['tax in the prices', { items, money: gross }],
  ['tax in the prices, as the platform says', { items, money: { ...gross, pricesIncludeTax: true }, fees }],
  ['items without prices', { items: [...items, { quantity: 1 }], money: net }],
  ['a discount', { items, money: { ...gross, discount: 3330, total: 650 } }],
  ['nothing to pay', { items: [{ quantity: 1, unitPrice: 0 }], money: { ...gross, subtotal: 0, tax: 0, total: 650 } }],
  [
    'two taxes of one price',
    {
      items,
      money: net,
      taxes: [
        { name: 'GST', amount: 166, rate: 5 },
        { name: 'PST', amount: 467, rate: 14 },
      ],
    },
  ],
  ['a tax on some items only', { items, money: net, taxes: [{ ...taxes[0]!, rate: 27 }] }],
])('checkSums finds nothing in an order with %s', (_what, order) => {
  expect(checkSums(order)).toEqual([]);
});

const added = 'but the items with their modifiers add up to 33.30 EUR';
it.each<[string, Sums, string]>([
  [
    'a subtotal of something else',
    { items, money: { ...gross, subtotal: 3331, total: 3981 } },
    `money.subtotal is 33.31 EUR, ${added}`,
  ],
  [
    'a subtotal after discounts',
    { items, money: { ...gross, subtotal: 3000, discount: 330, total: 3320 } },
    `money.subtotal is 30.00 EUR, ${added}. The difference is the discount: the subtotal must be before discounts`,
  ],
  [
    'a net subtotal of gross prices',
    { items, money: { ...gross, subtotal: 2798, total: 3980 } },
    `money.subtotal is 27.98 EUR, ${added}. The difference is the tax: only the prices include it`,
  ],
  [
    'a gross subtotal of net prices',
    { items, money: { ...net, subtotal: 3963 } },
    `money.subtotal is 39.63 EUR, ${added}. The difference is the tax: only the subtotal includes it`,
  ],
  [
    'prices of whole lines',
    { items, money: { ...gross, subtotal: 1890, total: 2540 } },
    `money.subtotal is 18.90 EUR, ${added}. Is unitPrice the price of the whole line?`,
  ],
  [
    'prices with their modifiers',
    { items, money: { ...gross, subtotal: 3030, total: 3680 } },
    `money.subtotal is 30.30 EUR, ${added}. Does unitPrice include the modifiers?`,
  ],
  [
    'a subtotal in another unit',
    { items, money: { ...gross, subtotal: 333_000, total: 333_650 } },
    `money.subtotal is 3330.00 EUR, ${added}. Is unitPrice or the subtotal in another unit?`,
  ],
  [
    'a tax of another sum',
    { items, money: { ...net, tax: 475, total: 4455 }, taxes: [{ name: 'VAT', amount: 470, rate: 19 }] },
    'money.tax is 4.75 EUR, but taxes add up to 4.70 EUR: VAT (19 %) 4.70',
  ],
  [
    'fees of another sum',
    { items, money: gross, fees: [...fees, { name: 'Service', amount: 100 }] },
    'money.fee is 3.50 EUR, but fees add up to 4.50 EUR: Bag 0.20, Delivery 3.30, Service 1.00',
  ],
  [
    'discounts without a sum',
    { items, money: gross, discounts: [{ name: 'Club', amount: 100 }] },
    'money.discount is 0.00 EUR, but discounts add up to 1.00 EUR: Club 1.00',
  ],
  [
    'a rate that is a fraction',
    { items, money: net, taxes: [{ ...taxes[0]!, rate: 0.19 }] },
    'taxes.0.amount is 6.33 EUR, which is more than 0.19 % of all. Is the rate a percentage?',
  ],
  [
    'a rate in hundredths of a percent',
    { items, money: net, taxes: [{ ...taxes[0]!, rate: 1900 }] },
    'taxes.0.rate is 1900 percent',
  ],
  [
    'prices that do not include the tax as said',
    { items, money: { ...net, pricesIncludeTax: true } },
    'money.total is 46.13 EUR, and subtotal, tip and fee add up to 39.80 EUR, 46.13 EUR with the tax. Is money.pricesIncludeTax right? It is true',
  ],
  [
    'a total without the tip',
    { items, money: { ...gross, total: 3680 } },
    'money.total is 36.80 EUR, and subtotal, tip and fee add up to 39.80 EUR, 45.12 EUR with the tax. The difference is money.tip',
  ],
  [
    'a total without one fee',
    { items, money: { ...gross, tax: 0, total: 3960 }, fees },
    'money.total is 39.60 EUR, and subtotal, tip and fee add up to 39.80 EUR. The difference is the fee Bag',
  ],
  [
    'a discount that was added',
    { items, money: { ...gross, tax: 0, discount: 100, total: 4080 } },
    'money.total is 40.80 EUR, and subtotal less the discount, tip and fee add up to 38.80 EUR. Is a fee missing (money.fee)?',
  ],
  [
    'a missing discount',
    { items, money: { ...gross, tax: 0, total: 2999 } },
    'money.total is 29.99 EUR, and subtotal, tip and fee add up to 39.80 EUR. Is a discount missing (money.discount)?',
  ],
  // 2.90 that was multiplied by 100.
  [
    'a fee in another unit',
    { items, money: { ...gross, tax: 0, fee: 29_000, total: 3920 } },
    'money.total is 39.20 EUR, and subtotal, tip and fee add up to 326.30 EUR. Is money.fee in another unit?',
  ],
])('checkSums names what is off: %s', (_what, order, says) => {
  expect(checkSums(order).map((wrong) => `${wrong.path} ${wrong.says}`)).toEqual([says]);
});

it('checkSums writes amounts with the decimals of the currency', () => {
  const [wrong] = checkSums({ items, money: { ...gross, subtotal: 3331, total: 3981, currency: 'KWD' } });
  expect(wrong?.says).toBe('is 3.331 KWD, but the items with their modifiers add up to 3.330 KWD');
});
