/** What `platform init --order` decides by the values of an order. */
import { readFile } from 'node:fs/promises';
import { buildSchema, graphqlSync, type GraphQLSchema } from 'graphql';
import { describe, expect, it } from 'vitest';
import { judgeDraft } from '../../tools/drafts/judge-draft.ts';
import { draftModule, orderFieldsOf, sampleQuery } from '../../src/platform/draft-module.ts';

const textOf = (name: string): Promise<string> => readFile(new URL(`drafts/${name}.graphql`, import.meta.url), 'utf8');
/** The café's schema, without the description that says its unit. */
const cafeText = (await textOf('cafe'))
  .replace('"A whole number of minor units."', '')
  .replace(/^  CHF$/m, '  CHF SEK');
const cafe = buildSchema(cafeText);
const withoutTax = buildSchema(cafeText.replace('totalTax: Money!', ''));
const market = buildSchema((await textOf('market')).replace('taxesIncluded: Boolean!', ''));

/** Two soups at 25.00 with 0.50 of bread each, less 2.38, and 5.95 for the courier. Prices include the tax. */
const paid = {
  id: '7',
  code: 'ABC',
  createdAt: '2026-11-20T10:00:00Z',
  placedAt: '2026-11-20T10:05:00Z',
  state: 'Paid',
  currencyCode: 'EUR',
  customer: { id: '1', firstName: 'Ada', lastName: 'Lovelace', emailAddress: 'ada@example.com', phoneNumber: null },
  shippingAddress: { streetLine1: 'Road 1', country: 'Germany', countryCode: 'DE', phoneNumber: '030 12345678' },
  outlet: { id: '3' },
  lines: [
    {
      quantity: 2,
      unitPrice: 2101,
      unitPriceWithTax: 2500,
      variant: { id: '9', sku: 'soup', name: 'Soup' },
      customFields: { modifiers: [{ sku: 'bread', name: 'Bread', quantity: 1, priceWithTax: 50 }] },
    },
  ],
  discounts: [{ description: 'Friday', amount: -200, amountWithTax: -238 }],
  subTotal: 4086,
  subTotalWithTax: 4862,
  shipping: 500,
  shippingWithTax: 595,
  total: 4586,
  totalWithTax: 5457,
  totalTax: 871,
};

const soups = { ...paid.lines[0], unitPriceWithTax: 250_000, customFields: { modifiers: [] } };
/** Two soups at 2500 yen. Its amounts may be hundredths. */
const yen = {
  ...paid,
  currencyCode: 'JPY',
  lines: [soups],
  discounts: [],
  subTotal: 454_545,
  subTotalWithTax: 500_000,
  shipping: 0,
  shippingWithTax: 0,
  total: 454_545,
  totalWithTax: 500_000,
  totalTax: 45_455,
};
/** A soup at 12.00 and 7.00 for the courier. */
const inWholeEuros = {
  ...paid,
  lines: [{ quantity: 1, unitPrice: 12, unitPriceWithTax: 12, variant: { id: '9', sku: 'soup', name: 'Soup' } }],
  discounts: [],
  subTotal: 12,
  subTotalWithTax: 12,
  shipping: 7,
  shippingWithTax: 7,
  total: 19,
  totalWithTax: 19,
  totalTax: 0,
};

function draftBy(schema: GraphQLSchema, order: object) {
  const [field] = orderFieldsOf(schema);
  const none = new Set<string>();
  const rootValue = { [field.steps[0]?.name ?? '']: { __typename: 'Order', ...order } };
  const source = sampleQuery(schema, field, none);
  const { data, errors } = graphqlSync({ schema, source, variableValues: { id: '7' }, rootValue });
  expect(errors).toBeUndefined();
  return draftModule(schema, { sample: { field, order: data?.[field.steps[0]?.name ?? ''], refused: none } });
}
/** The lines of a draft that begin with names. */
const linesOf = (text: string, ...names: string[]): string[] =>
  names.map(
    (name) =>
      text
        .split('\n')
        .findLast((line) => line.trim().startsWith(`${name}: `))
        ?.trim() ?? 'missing',
  );
/** All amounts of an order times ten thousandths, as another type. */
const withAmounts = (order: object, change: (amount: number) => unknown): object =>
  JSON.parse(JSON.stringify(order), (key, value: unknown) =>
    typeof value === 'number' && key !== 'quantity' ? change(value) : value,
  ) as object;

it('platform init queries at most 25 values outside lists, and leaves out what an order needs least', () => {
  const sdl = `
    scalar Decimal scalar DateTime
    type Query { order(id: ID!): Order }
    type Order {
      id: ID! shop: Shop! customer: Customer! type: Kind! deliveryAddress: Address requestedAt: DateTime notes: String
      placedAt: DateTime! cancelledAt: DateTime currency: String! items: [Item!]! pricesIncludeTax: Boolean! total: Decimal!
      subtotal: Decimal! tax: Decimal! tip: Decimal! deliveryFee: Decimal! discount: Decimal!
    }
    enum Kind { DELIVERY PICKUP } type Shop { id: ID! }
    type Customer { id: ID! firstName: String! lastName: String! email: String! phone: String! }
    type Address { street: String! houseNumber: String! line2: String zip: String! city: String! state: String country: String! }
    type Item { sku: ID! name: String! quantity: Int! unitPrice: Decimal! notes: String }`;
  const schema = buildSchema(sdl);
  const { text } = draftModule(schema);
  expect(judgeDraft(schema, text, { root: 'order', customer: 'customer', rows: [] }).faults).toEqual([]);
  expect(text).not.toMatch(/\bstate\b|pricesIncludeTax/);
  expect(text).toContain('joinStreet(address.street, address.houseNumber)');
});

it('platform init takes no name for more than it says', () => {
  const { text } = draftModule(
    buildSchema(`
      type Query { orders: [Order!] orderById(orderId: ID!): Order! }
      type Order {
        _id: ID! buyerId: ID! foodItems: [FoodItem!]! total: Int! coupon: String shippingNote: String country: String
        deliveryDate: String! orderDate: String! deliveryAddress: String cancellationFee: Int
      }
      type FoodItem { food: Food! quantity: Int! } type Food { _id: ID! name: String! price: Int! }`),
  );
  // A whole number may be 12 or 1200 for 12.00, a day may be that of the courier's arrival, and a coupon is a code.
  expect(linesOf(text, 'total', 'unitPrice', 'requestedAt', 'discount', 'fee', 'notes', 'destination', 'id')).toEqual([
    "total: amount(order.total, 'total'),",
    'unitPrice: amount(item.food.price, `items.${nth}.unitPrice`),',
    expect.stringMatching(/^requestedAt: order\.deliveryDate, \/\/ TODO: does the member choose it\? no offset\?/),
    'discount: 0, // TODO: if there are discounts: coupon?',
    'fee: 0, // TODO: if there are fees',
    'notes: order.shippingNote, // TODO: is it for the kitchen?',
    'destination: null, // TODO: required for a delivery: deliveryAddress?',
    expect.stringMatching(/^id: order\.buyerId, \/\/ TODO/),
  ]);
  expect(text).toMatch(/const amount = .*: number => undefined; \/\/ TODO/);
});

it('platform init takes a sum of taxes for no total, and names a total with tax below a price without it', () => {
  const draft = (money: string) =>
    draftModule(
      buildSchema(`
        type Query { order(id: ID!): Order }
        type Order { id: ID! items: [Item!]! ${money} }
        type Item { id: ID! name: String! quantity: Int! price: String! }
        type Money { centAmount: Int! currencyCode: String! }
        type TaxedPrice { totalNet: Money! totalGross: Money! totalTax: Money }`),
    ).text;
  const included = draft('includedTaxTotal: String! additionalTaxTotal: String! total: String!');
  expect(linesOf(included, 'tax', 'total')).toEqual([
    "tax: decimal(order.includedTaxTotal, 'tax'), // TODO: or additionalTaxTotal?",
    "total: decimal(order.total, 'total'),",
  ]);
  expect(linesOf(draft('totalPrice: Money! taxedPrice: TaxedPrice'), 'tax', 'total')).toEqual([
    "tax: minorUnits(order.taxedPrice?.totalTax?.centAmount ?? 0, 'tax'),",
    "total: minorUnits(order.totalPrice.centAmount, 'total'), // TODO: or taxedPrice.totalGross.centAmount?",
  ]);
});

it('platform init joins a street of several lines, and drafts no address without a street', () => {
  const draft = (address: string) =>
    draftModule(
      buildSchema(`
        type Query { order(id: ID!): Order }
        type Order { id: ID! items: [Item!]! shippingAddress: Address }
        type Item { id: ID! name: String! quantity: Int! price: String! }
        type Part { name: String! }
        type Address { ${address} postcode: String city: String! }`),
    ).text;
  expect(linesOf(draft('street: [String]!'), 'line1', 'postalCode')).toEqual([
    "line1: address.street.join(', '),",
    'postalCode: address.postcode,',
  ]);
  expect(linesOf(draft('street: [String]'), 'line1')).toEqual(["line1: address.street?.join(', ') ?? '',"]);
  expect(linesOf(draft('street: [Part!]!'), 'destination', 'postalCode')).toEqual([
    'destination: null, // TODO: required for a delivery',
    'missing',
  ]);
});

it('platform init reads names in one word, of keys, and of amounts in objects', () => {
  const { text, field, others } = draftModule(
    buildSchema(`
      scalar BigInt
      type Query { orderByRowId(rowId: BigInt!): Order order(nodeId: ID!): Order }
      type Order {
        nodeId: ID! rowId: BigInt! customerInfo: Info! addressByAddressId: Address orderLinesByOrderId(first: Int): Lines!
        promoTotal: String! shipTotal: String! total: Total!
      }
      type Info { firstname: String! lastname: String! } type Lines { nodes: [Line]! }
      type Address { streetname: String! housenumber: String! zipcode: String! city: String! }
      type Line { quantityOrdered: Float! prices: Prices! productByProductId: Product! } type Prices { price: Money! }
      type Product { rowId: BigInt! name: String! } type Money { value: Float currency: String }
      type Total { grandTotal: Money! subtotal: Money! }`),
  );
  expect([field, ...others]).toEqual(['orderByRowId', 'order']);
  expect(text).toMatch(/orderLinesByOrderId\(first: 100\)/);
  expect(text).toMatch(/\/\/ TODO: may an order have more than 100 lines\?\n *items: .*\.filter\(\(item\) => Number/);
  const names = ['serviceOrderId', 'name', 'line1', 'postalCode', 'quantity', 'unitPrice', 'discount', 'fee', 'total'];
  expect(text).toContain('name: joinName(order.customerInfo.firstname, order.customerInfo.lastname),');
  expect(linesOf(text, ...names)).toEqual([
    'serviceOrderId: String(order.rowId),',
    'name: item.productByProductId.name,',
    'line1: joinStreet(address.streetname, address.housenumber),',
    'postalCode: address.zipcode,',
    'quantity: Number(item.quantityOrdered),',
    'unitPrice: decimal(item.prices.price.value, `items.${nth}.unitPrice`),',
    "discount: Math.abs(decimal(order.promoTotal, 'discount')),",
    "fee: decimal(order.shipTotal, 'fee'),",
    "total: decimal(order.total.grandTotal.value, 'total'),",
  ]);
});

it('platform init reads discounts in an object of amounts', () => {
  const { text } = draftModule(
    buildSchema(`
      type Query { order(id: ID!): Order } type Order { id: ID! items: [Item!]! total: Total }
      type Item { id: ID! name: String! quantity: Int! price: String! }
      type Total { discounts: [Discount!] grandTotal: String! } type Discount { label: String! amount: String! }`),
  );
  expect(text).toContain('discounts: (order.total?.discounts ?? []).map((discount) => ({');
});

it('platform init leaves no part of an address out without a TODO, and doubts a note of the delivery', () => {
  const { text } = draftModule(
    buildSchema(`
      type Query { order(id: ID!): Order }
      type Order {
        id: ID! orderItems: [Item!]! deliveryAddress: Address! handover: Handover! orderDateTime: String!
        grossCents: Int! promoDiscount: Float
      }
      type Item { id: ID! itemName: String! quantity: Int! itemPrice: Float! addons: [Addon!]! }
      type Addon { id: ID! addonId: ID! addonName: String! addonPrice: Float! quantity: Int! }
      type Address { street: String! flatNo: String pincode: String! district: String! } type Handover { note: String }`),
  );
  const names = ['line2', 'postalCode', 'city', 'serviceModifierId', 'discount', 'total', 'notes'];
  expect(linesOf(text, ...names)).toEqual([
    'line2: address.flatNo,',
    'postalCode: address.pincode,',
    'city: null, // TODO: if you have it',
    "serviceModifierId: extra.addonId, // TODO: is this the id in the POS's menu?",
    "discount: Math.abs(decimal(order.promoDiscount ?? 0, 'discount')),",
    "total: minorUnits(order.grossCents, 'total'),",
    'notes: order.handover.note, // TODO: is it for the kitchen?',
  ]);
  const ofNote = (name: string) =>
    draftModule(
      buildSchema(`
    type Query { order(id: ID!): Order } type Order { id: ID! items: [Item!]! ${name}: String }
    type Item { id: ID! name: String! quantity: Int! }`),
    ).text;
  for (const name of ['sellerNote', 'cancellationNote', 'shippingNote', 'giftRemark'])
    expect(ofNote(name)).toContain(`notes: order.${name}, // TODO: is it for the kitchen?`);
  for (const name of ['note', 'orderNotes', 'specialInstructions', 'customerComment'])
    expect(ofNote(name)).toContain(`notes: order.${name},\n`);
  expect(text).toContain('unitPrice: decimal(extra.addonPrice, ');
  expect(text).toContain('placedAt: order.orderDateTime,');
});

it('platform init takes an amount without tax for none with it, in all usual words', () => {
  for (const form of ['IncVat', 'InclGst', 'IncludingTax', 'WithVat', 'AfterTax', 'Gross']) {
    const { text } = draftModule(
      buildSchema(`
        type Query { order(id: ID!): Order } type Order { id: ID! items: [Item!]! total: Float! total${form}: Float! }
        type Item { id: ID! name: String! quantity: Int! price: Float! price${form}: Float! }`),
    );
    expect(linesOf(text, 'total', 'unitPrice')).toEqual([
      `total: decimal(order.total${form}, 'total'),`,
      `unitPrice: decimal(item.price${form}, \`items.\${nth}.unitPrice\`),`,
    ]);
  }
});

it('platform init takes no state and no channel for the way of handing over, and no wish for a cancel', () => {
  const { text } = draftModule(
    buildSchema(`
      type Query { order(id: ID!): Order }
      type Order {
        id: ID! items: [Item!]! createdAt: String! stage: Steps! step: OrderStatus! from: Source! status: OrderStatus! total: Float!
      }
      type Item { id: ID! name: String! quantity: Int! price: Float! }
      enum Steps { PLACED READY_FOR_PICKUP DELIVERED } enum Source { ONLINE_STORE POS }
      enum OrderStatus { NEW CANCEL_REQUESTED CANCELLED NOT_CANCELLABLE PICKED_UP DELIVERED }`),
  );
  expect(linesOf(text, 'type')).toEqual([expect.stringMatching(/^type: undefined, \/\/ TODO/)]);
  expect(text).toMatch(
    /TODO: or NOT_CANCELLABLE\? or CANCEL_REQUESTED\? the time of the cancel, if you have it[^]*=== 'CANCELLED' \?/,
  );
});

it('platform init names the fees and discounts that it does not read, and joins a street and its number', () => {
  const { text } = draftModule(
    buildSchema(`
      type Query { order(id: ID!): Order }
      type Order { id: ID! items: [Item!]! deliveryFee: Float platformFee: Float loyaltyDiscount: Float shippingAddress: Address! }
      type Item { id: ID! name: String! quantity: Int! } type Address { street: String! number: String! city: String! }`),
  );
  expect(linesOf(text, 'fee', 'discount', 'line1')).toEqual([
    "fee: decimal(order.deliveryFee ?? 0, 'fee'), // TODO: and platformFee?",
    'discount: 0, // TODO: if there are discounts: loyaltyDiscount?',
    'line1: joinStreet(address.street, address.number),',
  ]);
});

describe('platform init --order', () => {
  it('finds by the sums that amounts are whole minor units, and that the subtotal is after the discount', () => {
    const { text, addsUp } = draftBy(cafe, paid);
    expect(addsUp).toBe(true);
    expect(linesOf(text, 'subtotal', 'fee', 'total', 'pricesIncludeTax')).toEqual([
      "subtotal: minorUnits(order.subTotalWithTax, 'subtotal') + reduction, // TODO: without discounts of the fee",
      "fee: minorUnits(order.shippingWithTax, 'fee'), // TODO: and surcharges?",
      "total: minorUnits(order.totalWithTax, 'total'),",
      'pricesIncludeTax: true,',
    ]);
    expect(text).toContain(
      "// TODO: true only if all your shops' prices include the tax; otherwise unitPrice, subTotal, shipping without it\n",
    );
    expect(text).toMatch(
      /^ *discounts: order\.discounts\.map\(\(discount\) => \(\{ \/\/ TODO: without discounts of the fee$/m,
    );
    expect(text).toContain('order.lines.filter((item) => item.quantity !== 0).map((item, nth) => ({');
    expect(text).toContain('const reduction = order.discounts.reduce(');
    expect(text).toMatch(/TODO: .*fromHundredths/);
    expect(text).not.toMatch(/Ada|Lovelace|12345678|Road 1|5457|54\.57/);
  });

  it('says how a tax is rounded that is a difference', () => {
    const { text } = draftBy(withoutTax, paid);
    const tax = '(Number(order.totalWithTax) - Number(order.total)) / 100';
    expect(text).toContain(`// TODO: fractions of a yen? roundTogether([${tax}], currency).sum\n`);
    expect(linesOf(text, 'tax')).toEqual([
      "tax: minorUnits(order.totalWithTax, 'total') - minorUnits(order.total, 'totalNet'),",
    ]);
  });

  it('finds that amounts with a point are decimals', () => {
    const { text } = draftBy(
      cafe,
      withAmounts(paid, (amount) => (amount / 100).toFixed(2)),
    );
    expect(linesOf(text, 'total')).toEqual(["total: decimal(order.totalWithTax, 'total'),"]);
    expect(text).not.toContain('minorUnits(');
  });

  it.each<[string, object]>([
    ['all amounts are round', withAmounts(paid, (amount) => amount * 100)],
    ['all prices in yen are round, and the tax is not', yen],
    ['the currency has thousandths', { ...paid, currencyCode: 'KWD' }],
    ['no amounts add up', { ...paid, totalWithTax: 9999, total: 9998 }],
    ['the currency has no decimals', { ...paid, currencyCode: 'JPY' }],
    ['they are prices in whole kronor', { ...paid, currencyCode: 'SEK' }],
    ['they are small whole numbers', inWholeEuros],
  ])('leaves the unit open if %s, in a way that does not type-check', (_, order) => {
    const { text } = draftBy(cafe, order);
    expect(text).toMatch(/TODO: 12\.90: toMinorUnits.*\n {2}const amount = .*: number => undefined; \/\/ TODO/m);
    expect(linesOf(text, 'total')).toEqual(["total: amount(order.totalWithTax, 'total'),"]);
  });

  it('leaves the unit open if the schema says decimals, and the values are whole minor units', () => {
    const decimals = buildSchema(cafeText.replace('scalar Money', '').replaceAll(/\bMoney\b/g, 'Float'));
    expect(draftBy(decimals, paid).text).toMatch(/const amount = .*: number => undefined; \/\/ TODO/);
    const inEuros = withAmounts(paid, (amount) => amount / 100);
    expect(linesOf(draftBy(decimals, inEuros).text, 'total')).toEqual(["total: decimal(order.totalWithTax, 'total'),"]);
  });

  it('says that no amounts add up, and leaves their candidates open', () => {
    const none = { shopMoney: { amount: '0' }, presentmentMoney: { amount: '0' } };
    const order = { id: '7', createdAt: 'x', processedAt: 'x', lineItems: { nodes: [] }, retailer: { id: '1' } };
    const money = (amount: string) => ({ shopMoney: { amount }, presentmentMoney: { amount } });
    const odd = {
      currentTotalPriceSet: none,
      totalPriceSet: money('9.00'),
      totalShippingPriceSet: money('1.00'),
      totalTaxSet: money('0.50'),
    };
    const { text, addsUp } = draftBy(market, { ...order, currencyCode: 'EUR', presentmentCurrencyCode: 'EUR', ...odd });
    expect(addsUp).toBe(false);
    expect(linesOf(text, 'subtotal')[0]).toContain('TODO: before discounts?');
  });

  it('says which amounts other shops need, also if only those without the tax add up', () => {
    const [line] = paid.lines;
    const lines = [{ ...line, quantity: 3, unitPrice: 333, unitPriceWithTax: 396, customFields: { modifiers: [] } }];
    const sums = { subTotal: 999, subTotalWithTax: 1189, totalTax: 285, total: 1499, totalWithTax: 1784 };
    const { text, addsUp } = draftBy(cafe, { ...paid, ...sums, lines, discounts: [] });
    expect(addsUp).toBe(true);
    expect(linesOf(text, 'pricesIncludeTax')).toEqual(['pricesIncludeTax: false,']);
    expect(text).toContain(
      "// TODO: false only if none of your shops' prices include the tax; otherwise unitPrice, subTotal, shipping with it\n",
    );
  });

  it('finds that prices exclude the tax', () => {
    const money = (amount: string) => ({ shopMoney: { amount }, presentmentMoney: { amount } });
    const item = { quantity: 3, sku: 'soup', title: 'Soup', originalUnitPriceSet: money('4.00') };
    const { text } = draftBy(market, {
      id: '7',
      createdAt: '2026-11-20T10:00:00Z',
      processedAt: '2026-11-20T10:00:00Z',
      currencyCode: 'USD',
      presentmentCurrencyCode: 'USD',
      retailer: { id: '1' },
      lineItems: { nodes: [item] },
      subtotalPriceSet: money('11.00'),
      totalDiscountsSet: money('1.00'),
      totalShippingPriceSet: money('2.50'),
      totalTaxSet: money('0.91'),
      totalPriceSet: money('14.41'),
    });
    expect(linesOf(text, 'pricesIncludeTax', 'total')).toEqual([
      'pricesIncludeTax: false,',
      "total: decimal(order.totalPriceSet.shopMoney.amount, 'total'),",
    ]);
    expect(linesOf(text, 'subtotal')[0]).toMatch(/subtotalPriceSet.* \+ .*totalDiscountsSet.*/);
    // Both times are the same, so the values do not say which one is meant.
    expect(linesOf(text, 'placedAt')).toEqual(['placedAt: order.processedAt, // TODO: or createdAt?']);
  });

  it.each([
    ['free items', [{ ...paid.lines[0], unitPrice: 0, unitPriceWithTax: 0, customFields: { modifiers: [] } }]],
    ['no items', []],
  ])('decides nothing by the amounts of an order with %s', (_, lines) => {
    const none = {
      subTotal: 0,
      subTotalWithTax: 0,
      shipping: 0,
      shippingWithTax: 0,
      totalWithTax: 0,
      total: 0,
      totalTax: 0,
    };
    const { text, addsUp } = draftBy(cafe, { ...paid, ...none, lines, discounts: [] });
    expect(addsUp).toBe(undefined);
    expect(linesOf(text, 'total')).toEqual(["total: amount(order.totalWithTax, 'total'),"]);
  });

  it('takes the higher one of two totals that differ by the tax', () => {
    const schema = buildSchema(`
      type Query { order(id: ID!): Order }
      type Order { id: ID! items: [Item!]! totalPrice: Int! taxedPrice: Taxed }
      type Taxed { totalGross: Int! totalTax: Int! } type Item { id: ID! name: String! quantity: Int! price: Int! }`);
    const items = [{ id: '1', name: 'Soup', quantity: 2, price: 1299 }];
    const { text } = draftBy(schema, {
      id: '7',
      items,
      totalPrice: 2598,
      taxedPrice: { totalGross: 2829, totalTax: 231 },
    });
    expect(linesOf(text, 'total', 'pricesIncludeTax')).toEqual([
      "total: amount(order.taxedPrice?.totalGross, 'total'), // TODO: or totalPrice?",
      'pricesIncludeTax: false,',
    ]);
  });

  it('prefers a candidate with a value, and keeps the other as a TODO', () => {
    const { text } = draftBy(cafe, paid);
    expect(linesOf(text, 'phone', 'country', 'placedAt')).toEqual([
      'phone: order.shippingAddress?.phoneNumber, // TODO: or customer.phoneNumber?',
      'country: address.countryCode,',
      "placedAt: order.placedAt ?? '',",
    ]);
  });
});
