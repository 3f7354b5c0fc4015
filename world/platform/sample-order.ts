import { randomUUID } from 'node:crypto';
import type { FulfillmentType } from '../../src/core/domain/lifecycle.ts';
import type { CanonicalOrder, KitchenOrder } from '../../src/core/domain/order.ts';

/** The differences from the sample. `type` chooses a whole fulfillment; every other field replaces the sample's. */
export type SampleOptions = Partial<KitchenOrder> & { type?: FulfillmentType };

const FULFILLMENTS: Record<FulfillmentType, CanonicalOrder['fulfillment']> = {
  pickup: { type: 'pickup' },
  delivery: {
    type: 'delivery',
    destination: {
      line1: 'Lindenstraße 14',
      line2: '3. OG',
      city: 'Berlin',
      postalCode: '10969',
      country: 'DE',
      latitude: 52.5044,
      longitude: 13.3946,
      instructions: 'Ring twice',
    },
  },
};

/** A member's sample order: two burgers, fries, and a beer that needs an age check. */
export function sampleOrder({ type = 'pickup', ...overrides }: SampleOptions = {}): KitchenOrder {
  const fee = type === 'delivery' ? 350 : 0;
  const subtotal = 2 * (1290 + 150) + 450 + 480;
  const tax = 724;
  const tip = 300;
  return {
    serviceOrderId: `order-${randomUUID()}`,
    locationId: 'club-1',
    member: { id: 'member-42', name: 'Ada Lovelace', email: 'ada@example.com', phone: '+493012345678' },
    fulfillment: structuredClone(FULFILLMENTS[type]),
    items: [
      {
        serviceItemId: 'burger-classic',
        name: 'Classic Burger',
        quantity: 2,
        unitPrice: 1290,
        notes: 'One of them well done',
        ageRestricted: false,
        modifiers: [
          { serviceModifierId: 'cheddar', name: 'Extra cheddar', quantity: 1, unitPrice: 150 },
          { serviceModifierId: 'no-onions', name: 'No onions', quantity: 1 },
        ],
      },
      {
        serviceItemId: 'fries-sweet-potato',
        name: 'Sweet Potato Fries',
        quantity: 1,
        unitPrice: 450,
        ageRestricted: false,
        modifiers: [],
      },
      {
        serviceItemId: 'beer-pale-ale',
        name: 'Pale Ale 0.33 l',
        quantity: 1,
        unitPrice: 480,
        ageRestricted: true,
        modifiers: [],
      },
    ],
    money: { subtotal, tax, tip, fee, total: subtotal + tax + tip + fee, currency: 'EUR' },
    notes: 'Table by the terrace, if there is one',
    placedAt: new Date().toISOString(),
    ...overrides,
  };
}
