import { randomBytes } from 'node:crypto';
import type { CanonicalOrder } from '../core/domain/order.ts';
import type { FulfillmentType } from '../core/domain/lifecycle.ts';

/** Nobody's. The name is on the ticket. Berlin's 23125 000 to 999 are for fiction (Bundesnetzagentur). */
const MEMBER: CanonicalOrder['member'] = {
  id: 'certify',
  name: 'TEST, do not cook',
  email: 'test@example.com',
  phone: '+493023125000',
};
const NOTES = 'Test order of expediter certify. Do not cook it.';

const FULFILLMENTS: Record<FulfillmentType, CanonicalOrder['fulfillment']> = {
  pickup: { type: 'pickup' },
  delivery: {
    type: 'delivery',
    destination: {
      line1: 'Teststraße 1',
      city: 'Berlin',
      postalCode: '10115',
      country: 'DE',
      instructions: 'Stay here',
    },
  },
};

/** What a kitchen has to read right: more than one of an item, modifiers, more than one of these, notes, letters. */
const ITEMS: CanonicalOrder['items'] = [
  {
    serviceItemId: 'certify-burger',
    name: 'Test burger “Größe L” 🍔',
    quantity: 2,
    unitPrice: 1290,
    notes: 'One of them well done',
    ageRestricted: false,
    modifiers: [
      { serviceModifierId: 'certify-cheddar', name: 'Extra cheddar', quantity: 2, unitPrice: 150 },
      { serviceModifierId: 'certify-no-onions', name: 'No onions', quantity: 1 },
    ],
  },
  {
    serviceItemId: 'certify-beer',
    name: 'Test beer',
    quantity: 1,
    unitPrice: 480,
    ageRestricted: true,
    modifiers: [],
  },
];

/** What a test order is made of: an order of the caller's own, or else a sample. */
export type TestContents = Pick<CanonicalOrder, 'items' | 'fulfillment' | 'money'>;

/** @returns a burger, twice, and a beer, in euros */
export function sampleContents(type: FulfillmentType): TestContents {
  const subtotal = 2 * (1290 + 2 * 150) + 480;
  const [tip, fee] = [300, type === 'delivery' ? 350 : 0];
  return {
    items: ITEMS,
    fulfillment: FULFILLMENTS[type],
    money: { subtotal, tax: 0, tip, fee, total: subtotal + tip + fee, currency: 'EUR' },
  };
}

/** Makes an order that everybody can tell for a test, by its id and its member. */
export function makeTestOrder(locationId: string, contents: TestContents, now: Date): CanonicalOrder {
  return {
    ...contents,
    serviceOrderId: `certify-${randomBytes(8).toString('hex')}`,
    locationId,
    member: MEMBER,
    notes: NOTES,
    placedAt: now.toISOString(),
  };
}
