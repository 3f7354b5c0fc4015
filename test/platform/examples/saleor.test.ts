/** The example mapper for Saleor, with answers that we wrote. No shop has sent them. */
import { describe, expect, it } from 'vitest';
import {
  cancelled,
  errorCode,
  toCanonicalOrder,
  type Answer,
  type Order,
} from '../../../examples/platforms/saleor/map-order.ts';
import { mapOrder } from '../../../src/core/placements/ask-mapper.ts';
import { loadOrderModule } from '../../../src/platform/load-order-module.ts';
import { readExample, PLATFORMS } from './read-example.ts';

const ID = 'T3JkZXI6NDcxMQ==';
/** A price with 20 % tax. */
const prices = (gross: number, net = Number((gross / 1.2).toFixed(2))) => ({
  gross: { amount: gross },
  net: { amount: net },
});
type Line = Order['lines'][number];
const line = (
  productSku: string,
  productName: string,
  quantity: number,
  price: number,
  rest: Partial<Line> = {},
): Line => ({
  productSku,
  productName,
  variantName: productName,
  quantity,
  undiscountedUnitPrice: prices(price),
  undiscountedTotalPrice: prices(price * quantity),
  metadata: [],
  ...rest,
});
const totalOf = (gross: number, currency = 'GBP', net?: number): Order['total'] => {
  const both = prices(gross, net);
  return { currency, ...both, tax: { amount: Number((gross - both.net.amount).toFixed(2)) } };
};

const home: NonNullable<Order['billingAddress']> = {
  firstName: 'Grace',
  lastName: 'Hopper',
  streetAddress1: '12 Frith Street',
  streetAddress2: 'Flat 3',
  city: 'LONDON',
  postalCode: 'W1D 4RQ',
  countryArea: '',
  country: { code: 'GB' },
  phone: '+442079876543',
};
const warehouse = { ...home, firstName: '', lastName: 'Soho', streetAddress1: '1 Counter Row', phone: '+442070000000' };

/** A pickup of two burgers. Its shipping address is that of the warehouse. */
const pickup: Order = {
  id: ID,
  number: '1001',
  status: 'UNFULFILLED',
  created: '2026-11-21T17:30:00.123456+00:00',
  updatedAt: '2026-11-21T17:40:00+00:00',
  customerNote: '',
  userEmail: 'ada@example.com',
  displayGrossPrices: true,
  channel: { slug: 'soho-delivery' },
  user: { id: 'VXNlcjo3', firstName: 'Ada', lastName: 'Lovelace' },
  billingAddress: home,
  shippingAddress: warehouse,
  deliveryMethod: { __typename: 'Warehouse', slug: 'soho-counter' },
  wantedAt: null,
  doorNote: null,
  discounts: [],
  lines: [line('burger', 'Burger', 2, 12.9)],
  subtotal: prices(25.8),
  shippingPrice: prices(0),
  total: totalOf(25.8),
  totalCharged: { amount: 25.8 },
  totalRefunded: { amount: 0 },
};
const delivery: Partial<Order> = {
  deliveryMethod: { __typename: 'ShippingMethod', name: 'Bike' },
  channel: { slug: 'camden-delivery' },
  shippingAddress: home,
  doorNote: 'Ring twice',
  lines: [line('burger', 'Burger', 1, 10), line('bag-fee', 'Bag', 1, 0.2), line('service-fee', 'Service', 1, 1.5)],
  subtotal: prices(11.7),
  shippingPrice: prices(3.5),
  total: totalOf(15.2),
  totalCharged: { amount: 15.2 },
};

const answer = (change: Partial<Order> = {}): Answer => ({ order: { ...pickup, ...change } });
const map = (change?: Partial<Order>): ReturnType<typeof toCanonicalOrder> => toCanonicalOrder(answer(change));
const read = (change?: Partial<Order>): ReturnType<typeof readExample> => readExample(map(change), ID);

/** What the service reads, which asks for the cancel first. */
const mapped = (change: Partial<Order>): unknown => mapOrder({ cancelled, toCanonicalOrder }, answer(change), ID);

describe('an order of Saleor', () => {
  it('for pickup has the kitchen of its warehouse, and the telephone number of the customer', () => {
    const order = read();
    expect(order).toMatchObject({
      locationId: 'soho',
      member: { id: 'VXNlcjo3', name: 'Ada Lovelace', email: 'ada@example.com', phone: '+442079876543' },
      fulfillment: { type: 'pickup' },
      items: [{ serviceItemId: 'burger', name: 'Burger', quantity: 2, unitPrice: 1290 }],
      money: { subtotal: 2580, tax: 430, tip: 0, fee: 0, total: 2580, currency: 'GBP', pricesIncludeTax: true },
      placedAt: '2026-11-21T17:30:00.123456+00:00',
    });
    expect(order.fulfillment.destination).toBeUndefined();
    expect(order.notes).toBeUndefined();
  });

  it('for delivery has the kitchen of its channel, the address, and each fee by its name', () => {
    const order = read(delivery);
    expect(order.locationId).toBe('camden');
    expect(order.fulfillment.destination).toEqual({
      line1: '12 Frith Street',
      line2: 'Flat 3',
      city: 'LONDON',
      postalCode: 'W1D 4RQ',
      country: 'GB',
      instructions: 'Ring twice',
    });
    expect(order.items.map(({ name }) => name)).toEqual(['Burger']);
    expect(order.fees).toEqual([
      { name: 'Bag', amount: 20 },
      { name: 'Service', amount: 150 },
      { name: 'Bike', amount: 350 },
    ]);
    expect(order.money).toMatchObject({ subtotal: 1000, fee: 520, total: 1520, tax: 253 });
  });

  it('of a shop that shows prices without the tax has these, and the tax on top', () => {
    const order = read({
      displayGrossPrices: false,
      lines: [line('burger', 'Burger', 2, 12, { undiscountedTotalPrice: prices(24) })],
      subtotal: prices(24),
      shippingPrice: prices(3),
      total: totalOf(27),
      totalCharged: { amount: 27 },
    });
    expect(order.money).toMatchObject({
      subtotal: 2000,
      fee: 250,
      tax: 450,
      total: 2700,
      pricesIncludeTax: false,
    });
    expect(order.items[0]?.unitPrice).toBe(1000);
  });

  it('of a guest without a telephone number has an id of its own', () => {
    const guest = { user: null, userEmail: null, billingAddress: { ...home, phone: null } };
    expect(read(guest).member).toEqual({ id: ID, name: 'Grace Hopper' });
    expect(read({ ...guest, billingAddress: null }).member.name).toBe('#1001');
  });

  it('has the discount by its name, before which the prices are', () => {
    const order = read({
      discounts: [{ name: 'FRIDAY' }, { name: null }],
      subtotal: prices(20.64),
      total: totalOf(20.64),
      totalCharged: { amount: 20.64 },
    });
    expect(order.money).toMatchObject({ subtotal: 2580, discount: 516, total: 2064 });
    expect(order.discounts).toEqual([{ name: 'FRIDAY', amount: 516 }]);
  });

  it('with a discount of 100 % costs nothing, and is made', () => {
    const free = { subtotal: prices(0), total: totalOf(0), totalCharged: { amount: 0 } };
    expect(read(free).money).toMatchObject({ subtotal: 2580, discount: 2580, tax: 0, total: 0 });
  });

  it('that is cancelled is so without its lines', () => {
    const cancelledAt = '2026-11-21T17:40:00+00:00';
    expect(mapped({ status: 'CANCELED', lines: [] })).toMatchObject({ serviceOrderId: ID, cancelledAt });
    expect(mapped({ status: 'CANCELED', lines: null as never })).toEqual({
      serviceOrderId: ID,
      cancelledAt,
      cancelReason: null,
    });
    expect(mapped({})).not.toHaveProperty('cancelledAt');
    expect(cancelled({ order: null })).toBeNull();
  });

  it('of which a part of the money is refunded is still paid, and made', () => {
    expect(read({ totalCharged: { amount: 20.8 }, totalRefunded: { amount: 5 } })).toEqual(read());
  });

  it('in yen has whole yen', () => {
    const order = read({
      lines: [line('ramen', 'Ramen', 1, 990, { undiscountedTotalPrice: prices(990, 900) })],
      subtotal: prices(990, 900),
      shippingPrice: prices(0),
      total: totalOf(990, 'JPY', 900),
      totalCharged: { amount: 990 },
    });
    expect(order.money).toMatchObject({ subtotal: 990, tax: 90, total: 990, currency: 'JPY' });
  });

  it('has the wanted time, the note, and the choices of a line by its metadata', () => {
    const metadata = [
      { key: 'modifier:oat-milk', value: 'Oat milk' },
      { key: 'note', value: 'Name on the cup: Ada' },
      { key: 'sort', value: '3' },
    ];
    const coffee = line('coffee-l', 'Coffee', 1, 25.8, { variantName: 'Large', metadata });
    const order = read({
      created: '2026-07-21T16:30:00+00:00',
      wantedAt: '2026-07-21 18:30',
      customerNote: 'No cutlery',
      lines: [coffee],
    });
    expect(order.fulfillment.requestedAt).toBe('2026-07-21T18:30:00+01:00');
    expect(order.notes).toBe('No cutlery');
    expect(order.items[0]).toMatchObject({
      name: 'Coffee Large',
      notes: 'Name on the cup: Ada',
      modifiers: [{ serviceModifierId: 'oat-milk', name: 'Oat milk', quantity: 1 }],
    });
    expect(() => map({ wantedAt: 'soon' })).toThrow('wantedAt: is not a time');
  });

  it('is skipped before it is paid or confirmed, and if nothing is handed over', () => {
    expect(map({ totalCharged: { amount: 25.79 } })).toEqual({ skipped: 'unpaid' });
    expect(map({ status: 'UNCONFIRMED' })).toEqual({ skipped: 'unconfirmed' });
    expect(map({ status: 'EXPIRED' })).toEqual({ skipped: 'expired' });
    expect(map({ deliveryMethod: null })).toEqual({ skipped: 'no_delivery' });
    expect(toCanonicalOrder({ order: null })).toBeNull();
  });

  it('is held if its warehouse is not one of ours', () => {
    const elsewhere = { __typename: 'Warehouse', slug: 'paris' } as const;
    expect(() => map({ deliveryMethod: elsewhere })).toThrow('deliveryMethod: is a location');
  });
});

it('an error of Saleor has its code by the name of the exception', () => {
  const codeOf = (code: string): unknown => errorCode({ extensions: { exception: { code } } });
  expect(codeOf('PermissionDenied')).toBe('FORBIDDEN');
  expect(codeOf('ExpiredSignatureError')).toBe('UNAUTHENTICATED');
  expect(codeOf('OperationalError')).toBeUndefined();
  expect(errorCode({ extensions: { exception: null } })).toBeUndefined();
  expect(errorCode({})).toBeUndefined();
});

it('the mapper for Saleor loads as ORDER_MODULE', async () => {
  const { query } = await loadOrderModule({ ORDER_MODULE: `${PLATFORMS}/saleor/map-order.ts` });
  expect(query).toContain('order(id: $id)');
});
