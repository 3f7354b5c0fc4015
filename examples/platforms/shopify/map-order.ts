/** Turns Shopify's orders into canonical orders: `ORDER_MODULE=./examples/platforms/shopify/map-order.ts`. */
import {
  joinName,
  mapEnum,
  mapLocation,
  MappingError,
  skip,
  timeInZone,
  toMinorUnits,
  type Cancelled,
  type ErrorCode,
  type Modifier,
  type OrderInput,
  type PlatformError,
  type Skipped,
} from 'expediter-platform';

/** Admin API 2026-10. The id is that of the signal: `gid://shopify/Order/…`. */
export const query = `query Order($id: ID!) {
  shop { ianaTimezone }
  order(id: $id) {
    id name processedAt cancelledAt cancelReason displayFinancialStatus currencyCode taxesIncluded note discountCodes email phone
    customAttributes { key value }
    customer { id firstName lastName defaultPhoneNumber { phoneNumber } }
    billingAddress { name }
    shippingAddress { name address1 address2 city zip provinceCode countryCodeV2 latitude longitude phone }
    shippingLine { title }
    fulfillmentOrders(first: 10) {
      nodes {
        status
        assignedLocation { location { id } }
        deliveryMethod { methodType additionalInformation { instructions phone } }
      }
    }
    lineItems(first: 100) {
      pageInfo { hasNextPage }
      nodes {
        sku name currentQuantity requiresShipping
        originalUnitPriceSet { ...Amount }
        customAttributes { key value }
        lineItemGroup { id title variantSku quantity }
      }
    }
    currentTaxLines { title ratePercentage priceSet { ...Amount } }
    currentSubtotalPriceSet { ...Amount }
    currentShippingPriceSet { ...Amount }
    currentTotalTaxSet { ...Amount }
    currentTotalPriceSet { ...Amount }
    totalTipReceivedSet { ...Amount }
  }
}
fragment Amount on MoneyBag { shopMoney { amount } }`;

/** Shopify takes no bearer token. */
export const headers = (token: string | undefined) => ({ 'x-shopify-access-token': token ?? '' });

/** The token lacks a scope. THROTTLED needs no code: the query is sent again. */
const CODES = new Map(Object.entries<ErrorCode>({ ACCESS_DENIED: 'FORBIDDEN' }));
export const errorCode = ({ extensions }: PlatformError) => CODES.get(String(extensions?.['code']));

// What follows is yours to change.

/** Our location for each of Shopify's. Orders of a location that is missing here are held. */
const LOCATIONS = { 'gid://shopify/Location/101': 'soho', 'gid://shopify/Location/102': 'camden' };
/** SHIPPING and PICKUP_POINT are parcels, RETAIL was sold at the till. They are not for us. */
const TYPES = { LOCAL: 'delivery', PICK_UP: 'pickup' } as const;
const PAID = new Set<FinancialStatus | null>(['PAID', 'PARTIALLY_REFUNDED', 'REFUNDED']);
/** Products that are fees. */
const FEES = new Set(['bag-fee', 'service-fee']);
/** The attribute of the cart with the wanted time, in the shop's time zone: 2026-11-21 18:30. */
const WANTED_AT = 'Wanted at';
/** Attributes of a line that the kitchen makes, with the id in the POS. All others become notes. */
const MODIFIERS = new Map([
  ['Milk: Oat', 'oat-milk'],
  ['Extra: Cheddar', 'cheddar'],
]);
const AGE_RESTRICTED = new Set(['pale-ale']);
/** Fit for the restaurant. */
const REASONS = new Map([
  ['CUSTOMER', 'The customer cancelled'],
  ['DECLINED', 'The payment was declined'],
  ['INVENTORY', 'Something is sold out'],
  ['STAFF', 'Cancelled by the staff'],
]);

type Bag = { shopMoney: { amount: string } };
type Attribute = { key: string; value: string | null };
type Line = {
  sku: string | null;
  name: string;
  /** Without what was refunded or removed. */
  currentQuantity: number;
  requiresShipping: boolean;
  originalUnitPriceSet: Bag;
  customAttributes: Attribute[];
  /** The bundle that the line is a part of. */
  lineItemGroup: { id: string; title: string; variantSku: string | null; quantity: number } | null;
};
type Work = {
  status: 'CANCELLED' | 'CLOSED' | 'INCOMPLETE' | 'IN_PROGRESS' | 'ON_HOLD' | 'OPEN' | 'SCHEDULED';
  assignedLocation: { location: { id: string } | null };
  deliveryMethod: {
    methodType: 'LOCAL' | 'NONE' | 'PICKUP_POINT' | 'PICK_UP' | 'RETAIL' | 'SHIPPING';
    additionalInformation: { instructions: string | null; phone: string | null } | null;
  } | null;
};
type FinancialStatus =
  | 'AUTHORIZED'
  | 'EXPIRED'
  | 'PAID'
  | 'PARTIALLY_PAID'
  | 'PARTIALLY_REFUNDED'
  | 'PENDING'
  | 'REFUNDED'
  | 'VOIDED';
/** The answer to `query`. */
export type Order = {
  id: string;
  name: string;
  processedAt: string;
  cancelledAt: string | null;
  cancelReason: string | null;
  displayFinancialStatus: FinancialStatus | null;
  currencyCode: string;
  taxesIncluded: boolean;
  note: string | null;
  discountCodes: string[];
  email: string | null;
  phone: string | null;
  customAttributes: Attribute[];
  /** Null for a guest. */
  customer: {
    id: string;
    firstName: string | null;
    lastName: string | null;
    defaultPhoneNumber: { phoneNumber: string } | null;
  } | null;
  billingAddress: { name: string | null } | null;
  shippingAddress: {
    name: string | null;
    address1: string | null;
    address2: string | null;
    city: string | null;
    zip: string | null;
    provinceCode: string | null;
    countryCodeV2: string | null;
    latitude: number | null;
    longitude: number | null;
    phone: string | null;
  } | null;
  shippingLine: { title: string } | null;
  fulfillmentOrders: { nodes: Work[] };
  lineItems: { pageInfo: { hasNextPage: boolean }; nodes: Line[] };
  currentTaxLines: { title: string; ratePercentage: number | null; priceSet: Bag }[];
  currentSubtotalPriceSet: Bag;
  currentShippingPriceSet: Bag;
  currentTotalTaxSet: Bag;
  currentTotalPriceSet: Bag;
  totalTipReceivedSet: Bag;
};
export type Answer = { shop: { ianaTimezone: string }; order: Order | null };

/** A cancelled order may have no lines any more, so this reads nothing else. */
export function cancelled({ order }: Answer): Cancelled | null {
  if (!order?.cancelledAt) return null;
  return { cancelledAt: order.cancelledAt, cancelReason: REASONS.get(order.cancelReason ?? '') };
}

export function toCanonicalOrder({ shop, order }: Answer): OrderInput | Skipped | null {
  if (order === null) return null;
  // `orders/updated` is also sent before the payment. `orders/paid` reads the order again.
  if (!PAID.has(order.displayFinancialStatus)) return skip('unpaid');
  const work = workOf(order);
  const type = work.deliveryMethod?.methodType;
  if (type === 'SHIPPING' || type === 'PICKUP_POINT') return skip('parcel');
  if (type === 'RETAIL') return skip('till');
  const to = order.shippingAddress;
  const ordered = joinName(order.customer?.firstName, order.customer?.lastName);
  const more = work.deliveryMethod?.additionalInformation;
  const wantedAt = order.customAttributes.find(({ key }) => key === WANTED_AT)?.value;
  return {
    serviceOrderId: order.id,
    locationId: mapLocation(work.assignedLocation.location?.id, LOCATIONS, 'assignedLocation'),
    member: {
      id: order.customer?.id ?? order.id,
      // Not `displayName`: it may be the e-mail address. The last one is like #1001.
      name: [ordered, to?.name, order.billingAddress?.name].find((name) => name?.trim()) ?? order.name,
      email: order.email,
      phone: order.phone ?? more?.phone ?? to?.phone ?? order.customer?.defaultPhoneNumber?.phoneNumber,
    },
    fulfillment: {
      type: mapEnum(type, TYPES, 'deliveryMethod'),
      destination:
        type === 'LOCAL' && to !== null
          ? {
              line1: to.address1 ?? '',
              line2: to.address2,
              city: to.city,
              postalCode: to.zip,
              region: to.provinceCode,
              country: to.countryCodeV2,
              latitude: to.latitude,
              longitude: to.longitude,
              instructions: more?.instructions,
            }
          : null,
      requestedAt: wantedAt ? timeInZone(wantedAt, shop.ianaTimezone, WANTED_AT) : null,
    },
    ...readContents(order),
    notes: [order.note, ...notesIn(order.customAttributes)].filter(Boolean).join('; '),
    placedAt: order.processedAt,
  };
}

/** Shopify plans the work of an order some moments after the payment. Until then the order is held and read again. */
function workOf({ fulfillmentOrders }: Order): Work {
  // Fees need no delivery: NONE.
  const planned = fulfillmentOrders.nodes.filter(
    ({ status, deliveryMethod }) => status !== 'CANCELLED' && deliveryMethod?.methodType !== 'NONE',
  );
  const [work] = planned;
  if (work === undefined) throw new MappingError('value_missing', 'fulfillmentOrders');
  const places = new Set(planned.map(({ assignedLocation }) => assignedLocation.location?.id));
  // One ticket is for one kitchen.
  if (places.size > 1) throw new MappingError('location_unmapped', 'fulfillmentOrders');
  return work;
}

function readContents(order: Order): Pick<OrderInput, 'items' | 'money' | 'fees' | 'taxes' | 'discounts'> {
  const { currencyCode: currency, lineItems } = order;
  if (lineItems.pageInfo.hasNextPage) throw new MappingError('value_missing', 'lineItems.101');
  const minor = ({ shopMoney }: Bag, field: string): number => toMinorUnits(shopMoney.amount, currency, field);
  const priceOf = (line: Line): number => minor(line.originalUnitPriceSet, 'originalUnitPriceSet');
  const costOf = (lines: readonly Line[]): number =>
    lines.reduce((sum, line) => sum + line.currentQuantity * priceOf(line), 0);

  const tip = minor(order.totalTipReceivedSet, 'totalTipReceivedSet');
  // Shopify lists the tip as a line too, which is in no subtotal.
  const isTip = (line: Line): boolean => !line.sku && !line.requiresShipping && tip > 0 && costOf([line]) === tip;
  const lines = lineItems.nodes.filter((line) => line.currentQuantity > 0 && !isTip(line));
  const isFee = ({ sku }: Line): boolean => FEES.has(sku ?? '');
  const dishes = lines.filter((line) => !isFee(line));
  const delivery = {
    name: order.shippingLine?.title,
    amount: minor(order.currentShippingPriceSet, 'currentShippingPriceSet'),
  };
  const fees = [...lines.filter(isFee).map((line) => ({ name: line.name, amount: costOf([line]) })), delivery];
  // Their subtotal is after the discounts, and ours is before them.
  const discount = costOf(lines) - minor(order.currentSubtotalPriceSet, 'currentSubtotalPriceSet');
  const tax = minor(order.currentTotalTaxSet, 'currentTotalTaxSet');
  const taxes = order.currentTaxLines.map(({ title, ratePercentage, priceSet }) => ({
    name: title,
    amount: minor(priceSet, 'currentTaxLines'),
    rate: ratePercentage,
  }));
  return {
    items: toItems(dishes, priceOf),
    money: {
      subtotal: costOf(dishes),
      tax,
      tip,
      fee: sum(fees),
      total: minor(order.currentTotalPriceSet, 'currentTotalPriceSet'),
      currency,
      pricesIncludeTax: order.taxesIncluded,
    },
    fees,
    // The lines may lack the tax of the delivery.
    taxes: sum(taxes) === tax ? taxes : null,
    discounts: [{ name: order.discountCodes.join(', '), amount: discount }],
  };
}

const sum = (parts: readonly { amount: number }[]): number => parts.reduce((total, { amount }) => total + amount, 0);

/** The lines of a bundle become one item with modifiers. */
function toItems(lines: readonly Line[], priceOf: (line: Line) => number): OrderInput['items'] {
  const bundles = Map.groupBy(lines, ({ lineItemGroup }) => lineItemGroup?.id);
  return lines.flatMap((line) => {
    const { lineItemGroup: bundle } = line;
    if (bundle === null) return { ...toItem(line), unitPrice: priceOf(line) };
    const parts = bundles.get(bundle.id) ?? [];
    if (parts[0] !== line) return [];
    // A part of a bundle may have been refunded. Then its parts are listed for one bundle.
    const isWhole = parts.every(({ currentQuantity }) => currentQuantity % bundle.quantity === 0);
    const quantity = isWhole ? bundle.quantity : 1;
    return {
      serviceItemId: bundle.variantSku ?? '',
      name: bundle.title,
      quantity,
      unitPrice: 0,
      notes: parts.flatMap((part) => notesIn(part.customAttributes)).join('; '),
      ageRestricted: parts.some(({ sku }) => AGE_RESTRICTED.has(sku ?? '')),
      modifiers: parts.map((part) => ({
        serviceModifierId: part.sku ?? '',
        name: part.name,
        quantity: part.currentQuantity / quantity,
        unitPrice: priceOf(part),
        modifiers: modifiersIn(part.customAttributes),
      })),
    };
  });
}

const toItem = ({ sku, name, currentQuantity, customAttributes }: Line) => ({
  serviceItemId: sku ?? '',
  name,
  quantity: currentQuantity,
  notes: notesIn(customAttributes).join('; '),
  ageRestricted: AGE_RESTRICTED.has(sku ?? ''),
  modifiers: modifiersIn(customAttributes),
});

const textOf = ({ key, value }: Attribute): string => `${key}: ${value ?? ''}`;

/** What a customer chose. Its price is in that of the line. */
const modifiersIn = (attributes: readonly Attribute[]): Modifier[] =>
  attributes.flatMap((attribute) => {
    const id = MODIFIERS.get(textOf(attribute));
    return id === undefined ? [] : [{ serviceModifierId: id, name: attribute.value ?? '', quantity: 1 }];
  });

/** Everything else that a customer wrote. Attributes that begin with _ are for the shop's own programs. */
const notesIn = (attributes: readonly Attribute[]): string[] =>
  attributes
    .filter(({ key }) => key !== WANTED_AT && !key.startsWith('_'))
    .map(textOf)
    .filter((text) => !MODIFIERS.has(text));
