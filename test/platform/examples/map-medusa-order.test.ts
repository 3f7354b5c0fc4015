/** The example mapper for Medusa, with an answer of its Admin API. `test/system/medusa.test.ts` runs it with Medusa itself. */
import { describe, expect, it } from 'vitest';
import {
  cancelled,
  headers,
  toCanonicalOrder,
  type MedusaOrder,
} from '../../../examples/platforms/medusa/map-order.ts';
import { readCanonicalOrder } from '../../../src/core/domain/read-canonical-order.ts';

const tax = (total: number) => [{ code: 'us', description: 'Sales tax', rate: 8.875, total }];
const line = (id: string, title: string, quantity: number, unit_price: number): MedusaOrder['items'][number] => ({
  id,
  title,
  variant_title: 'Default variant',
  variant_sku: title.toLowerCase(),
  metadata: {},
  quantity,
  unit_price,
  is_tax_inclusive: false,
  adjustments: [],
  tax_lines: [],
});
/** Two burgers and fries, 10 % off, in USD without the tax. The amounts are as Medusa computes them. */
const order: MedusaOrder = {
  id: 'order_1',
  status: 'pending',
  created_at: '2026-11-29T19:15:25.701Z',
  canceled_at: null,
  currency_code: 'usd',
  email: 'ada@example.com',
  metadata: { wanted_at: '2026-11-29T20:00:00-05:00', notes: 7 },
  total: 34.97391625,
  credit_line_total: 0,
  customer: { id: 'cus_1', has_account: false },
  sales_channel: { name: 'Trattoria Nord' },
  shipping_address: {
    first_name: 'Ada',
    last_name: 'Lovelace',
    phone: null,
    address_1: '1 Main Street',
    address_2: null,
    postal_code: '10001',
    city: 'New York',
    province: null,
    country_code: 'us',
  },
  items: [
    {
      ...line('ordli_2', 'Fries', 1, 3.99),
      adjustments: [{ code: 'TEN', subtotal: 0.399, total: 0.43441125 }],
      tax_lines: tax(0.31870125),
    },
    {
      ...line('ordli_1', 'Burger', 2, 13.49),
      variant_title: 'Large',
      metadata: { notes: 'no onions' },
      adjustments: [{ code: 'TEN', subtotal: 2.698, total: 2.9374475 }],
      tax_lines: tax(2.1550275),
    },
  ],
  shipping_methods: [
    {
      name: 'Courier',
      total: 4.6271875,
      tax_total: 0.3771875,
      tax_lines: tax(0.3771875),
      shipping_option: { type: { code: 'delivery' } },
    },
  ],
};
const read = (about: Partial<MedusaOrder> = {}) =>
  readCanonicalOrder(toCanonicalOrder({ order: { ...order, ...about } }), { serviceOrderId: order.id });

describe("Medusa's order", () => {
  it('has amounts in cents that add up to the rounded total, and items in one order', () => {
    expect(read()).toMatchObject({
      leftOut: [],
      order: {
        locationId: 'nord',
        member: { id: 'order_1' },
        fulfillment: { type: 'delivery', requestedAt: '2026-11-29T20:00:00-05:00', destination: { country: 'US' } },
        items: [
          { serviceItemId: 'burger', name: 'Burger, Large', quantity: 2, unitPrice: 1349, notes: 'no onions' },
          { serviceItemId: 'fries', name: 'Fries', quantity: 1, unitPrice: 399 },
        ],
        money: { subtotal: 3097, discount: 310, fee: 425, tax: 285, total: 3497, pricesIncludeTax: false },
        discounts: [{ name: 'TEN', amount: 310 }],
        fees: [{ name: 'Courier', amount: 425 }],
        taxes: [{ name: 'Sales tax', rate: 8.875, amount: 285 }],
      },
    });
  });

  it('costs as much after a refund, which Medusa takes from the total', () => {
    expect(read({ total: 29.97391625, credit_line_total: 5 })).toEqual(read());
  });

  it('is held if only some prices include the tax, or its shipping option has another type', () => {
    const [fries, burger] = order.items as [MedusaOrder['items'][number], MedusaOrder['items'][number]];
    const mixed = { items: [{ ...fries, is_tax_inclusive: true }, burger] };
    expect(() => read(mixed)).toThrow(expect.objectContaining({ field: 'items.is_tax_inclusive' }));
    const [way] = order.shipping_methods as [MedusaOrder['shipping_methods'][number]];
    const deleted = { shipping_methods: [{ ...way, shipping_option: null }] };
    expect(() => read(deleted)).toThrow(expect.objectContaining({ field: 'shipping_option.type' }));
  });

  it('is skipped while it is a draft, and cancelled although it cannot be read', () => {
    expect(toCanonicalOrder({ order: { ...order, status: 'draft' } })).toEqual({ skipped: 'draft' });
    expect(cancelled({ order })).toBeNull();
    const at = '2026-11-29T19:16:41.179Z';
    expect(cancelled({ order: { ...order, canceled_at: at, shipping_methods: [] } })).toEqual({ cancelledAt: at });
  });

  it('is asked for with the key as a user without a password', () => {
    expect(headers('sk_1')).toEqual({ authorization: `Basic ${Buffer.from('sk_1:').toString('base64')}` });
  });
});
