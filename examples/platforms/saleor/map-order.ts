/** Turns Saleor's orders into canonical orders: `ORDER_MODULE=./examples/platforms/saleor/map-order.ts`. */
import {
  joinName,
  mapLocation,
  skip,
  timeInZone,
  toMinorUnits,
  type Cancelled,
  type ErrorCode,
  type OrderInput,
  type PlatformError,
  type Skipped,
} from 'expediter-platform';

/** Saleor 3.23. A union says how the order is handed over: a Warehouse is where the customer collects it. */
export const query = `query Order($id: ID!) {
  order(id: $id) {
    id number status created updatedAt customerNote userEmail displayGrossPrices
    channel { slug }
    user { id firstName lastName }
    billingAddress { ...Place }
    shippingAddress { ...Place }
    deliveryMethod { __typename ... on Warehouse { slug } ... on ShippingMethod { name } }
    wantedAt: metafield(key: "wantedAt")
    doorNote: metafield(key: "doorNote")
    discounts { name }
    lines {
      productSku productName variantName quantity
      undiscountedUnitPrice { ...Prices }
      undiscountedTotalPrice { ...Prices }
      metadata { key value }
    }
    subtotal { ...Prices }
    shippingPrice { ...Prices }
    total { currency tax { amount } ...Prices }
    totalCharged { amount }
    totalRefunded { amount }
  }
}
fragment Prices on TaxedMoney { gross { amount } net { amount } }
fragment Place on Address { firstName lastName streetAddress1 streetAddress2 city postalCode countryArea country { code } phone }`;

/** Saleor's code is the name of an exception. */
const CODES = new Map(
  Object.entries<ErrorCode>({
    PermissionDenied: 'FORBIDDEN',
    ExpiredSignatureError: 'UNAUTHENTICATED',
    InvalidTokenError: 'UNAUTHENTICATED',
    InvalidSignatureError: 'UNAUTHENTICATED',
  }),
);
export function errorCode({ extensions }: PlatformError): ErrorCode | undefined {
  const exception = extensions?.['exception'] as { code?: unknown } | null | undefined;
  return CODES.get(String(exception?.code));
}

// What follows is yours to change.

/** Our location for each warehouse at which orders are collected, and for each channel of deliveries. */
const LOCATIONS = { 'soho-counter': 'soho', 'soho-delivery': 'soho', 'camden-delivery': 'camden' };
/** The zone of `wantedAt` in the metadata: 2026-11-21 18:30. An offset in it has precedence. */
const TIME_ZONE = 'Europe/London';
/** Not confirmed, or never paid. */
const NOT_YET = new Set<Status>(['DRAFT', 'UNCONFIRMED', 'EXPIRED']);
/** Products that are fees, by SKU. */
const FEES = new Set(['bag-fee', 'service-fee']);
const AGE_RESTRICTED = new Set(['pale-ale']);
/** Metadata of a line: `modifier:oat-milk` is a modifier with this id in the POS, and its value is the name. */
const MODIFIER = 'modifier:';
/** Metadata of a line for the kitchen. */
const NOTE = 'note';

type Prices = { gross: { amount: number }; net: { amount: number } };
type Place = {
  firstName: string;
  lastName: string;
  streetAddress1: string;
  streetAddress2: string;
  city: string;
  postalCode: string;
  countryArea: string;
  country: { code: string };
  phone: string | null;
};
type Line = {
  productSku: string | null;
  productName: string;
  variantName: string;
  quantity: number;
  undiscountedUnitPrice: Prices;
  undiscountedTotalPrice: Prices;
  metadata: { key: string; value: string }[];
};
type Status =
  | 'DRAFT'
  | 'UNCONFIRMED'
  | 'UNFULFILLED'
  | 'PARTIALLY_FULFILLED'
  | 'PARTIALLY_RETURNED'
  | 'RETURNED'
  | 'FULFILLED'
  | 'CANCELED'
  | 'EXPIRED';
/** The answer to `query`. */
export type Order = {
  id: string;
  number: string;
  status: Status;
  created: string;
  updatedAt: string;
  customerNote: string;
  userEmail: string | null;
  /** Whether the shop shows prices with the tax. */
  displayGrossPrices: boolean;
  channel: { slug: string };
  /** Null for a guest. */
  user: { id: string; firstName: string; lastName: string } | null;
  billingAddress: Place | null;
  shippingAddress: Place | null;
  deliveryMethod: { __typename: 'Warehouse'; slug: string } | { __typename: 'ShippingMethod'; name: string } | null;
  wantedAt: string | null;
  doorNote: string | null;
  discounts: { name: string | null }[];
  lines: Line[];
  subtotal: Prices;
  shippingPrice: Prices;
  total: Prices & { currency: string; tax: { amount: number } };
  totalCharged: { amount: number };
  totalRefunded: { amount: number };
};
export type Answer = { order: Order | null };

/** Saleor keeps no time of the cancellation. The cancellation changes nothing but the status, and this time. */
export function cancelled({ order }: Answer): Cancelled | null {
  return order?.status === 'CANCELED' ? { cancelledAt: order.updatedAt } : null;
}

export function toCanonicalOrder({ order }: Answer): OrderInput | Skipped | null {
  if (order === null) return null;
  // `ORDER_UPDATED` is also sent before the payment. `ORDER_FULLY_PAID` reads the order again.
  if (NOT_YET.has(order.status)) return skip(order.status.toLowerCase());
  const minor = (amount: number, field: string): number => toMinorUnits(amount, order.total.currency, field);
  const { total, totalCharged, totalRefunded } = order;
  // A refund lowers what is charged.
  const paid = minor(totalCharged.amount, 'totalCharged') + minor(totalRefunded.amount, 'totalRefunded');
  if (paid < minor(total.gross.amount, 'total')) return skip('unpaid');
  // Nothing is handed over of a gift card.
  if (order.deliveryMethod === null) return skip('no_delivery');
  const isPickup = order.deliveryMethod.__typename === 'Warehouse';
  // Of a pickup, the shipping address is that of the warehouse, with its telephone number.
  const place = isPickup ? order.billingAddress : order.shippingAddress;
  const { user } = order;
  return {
    serviceOrderId: order.id,
    locationId: mapLocation(
      order.deliveryMethod.__typename === 'Warehouse' ? order.deliveryMethod.slug : order.channel.slug,
      LOCATIONS,
      'deliveryMethod',
    ),
    member: {
      id: user?.id ?? order.id,
      name:
        joinName(user?.firstName, user?.lastName) || joinName(place?.firstName, place?.lastName) || `#${order.number}`,
      email: order.userEmail,
      phone: place?.phone,
    },
    fulfillment: {
      type: isPickup ? 'pickup' : 'delivery',
      destination:
        isPickup || place === null
          ? null
          : {
              line1: place.streetAddress1,
              line2: place.streetAddress2,
              city: place.city,
              postalCode: place.postalCode,
              region: place.countryArea,
              country: place.country.code,
              instructions: order.doorNote,
            },
      requestedAt: order.wantedAt ? timeInZone(order.wantedAt, TIME_ZONE, 'wantedAt') : null,
    },
    ...readContents(order, minor),
    notes: order.customerNote,
    placedAt: order.created,
  };
}

function readContents(
  order: Order,
  minor: (amount: number, field: string) => number,
): Pick<OrderInput, 'items' | 'money' | 'fees' | 'discounts'> {
  // Saleor knows all prices with and without the tax. The POS gets those that the customer saw.
  const pricesIncludeTax = order.displayGrossPrices;
  const shown = (prices: Prices, field: string): number =>
    minor((pricesIncludeTax ? prices.gross : prices.net).amount, field);
  const costOf = (lines: readonly Line[]): number =>
    lines.reduce((sum, line) => sum + shown(line.undiscountedTotalPrice, 'undiscountedTotalPrice'), 0);

  const isFee = ({ productSku }: Line): boolean => FEES.has(productSku ?? '');
  const dishes = order.lines.filter((line) => !isFee(line));
  const fees = [
    ...order.lines.filter(isFee).map((line) => ({ name: line.productName, amount: costOf([line]) })),
    { name: nameOfDelivery(order), amount: shown(order.shippingPrice, 'shippingPrice') },
  ];
  // Their subtotal is after the discounts, and ours is before them.
  const discount = costOf(order.lines) - shown(order.subtotal, 'subtotal');
  return {
    items: dishes.map((line, nth) => ({
      serviceItemId: line.productSku ?? '',
      name: line.variantName === line.productName ? line.productName : joinName(line.productName, line.variantName),
      quantity: line.quantity,
      unitPrice: shown(line.undiscountedUnitPrice, `items.${nth}.unitPrice`),
      notes: line.metadata.find(({ key }) => key === NOTE)?.value,
      ageRestricted: AGE_RESTRICTED.has(line.productSku ?? ''),
      // Their price is in that of the line.
      modifiers: line.metadata
        .filter(({ key }) => key.startsWith(MODIFIER))
        .map(({ key, value }) => ({ serviceModifierId: key.slice(MODIFIER.length), name: value, quantity: 1 })),
    })),
    money: {
      subtotal: costOf(dishes),
      tax: minor(order.total.tax.amount, 'tax'),
      tip: 0,
      fee: fees.reduce((sum, { amount }) => sum + amount, 0),
      total: minor(order.total.gross.amount, 'total'),
      currency: order.total.currency,
      pricesIncludeTax,
    },
    fees,
    discounts: [{ name: order.discounts.flatMap(({ name }) => name ?? []).join(', '), amount: discount }],
  };
}

const nameOfDelivery = ({ deliveryMethod }: Order): string | undefined =>
  deliveryMethod?.__typename === 'ShippingMethod' ? deliveryMethod.name : undefined;
