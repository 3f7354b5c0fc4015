/** `platform check` doubts every implausible order, and no plausible one. */
import { afterAll, describe, expect, it } from 'vitest';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import type { OrderInput } from '../../src/core/domain/order-module.ts';
import { readCanonicalOrder } from '../../src/core/domain/read-canonical-order.ts';
import { doubtsOf, doubtTotals } from '../../src/diagnostics/doubt-order.ts';
import { SEED } from '../../world/inputs/seed.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { goodOrders } from './good-orders.ts';

const NOW = new Date('2027-01-31T18:00:00Z');
const GOOD = 1_000;
const EACH = 10;

const FALSE = 'false warnings';
/** What was measured, by kind. */
const figures = new Map<string, number>();
afterAll(() => {
  const { [FALSE]: wrong, ...noticed } = Object.fromEntries(figures);
  const counts = Object.values(noticed);
  const sum = counts.reduce((all, count) => all + count, 0);
  console.log(
    `${sum} of ${counts.length} kinds × ${EACH} implausible orders are doubted, ${wrong} of ${GOOD} good ones`,
  );
});

const good = goodOrders(GOOD, SEED, NOW);
const read = (order: OrderInput) => readCanonicalOrder(order, { serviceOrderId: order.serviceOrderId });
/** What is said of an order, with what was left out of it. */
const saidOf = (input: OrderInput): string[] => {
  const { order, leftOut } = read(input);
  return [...doubtsOf(order, NOW), ...leftOut.map(({ path, code }) => ({ path, says: code }))].map(
    ({ path, says }) => `${path} ${says}`,
  );
};

describe(`${GOOD} plausible orders`, () => {
  it('are not doubted', () => {
    const doubted = good.map((order) => [order.serviceOrderId, order.money.currency, ...saidOf(order)]);
    const wrong = doubted.filter((said) => said.length > 2);
    figures.set(FALSE, wrong.length);
    expect(wrong).toEqual([]);
  });

  it('are not doubted in the company of others', () => {
    const byCurrency = Map.groupBy(good, ({ money }) => money.currency);
    const groups = [...byCurrency.values()].flatMap((orders) =>
      Array.from({ length: Math.floor(orders.length / 5) }, (_, nth) => orders.slice(nth * 5, nth * 5 + 5)),
    );
    expect(groups.length).toBeGreaterThan(150);
    const all = groups.map((orders) => doubtTotals(orders.map((each) => read(each).order)));
    expect(all.flat(2)).toEqual([]);
  });

  it('are of many kinds', () => {
    const orders = good.map((each) => read(each).order);
    const count = (is: (order: CanonicalOrder) => boolean): number => orders.filter(is).length;
    expect(new Set(orders.map(({ money }) => money.currency)).size).toBe(13);
    for (const is of [
      ({ money }) => money.discount === money.subtotal,
      ({ money }) => money.pricesIncludeTax === true && money.tax > 0,
      ({ member }) => member.phone === undefined,
      ({ items }) => items.length > 30,
      ({ items }) => items.every(({ unitPrice = 0 }) => unitPrice % 100 === 0),
      ({ fees }) => fees?.length === 2,
      ({ taxes }) => taxes?.length === 2,
      ({ fulfillment: { requestedAt } }) => requestedAt !== undefined,
      ({ items }) => new Set(items.map(({ serviceItemId }) => serviceItemId)).size < items.length,
    ] satisfies ((order: CanonicalOrder) => boolean)[]) {
      expect(count(is)).toBeGreaterThan(15);
    }
  });
});

type Fields = Record<string, unknown>;
const atTime = (offsetMs: number): string => new Date(NOW.getTime() + offsetMs).toISOString();
const DAY_MS = 86_400_000;

/** Multiplies all amounts. */
function times(value: unknown, factor: number, key = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => times(each, factor, key));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, times(each, factor, name)]));
  }
  return typeof value === 'number' && !['quantity', 'rate'].includes(key) ? value * factor : value;
}
const withMoney = (order: OrderInput, money: Partial<OrderInput['money']>): OrderInput => ({
  ...order,
  money: { ...order.money, ...money },
});
const withFirst = (order: OrderInput, change: (item: OrderInput['items'][number]) => Fields): OrderInput => ({
  ...order,
  items: order.items.map((item, nth) => (nth === 0 ? { ...item, ...change(item) } : item)),
});
const to = (order: OrderInput, destination: Fields): OrderInput => ({
  ...order,
  fulfillment: { ...order.fulfillment, type: 'delivery', destination: { line1: 'Road 1', ...destination } },
});
const member = (order: OrderInput, change: Fields): OrderInput => ({
  ...order,
  member: { ...order.member, ...change },
});
const nthOf = <Value>(values: readonly Value[], nth: number): Value => values[nth % values.length] as Value;
const UUID = '0b51c0f4-1c8e-4b1f-9b1e-3f4a5c6d7e8f';
/** Currencies whose level is known: see `PER_EURO`. */
const isKnown = ({ money }: OrderInput): boolean => money.currency !== 'TRY';

/** Dishes whose prices are written without decimals. */
const WHOLE: [currency: string, price: number][] = [
  ['EUR', 12],
  ['USD', 9],
  ['CHF', 18],
  ['CZK', 229],
  ['SEK', 149],
  ['INR', 450],
  ['HUF', 2490],
  ['JPY', 20],
  ['KRW', 210],
  ['KWD', 35],
];

/** Each kind makes an implausible order of a good one, or undefined if it cannot. The text is what is said of it. */
const KINDS: [kind: string, makes: (order: OrderInput, nth: number) => OrderInput | undefined, says: RegExp][] = [
  ['a wrong subtotal', (order) => withMoney(order, { subtotal: order.money.subtotal + 1 }), /^money\.subtotal is/],
  ['a wrong total', (order, nth) => withMoney(order, { total: order.money.total + 1 + nth }), /^money\.total is/],
  [
    'a tip that is not in the total',
    (order) => ((order.money.tip ?? 0) > 0 ? withMoney(order, { tip: order.money.tip * 2 }) : undefined),
    /^money\.total is/,
  ],
  [
    'a discount that was not subtracted',
    ({ money, ...order }) =>
      money.discount ? { ...order, money: { ...money, total: money.total + money.discount } } : undefined,
    /^money\.total is/,
  ],
  [
    'net prices, and a gross subtotal',
    ({ money, ...order }) =>
      money.tax! > 0 && !money.discount
        ? { ...order, money: { ...money, subtotal: money.subtotal + money.tax! } }
        : undefined,
    /^money\.subtotal is .* only the subtotal includes it$/,
  ],
  [
    'gross prices, and a net subtotal',
    ({ money, ...order }) =>
      money.tax! > 0 && money.subtotal > money.tax! && !money.discount
        ? { ...order, money: { ...money, subtotal: money.subtotal - money.tax! } }
        : undefined,
    /^money\.subtotal is .* only the prices include it$/,
  ],
  [
    'the tax said to be in the prices, or not',
    ({ money, ...order }) =>
      money.tax! > 0 && money.pricesIncludeTax !== undefined
        ? { ...order, money: { ...money, pricesIncludeTax: !money.pricesIncludeTax } }
        : undefined,
    /^money\.total is .* Is money\.pricesIncludeTax right\?/,
  ],
  [
    'a rate that is a fraction',
    (order) =>
      (order.taxes?.[0]?.amount ?? 0) > 50 + order.items.length && order.taxes?.[0]?.rate
        ? { ...order, taxes: order.taxes.map((tax) => ({ ...tax, rate: (tax.rate ?? 0) / 100 })) }
        : undefined,
    /^taxes\.0\.amount is .* Is the rate a percentage\?$/,
  ],
  [
    'amounts that are a hundred times too high',
    (order) => (isKnown(order) ? (times(order, 100) as OrderInput) : undefined),
    /^money has only prices that end in 00/,
  ],
  [
    'whole prices that are a hundred times too low',
    ({ items: [first], discounts: _discounts, fees: _fees, taxes: _taxes, ...order }, nth) => {
      const [currency, price] = nthOf(WHOLE, nth);
      const items = [{ ...first!, quantity: 1, unitPrice: price, modifiers: [] }];
      return { ...order, items, money: { subtotal: price, tax: 0, tip: 0, fee: 0, total: price, currency } };
    },
    /^money has no item above .* a hundred times too low/,
  ],
  [
    'yen in hundredths',
    (order) => (order.money.currency === 'JPY' ? (times(order, 100) as OrderInput) : undefined),
    /^money has only .* fromHundredths/,
  ],
  [
    'yen in hundredths, whose tax and discount have fractions of a yen',
    (order) => {
      if (order.money.currency !== 'JPY') return undefined;
      const { money, taxes: _none, discounts: _neither, ...hundredths } = times(order, 100) as OrderInput;
      const less = money.discount ? { discount: money.discount - 25, total: money.total + 25 } : {};
      return { ...hundredths, money: { ...money, ...less, tax: money.tax! + 71, pricesIncludeTax: true } };
    },
    /^money has only .* fromHundredths/,
  ],
  [
    'amounts that are a hundred times too high, but for the tax',
    (order) => {
      const { taxes: _none, ...high } = times(order, 100) as OrderInput;
      return isKnown(order) ? withMoney(high, { tax: high.money.tax! + 29, total: high.money.total }) : undefined;
    },
    /^money has only prices that end in 00/,
  ],
  [
    'a time in the future',
    (order, nth) => ({ ...order, placedAt: atTime((nth + 1) * 900_000) }),
    /^placedAt is in the future/,
  ],
  [
    'a time years ago',
    (order, nth) => ({ ...order, placedAt: atTime(-(nth + 3) * 366 * DAY_MS) }),
    /^placedAt is \d+ years ago$/,
  ],
  [
    'a wanted time before the order',
    (order, nth) => ({
      ...order,
      fulfillment: {
        ...order.fulfillment,
        requestedAt: new Date(Date.parse(order.placedAt) - (nth + 3) * 3_600_000).toISOString(),
      },
    }),
    /^fulfillment\.requestedAt is hours before/,
  ],
  [
    'a wanted time after years',
    (order, nth) => ({
      ...order,
      fulfillment: { ...order.fulfillment, requestedAt: atTime((nth + 2) * 366 * DAY_MS) },
    }),
    /^fulfillment\.requestedAt is more than a year/,
  ],
  [
    'a country that is no code',
    (order, nth) =>
      to(order, { country: nthOf(['Germany', 'DEU', 'UK', 'XX', 'EN', 'ZZ', '49', 'Deutschland', 'EU', 'AA'], nth) }),
    /^fulfillment\.destination\.country (is .*, which is no country|address_unusable)$/,
  ],
  [
    'a phone that cannot be called',
    (order, nth) =>
      member(order, {
        phone: nthOf(
          [
            '+49123',
            '+10000000000',
            'by the door',
            '+999123456789',
            '+4930',
            '0000000',
            '+493000000000',
            '12',
            '+1555',
            'n/a',
          ],
          nth,
        ),
      }),
    /^member\.phone (is a number that no country has|phone_unusable)$/,
  ],
  [
    'an item with a name like an id',
    (order, nth) =>
      withFirst(order, () => ({
        name: nthOf(
          [
            UUID,
            'SKU-00123',
            'gid://shop/Variant/7',
            'prod_01H8XGJWBWBAQ4',
            '507f1f77bcf86cd799439011',
            '90412',
            'undefined',
            '[object Object]',
            'PIZ_MARG_030',
            'NaN',
          ],
          nth,
        ),
      })),
    /^items have a name like an id/,
  ],
  [
    'an item whose name is its id',
    (order, nth) => {
      const id = nthOf([`burger-${nth}`, `${1001 + nth}`], nth);
      return withFirst(order, () => ({ serviceItemId: id, name: id }));
    },
    /^items have a name like an id/,
  ],
  [
    'a modifier with a name like an id',
    (order) =>
      withFirst(order, ({ modifiers }) => ({
        modifiers: [...(modifiers ?? []), { serviceModifierId: 'm', name: UUID, quantity: 1 }],
      })),
    /^items have a name like an id/,
  ],
  ['a member with a name like an id', (order) => member(order, { name: UUID }), /^member\.name is like an id$/],
  [
    'a line that comes twice',
    ({ items, money, ...order }) => {
      const all = [...items, ...items.slice(0, 1)];
      return { ...order, items: all, money };
    },
    /^items\.\d+ equals items\.0\./,
  ],
  [
    'a variant with the id of its product',
    (order) => ({ ...order, items: [...order.items, { ...order.items[0]!, name: 'Large one' }] }),
    /^items\.\d+ has the serviceItemId of items\.0, but another name/,
  ],
  ['no prices', (order) => withFirst(order, () => ({ unitPrice: null })), /^items have no unitPrice: 1 of/],
];

describe(`${EACH} orders of each implausible kind`, () => {
  it.each(KINDS)('are doubted: %s', (kind, makes, says) => {
    const odd = good.flatMap((order, nth) => makes(order, nth) ?? []).slice(0, EACH);
    expect(odd).toHaveLength(EACH);
    const noticed = odd.filter((order) => saidOf(order).some((said) => says.test(said)));
    figures.set(kind, noticed.length);
    expect(odd.filter((order) => !noticed.includes(order)).map((order) => [order, saidOf(order)])).toEqual([]);
  });

  it('are doubted: a total a hundred times the median of the others', () => {
    const lira = good.filter(({ money }) => money.currency === 'TRY' && money.total > 0 && !money.discount);
    const noticed = lira.slice(0, EACH).filter((order, nth) => {
      const others = lira.filter((each) => each !== order).slice(nth, nth + 6);
      const orders = [times(order, 100) as OrderInput, ...others].map((each) => read(each).order);
      const [first, ...rest] = doubtTotals(orders);
      expect(rest.flat()).toEqual([]);
      return first?.some(({ path, says }) => path === 'money.total' && says.includes('times the median'));
    });
    figures.set('a total a hundred times the median of the others', noticed.length);
    expect(noticed).toHaveLength(EACH);
  });
});

it.each(
  [
    '1664',
    '4711',
    '7UP',
    '42',
    'B12',
    'H2O',
    'BBQ-100',
    'COKE-330',
    'BURGER-2024',
    'XL_500',
    'menu_del_dia_1',
    'ROOM-1204',
  ].concat('Pizza 4 Stagioni', 'anna_schmidt92'),
)('%s is a name, also if it is its own id', (name) => {
  const [order] = good as [OrderInput];
  const named = member({ ...order, items: [{ ...order.items[0]!, name }] }, { name });
  const own = withFirst(named, () => ({ serviceItemId: name }));
  const isDoubted = (each: OrderInput) => saidOf(each).filter((said) => said.includes('like an id'));
  expect(isDoubted(named)).toEqual([]);
  if (!/[-_]|^\d{4}$/.test(name)) expect(isDoubted(own)).toEqual([]);
});

it('two equal lines are not doubted if the sums contain both', () => {
  const order = good.find(({ items: [first], money }) => first!.unitPrice! > 0 && !money.discount && !money.tax)!;
  const first = { ...order.items[0]!, modifiers: [] };
  const cost = first.unitPrice! * first.quantity * 2;
  const { discounts: _discounts, fees: _fees, taxes: _taxes, ...rest } = order;
  const money = { subtotal: cost, tax: 0, tip: 0, fee: 0, total: cost, currency: order.money.currency };
  expect(saidOf({ ...rest, items: [first, first], money })).toEqual([]);
  const once = { ...money, subtotal: cost / 2, total: cost / 2 };
  expect(saidOf({ ...rest, items: [first, first], money: once })).toContainEqual(
    expect.stringMatching(/^items\.1 equals/),
  );
});

it('a sample order is not doubted', () => {
  for (const type of ['pickup', 'delivery'] as const) expect(doubtsOf(sampleOrder({ type }), new Date())).toEqual([]);
});
