/** Turns Feast's purchases into canonical orders: `ORDER_MODULE=./examples/platform-mapper/map-order.ts`. */
import {
  joinName,
  joinStreet,
  mapEnum,
  mapLocation,
  phoneInCountry,
  skip,
  timeInZone,
  timeSinceEpoch,
  toMinorUnits,
  type Cancelled,
  type ErrorCode,
  type Modifier,
  type OrderInput,
  type PlatformError,
  type Skipped,
} from 'expediter-platform';

export const query = `query Purchase($code: String!) {
  purchase(code: $code) {
    code handover createdTs cancelledTs wantedFor remark
    restaurant { id timeZone country }
    customer { number firstName lastName phone mail }
    address { street houseNumber zip town directions }
    positions {
      count unitPrice remark
      product { sku title minimumAge }
      extras { count unitPrice product { sku title } extras { count unitPrice product { sku title } } }
    }
    totals { goods vat gratuity courier grand }
  }
}`;

/** Feast calls an order's id its code. */
export const variables = (orderId: string) => ({ code: orderId });

/** Feast requires a key, not a bearer token. */
export const headers = (token: string | undefined) => ({ 'x-api-key': token ?? '' });

/** For a wrong key, Feast answers 200 with its own error code. */
const CODES = new Map(Object.entries<ErrorCode>({ WRONG_KEY: 'UNAUTHENTICATED' }));
export const errorCode = ({ extensions }: PlatformError) => CODES.get(String(extensions?.['code']));

/** Our location for each of Feast's restaurants. Orders of a restaurant that is missing here are held. */
const LOCATIONS = { 17: 'feast-berlin', 23: 'feast-tokyo' };
const CURRENCIES = { CH: 'CHF', DE: 'EUR', JP: 'JPY' } as const;
/** Our order types. An order of a type that is missing here is held. */
const TYPES = { COURIER: 'delivery', TAKEAWAY: 'pickup' } as const;

type Product = { sku: string; title: string; minimumAge?: number | null };
type Priced = { product: Product; count: number; unitPrice: string };
/** In Feast, an extra may have extras of its own. */
type Extra = Priced & { extras?: Extra[] | null };
/** The answer to `query`. */
export type Purchase = {
  code: string;
  handover: string;
  createdTs: number;
  cancelledTs: number | null;
  wantedFor: string | null;
  remark: string | null;
  restaurant: { id: number; timeZone: string; country: string };
  customer: { number: number; firstName: string; lastName: string | null; phone: string | null; mail: string | null };
  address: {
    street: string;
    houseNumber: string | null;
    zip: string | null;
    town: string | null;
    directions: string | null;
  } | null;
  positions: (Priced & { remark: string | null; extras: Extra[] })[];
  totals: { goods: string; vat: string; gratuity: string | null; courier: string | null; grand: string };
};

/** Feast empties a purchase that it cancels. Only this field of it is needed then. */
export function cancelled({ purchase: { cancelledTs } }: { purchase: Purchase }): Cancelled | null {
  return cancelledTs === null ? null : { cancelledAt: timeSinceEpoch(cancelledTs, 's', 'cancelledTs') };
}

export function toCanonicalOrder({ purchase }: { purchase: Purchase }): OrderInput | Skipped {
  // An order at a table is not for us.
  if (purchase.handover === 'DINE_IN') return skip('dine_in');
  const { restaurant, customer, address, totals } = purchase;
  const currency = mapEnum(restaurant.country, CURRENCIES, 'country');
  const minor = (amount: string, field: string): number => toMinorUnits(amount, currency, field);
  const toModifier = ({ product, count, unitPrice, extras }: Extra): Modifier => ({
    serviceModifierId: product.sku,
    name: product.title,
    quantity: count,
    unitPrice: minor(unitPrice, 'unitPrice'),
    modifiers: extras?.map(toModifier),
  });
  return {
    serviceOrderId: purchase.code,
    locationId: mapLocation(restaurant.id, LOCATIONS, 'restaurant'),
    member: {
      id: String(customer.number),
      name: joinName(customer.firstName, customer.lastName),
      email: customer.mail,
      phone: customer.phone && phoneInCountry(customer.phone, restaurant.country),
    },
    fulfillment: {
      type: mapEnum(purchase.handover, TYPES, 'handover'),
      destination: address && {
        line1: joinStreet(address.street, address.houseNumber, { numberFirst: restaurant.country === 'JP' }),
        postalCode: address.zip,
        city: address.town,
        country: restaurant.country,
        instructions: address.directions,
      },
      requestedAt: purchase.wantedFor && timeInZone(purchase.wantedFor, restaurant.timeZone, 'wantedFor'),
    },
    items: purchase.positions.map(({ product, count, unitPrice, remark, extras }, nth) => ({
      serviceItemId: product.sku,
      name: product.title,
      quantity: count,
      unitPrice: minor(unitPrice, `items.${nth}.unitPrice`),
      notes: remark,
      ageRestricted: (product.minimumAge ?? 0) > 0,
      modifiers: extras.map(toModifier),
    })),
    money: {
      subtotal: minor(totals.goods, 'goods'),
      tax: minor(totals.vat, 'vat'),
      tip: minor(totals.gratuity ?? '0', 'gratuity'),
      fee: minor(totals.courier ?? '0', 'courier'),
      total: minor(totals.grand, 'grand'),
      currency,
      pricesIncludeTax: true,
    },
    notes: purchase.remark,
    placedAt: timeSinceEpoch(purchase.createdTs, 's', 'createdTs'),
  };
}
