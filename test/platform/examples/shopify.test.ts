/** The example mapper for Shopify, with answers that we wrote. No shop has sent them. */
import { describe, expect, it } from 'vitest';
import {
  cancelled,
  errorCode,
  headers,
  toCanonicalOrder,
  type Answer,
  type Order,
} from '../../../examples/platforms/shopify/map-order.ts';
import { mapOrder } from '../../../src/core/placements/ask-mapper.ts';
import { loadOrderModule } from '../../../src/platform/load-order-module.ts';
import { readExample, PLATFORMS } from './read-example.ts';

const ID = 'gid://shopify/Order/4711';
const bag = (amount: string) => ({ shopMoney: { amount } });
type Line = Order['lineItems']['nodes'][number];
const line = (
  sku: string | null,
  name: string,
  currentQuantity: number,
  price: string,
  rest: Partial<Line> = {},
): Line => ({
  sku,
  name,
  currentQuantity,
  requiresShipping: true,
  originalUnitPriceSet: bag(price),
  customAttributes: [],
  lineItemGroup: null,
  ...rest,
});
type Work = Order['fulfillmentOrders']['nodes'][number];
type Method = NonNullable<Work['deliveryMethod']>;
const work = (methodType: Method['methodType'], rest: Partial<Work> = {}): Work => ({
  status: 'OPEN',
  assignedLocation: { location: { id: 'gid://shopify/Location/101' } },
  deliveryMethod: { methodType, additionalInformation: null },
  ...rest,
});
const linesOf = (...nodes: Line[]): Order['lineItems'] => ({ pageInfo: { hasNextPage: false }, nodes });

/** A pickup of two burgers, with the tax in the prices. */
const pickup: Order = {
  id: ID,
  name: '#1001',
  processedAt: '2026-11-21T17:30:00Z',
  cancelledAt: null,
  cancelReason: null,
  displayFinancialStatus: 'PAID',
  currencyCode: 'GBP',
  taxesIncluded: true,
  note: null,
  discountCodes: [],
  email: 'ada@example.com',
  phone: '+442071234567',
  customAttributes: [],
  customer: { id: 'gid://shopify/Customer/7', firstName: 'Ada', lastName: 'Lovelace', defaultPhoneNumber: null },
  billingAddress: { name: 'A. Lovelace' },
  shippingAddress: null,
  shippingLine: { title: 'Collect in Soho' },
  fulfillmentOrders: { nodes: [work('PICK_UP')] },
  lineItems: linesOf(line('burger', 'Burger - Large', 2, '12.90')),
  currentTaxLines: [{ title: 'VAT', ratePercentage: 20, priceSet: bag('4.30') }],
  currentSubtotalPriceSet: bag('25.80'),
  currentShippingPriceSet: bag('0.0'),
  currentTotalTaxSet: bag('4.30'),
  currentTotalPriceSet: bag('25.80'),
  totalTipReceivedSet: bag('0.0'),
};
const address: NonNullable<Order['shippingAddress']> = {
  name: 'Grace Hopper',
  address1: '12 Frith Street',
  address2: 'Flat 3',
  city: 'London',
  zip: 'W1D 4RQ',
  provinceCode: 'ENG',
  countryCodeV2: 'GB',
  latitude: 51.514,
  longitude: -0.131,
  phone: null,
};
const info: Method = {
  methodType: 'LOCAL',
  additionalInformation: { instructions: 'Ring twice', phone: '+442079876543' },
};
/** A delivery with a bag, a service fee, a tip, and the tax on top. */
const delivery: Partial<Order> = {
  taxesIncluded: false,
  shippingAddress: address,
  shippingLine: { title: 'Bike' },
  phone: null,
  fulfillmentOrders: { nodes: [work('LOCAL', { deliveryMethod: info }), work('NONE')] },
  lineItems: linesOf(
    line('burger', 'Burger', 1, '10.00'),
    line('bag-fee', 'Bag', 1, '0.20', { requiresShipping: false }),
    line('service-fee', 'Service', 1, '1.50', { requiresShipping: false }),
    line(null, 'Tip', 1, '2.00', { requiresShipping: false }),
  ),
  currentTaxLines: [
    { title: 'State', ratePercentage: 6, priceSet: bag('0.60') },
    { title: 'City', ratePercentage: 1.25, priceSet: bag('0.13') },
  ],
  currentSubtotalPriceSet: bag('11.70'),
  currentShippingPriceSet: bag('3.50'),
  currentTotalTaxSet: bag('0.73'),
  currentTotalPriceSet: bag('17.93'),
  totalTipReceivedSet: bag('2.00'),
};

const answer = (change: Partial<Order> = {}): Answer => ({
  shop: { ianaTimezone: 'Europe/London' },
  order: { ...pickup, ...change },
});
const map = (change?: Partial<Order>): ReturnType<typeof toCanonicalOrder> => toCanonicalOrder(answer(change));
const read = (change?: Partial<Order>): ReturnType<typeof readExample> => readExample(map(change), ID);

/** What the service reads, which asks for the cancel first. */
const mapped = (change: Partial<Order>): unknown => mapOrder({ cancelled, toCanonicalOrder }, answer(change), ID);

describe('an order of Shopify', () => {
  it('for pickup has its kitchen, its dishes and prices with the tax', () => {
    expect(read()).toMatchObject({
      locationId: 'soho',
      member: { id: 'gid://shopify/Customer/7', name: 'Ada Lovelace', phone: '+442071234567' },
      fulfillment: { type: 'pickup' },
      items: [{ serviceItemId: 'burger', name: 'Burger - Large', quantity: 2, unitPrice: 1290 }],
      money: { subtotal: 2580, tax: 430, tip: 0, fee: 0, total: 2580, currency: 'GBP', pricesIncludeTax: true },
      taxes: [{ name: 'VAT', amount: 430, rate: 20 }],
      placedAt: '2026-11-21T17:30:00Z',
    });
    expect(read().fulfillment.destination).toBeUndefined();
  });

  it('for delivery has the address, each fee by its name, the tip and the taxes on top', () => {
    const order = read(delivery);
    expect(order.fulfillment.destination).toEqual({
      line1: '12 Frith Street',
      line2: 'Flat 3',
      city: 'London',
      postalCode: 'W1D 4RQ',
      region: 'ENG',
      country: 'GB',
      latitude: 51.514,
      longitude: -0.131,
      instructions: 'Ring twice',
    });
    expect(order.member.phone).toBe('+442079876543');
    expect(order.items.map(({ name }) => name)).toEqual(['Burger']);
    expect(order.fees).toEqual([
      { name: 'Bag', amount: 20 },
      { name: 'Service', amount: 150 },
      { name: 'Bike', amount: 350 },
    ]);
    expect(order.money).toMatchObject({ subtotal: 1000, tax: 73, tip: 200, fee: 520, total: 1793 });
    expect(order.taxes).toHaveLength(2);
  });

  it('of a guest without a telephone number has an id of its own', () => {
    const { member } = read({ customer: null, phone: null, email: null });
    expect(member).toEqual({ id: ID, name: 'A. Lovelace' });
    expect(read({ customer: null, billingAddress: null }).member.name).toBe('#1001');
  });

  it('has the discount by its code, before which the prices are', () => {
    const order = read({
      discountCodes: ['FRIDAY'],
      currentSubtotalPriceSet: bag('20.64'),
      currentTotalPriceSet: bag('20.64'),
      currentTaxLines: [],
      currentTotalTaxSet: bag('3.44'),
    });
    expect(order.money).toMatchObject({ subtotal: 2580, discount: 516, total: 2064, tax: 344 });
    expect(order.discounts).toEqual([{ name: 'FRIDAY', amount: 516 }]);
    // The tax lines do not add up to the tax, so they are left out.
    expect(order.taxes).toBeUndefined();
  });

  it('with a discount of 100 % costs nothing, and is made', () => {
    const free = {
      currentSubtotalPriceSet: bag('0.0'),
      currentTotalPriceSet: bag('0.0'),
      currentTotalTaxSet: bag('0.0'),
    };
    expect(read({ ...free, currentTaxLines: [] }).money).toMatchObject({ subtotal: 2580, discount: 2580, total: 0 });
  });

  it('that is cancelled is so without its lines, whatever its payment', () => {
    const cleared: Partial<Order> = {
      cancelledAt: '2026-11-21T17:40:00Z',
      cancelReason: 'CUSTOMER',
      displayFinancialStatus: 'VOIDED',
      lineItems: linesOf(line('burger', 'Burger', 0, '12.90')),
      fulfillmentOrders: { nodes: [] },
    };
    const when = { cancelledAt: '2026-11-21T17:40:00Z', cancelReason: 'The customer cancelled' };
    expect(mapped(cleared)).toEqual({ serviceOrderId: ID, skipped: 'unpaid', ...when });
    expect(mapped({ ...cleared, displayFinancialStatus: 'REFUNDED' })).toEqual({ serviceOrderId: ID, ...when });
    expect(mapped({ cancelledAt: when.cancelledAt, cancelReason: 'A_NEW_ONE' })).toMatchObject({
      cancelledAt: when.cancelledAt,
      cancelReason: null,
      items: [{ name: 'Burger - Large' }],
    });
    expect(mapped({})).not.toHaveProperty('cancelledAt');
    expect(cancelled({ ...answer(), order: null })).toBeNull();
  });

  it('of which one piece is refunded has the others', () => {
    const order = read({
      displayFinancialStatus: 'PARTIALLY_REFUNDED',
      lineItems: linesOf(line('burger', 'Burger', 1, '12.90'), line('cola', 'Cola', 0, '3.00')),
      currentTaxLines: [{ title: 'VAT', ratePercentage: 20, priceSet: bag('2.15') }],
      currentTotalTaxSet: bag('2.15'),
      currentSubtotalPriceSet: bag('12.90'),
      currentTotalPriceSet: bag('12.90'),
    });
    expect(order.items).toMatchObject([{ serviceItemId: 'burger', quantity: 1 }]);
    expect(order.money).toMatchObject({ subtotal: 1290, total: 1290 });
  });

  it('in yen has whole yen', () => {
    const order = read({
      currencyCode: 'JPY',
      lineItems: linesOf(line('ramen', 'Ramen', 1, '990.0')),
      currentSubtotalPriceSet: bag('990'),
      currentTotalPriceSet: bag('990.0'),
      currentTaxLines: [],
      currentTotalTaxSet: bag('90.0'),
    });
    expect(order.money).toMatchObject({ subtotal: 990, tax: 90, total: 990, currency: 'JPY' });
  });

  it("has the wanted time in the shop's zone, and what else the customer wrote as notes", () => {
    const customAttributes = [
      { key: 'Wanted at', value: '2026-07-21 18:30' },
      { key: 'Allergy', value: 'nuts' },
      { key: '_app', value: '77' },
    ];
    const order = read({ processedAt: '2026-07-21T16:30:00Z', customAttributes, note: 'No cutlery' });
    expect(order.fulfillment.requestedAt).toBe('2026-07-21T18:30:00+01:00');
    expect(order.notes).toBe('No cutlery; Allergy: nuts');
    const soon = [{ key: 'Wanted at', value: 'soon' }];
    expect(() => map({ customAttributes: soon })).toThrow('Wanted at: is not a time');
  });

  it('has choices of a line as modifiers, and other attributes as its notes', () => {
    const customAttributes = [
      { key: 'Extra', value: 'Cheddar' },
      { key: 'Name on the cup', value: 'Ada' },
      { key: '_sort', value: '3' },
    ];
    const order = read({ lineItems: linesOf(line('burger', 'Burger', 2, '12.90', { customAttributes })) });
    expect(order.items[0]).toMatchObject({
      notes: 'Name on the cup: Ada',
      modifiers: [{ serviceModifierId: 'cheddar', name: 'Cheddar', quantity: 1 }],
    });
  });

  it('has a bundle as one item with its parts, also if a part is refunded', () => {
    const lineItemGroup = { id: 'gid://shopify/LineItemGroup/1', title: 'Menu', variantSku: 'menu', quantity: 2 };
    const parts = (fries: number): Partial<Order> => ({
      lineItems: linesOf(
        line('burger', 'Burger', 2, '8.00', { lineItemGroup }),
        line('pale-ale', 'Pale ale', 1, '4.00'),
        line('fries', 'Fries', fries, '2.90', { lineItemGroup }),
      ),
      currentSubtotalPriceSet: bag(String(20 + fries * 2.9)),
      currentTotalPriceSet: bag(String(20 + fries * 2.9)),
    });
    expect(read(parts(4)).items).toMatchObject([
      {
        serviceItemId: 'menu',
        quantity: 2,
        unitPrice: 0,
        modifiers: [
          { serviceModifierId: 'burger', quantity: 1, unitPrice: 800 },
          { serviceModifierId: 'fries', quantity: 2, unitPrice: 290 },
        ],
      },
      { serviceItemId: 'pale-ale', ageRestricted: true, unitPrice: 400 },
    ]);
    const [menu] = read(parts(3)).items;
    expect(menu).toMatchObject({ quantity: 1, modifiers: [{ quantity: 2 }, { quantity: 3 }] });
  });

  it('is skipped before it is paid, as a parcel, and if it was sold at the till', () => {
    for (const status of ['PENDING', 'AUTHORIZED', 'PARTIALLY_PAID', 'VOIDED', null] as const)
      expect(map({ displayFinancialStatus: status })).toEqual({ skipped: 'unpaid' });
    expect(map({ fulfillmentOrders: { nodes: [work('SHIPPING')] } })).toEqual({ skipped: 'parcel' });
    expect(map({ fulfillmentOrders: { nodes: [work('RETAIL')] } })).toEqual({ skipped: 'till' });
    expect(toCanonicalOrder({ ...answer(), order: null })).toBeNull();
  });

  it('is held until Shopify has planned its work, and if it is for two kitchens or one that is not ours', () => {
    const at = (id: string): Work => work('LOCAL', { assignedLocation: { location: { id } } });
    const planned =
      (...nodes: Work[]): (() => unknown) =>
      () =>
        map({ fulfillmentOrders: { nodes } });
    expect(planned()).toThrow('fulfillmentOrders: is missing');
    expect(planned(work('LOCAL', { status: 'CANCELLED' }))).toThrow('fulfillmentOrders: is missing');
    const [soho, camden] = [at('gid://shopify/Location/101'), at('gid://shopify/Location/102')];
    expect(planned(soho, camden)).toThrow('fulfillmentOrders: is a location');
    expect(planned(at('gid://shopify/Location/9'))).toThrow('assignedLocation: is a location');
  });

  it('is held rather than cut after its first hundred lines', () => {
    const lineItems = { pageInfo: { hasNextPage: true }, nodes: pickup.lineItems.nodes };
    expect(() => map({ lineItems })).toThrow('lineItems.101: is missing');
  });
});

it('a request to Shopify has its own header, and an error about a scope that the token lacks has its code', () => {
  expect(headers('shpat_1')).toEqual({ 'x-shopify-access-token': 'shpat_1' });
  expect(errorCode({ extensions: { code: 'ACCESS_DENIED' } })).toBe('FORBIDDEN');
  expect(errorCode({ extensions: { code: 'THROTTLED' } })).toBeUndefined();
});

it('the mapper for Shopify loads as ORDER_MODULE', async () => {
  const { query, variables } = await loadOrderModule({ ORDER_MODULE: `${PLATFORMS}/shopify/map-order.ts` });
  expect(query).toContain('order(id: $id)');
  expect(variables).toBeUndefined();
});
