/** Turns orders of Vendure 3 into canonical orders: `ORDER_MODULE=./examples/platforms/vendure/map-order.ts`. */
import {
  fromHundredths,
  joinName,
  mapEnum,
  mapLocation,
  roundTogether,
  skip,
  type ErrorCode,
  type OrderInput,
  type PlatformError,
  type Skipped,
} from 'expediter-platform';

/** The signal has the order's code, which guests and staff see too. Remove the custom fields that your shop lacks. */
export const query = `query Order($code: String!) {
  orders(options: { filter: { code: { eq: $code } }, take: 1 }) {
    items {
      code state orderPlacedAt currencyCode totalWithTax
      channels { code pricesIncludeTax }
      customer { id firstName lastName emailAddress phoneNumber }
      shippingAddress { streetLine1 streetLine2 postalCode city province countryCode phoneNumber }
      shippingLines { discountedPrice discountedPriceWithTax shippingMethod { code name } }
      lines {
        quantity unitPrice unitPriceWithTax linePrice linePriceWithTax proratedLinePrice proratedLinePriceWithTax
        productVariant { sku name }
        customFields { note }
      }
      surcharges { description price priceWithTax }
      discounts { description }
      taxSummary { description taxRate taxTotal }
      customFields { note wantedAt }
      cancellations: history(options: { filter: { type: { eq: "ORDER_CANCELLATION" } }, sort: { id: DESC }, take: 1 }) {
        items { createdAt data }
      }
    }
  }
}`;

export const variables = (orderId: string) => ({ code: orderId });

/** A key of Vendure's dashboard (Settings > API keys), with the permission to read orders in all channels. */
export const headers = (token: string | undefined) => ({ 'vendure-api-key': token ?? '' });

/** Vendure answers a wrong key with FORBIDDEN of the whole query. */
export const errorCode = ({ path, extensions }: PlatformError): ErrorCode | undefined =>
  path?.length === 1 && extensions?.['code'] === 'FORBIDDEN' ? 'UNAUTHENTICATED' : undefined;

/** Our location for each channel, and our type for each shipping method. Orders of any other are held. */
const LOCATIONS = { berlin: 'berlin', austin: 'austin', tokyo: 'tokyo', manama: 'manama' };
const TYPES = { delivery: 'delivery', pickup: 'pickup' } as const;

type Net<Name extends string> = Record<Name | `${Name}WithTax`, number>;
/** An order of the answer to `query`. Amounts are hundredths of each currency, also of yen. */
export type VendureOrder = {
  code: string;
  state: string;
  orderPlacedAt: string | null;
  currencyCode: string;
  totalWithTax: number;
  channels: { code: string; pricesIncludeTax: boolean }[];
  customer: Record<'id' | 'firstName' | 'lastName' | 'emailAddress', string> & { phoneNumber: string | null };
  shippingAddress: { streetLine1: string } & Partial<
    Record<'streetLine2' | 'postalCode' | 'city' | 'province' | 'countryCode' | 'phoneNumber', string | null>
  >;
  shippingLines: (Net<'discountedPrice'> & { shippingMethod: { code: string; name: string } })[];
  lines: (Net<'unitPrice' | 'linePrice' | 'proratedLinePrice'> & {
    quantity: number;
    productVariant: { sku: string; name: string };
    customFields: { note: string | null };
  })[];
  surcharges: (Net<'price'> & { description: string })[];
  discounts: { description: string }[];
  taxSummary: { description: string; taxRate: number; taxTotal: number }[];
  customFields: { note: string | null; wantedAt: string | null };
  cancellations: { items: { createdAt: string; data: { reason?: string } }[] };
};
type Answer = { orders: { items: VendureOrder[] } };

/** When Vendure has cancelled an order. It sets all quantities to 0 then, so the rest of the order says nothing. */
export function cancelled({ orders }: Answer) {
  const [order] = orders.items;
  const [at] = order?.cancellations.items ?? [];
  return order?.state === 'Cancelled' && at ? { cancelledAt: at.createdAt, cancelReason: at.data.reason } : null;
}

export function toCanonicalOrder({ orders }: Answer): OrderInput | Skipped | null {
  const [order] = orders.items;
  if (order === undefined) return null;
  if (order.orderPlacedAt === null) return skip('unpaid');
  const { currencyCode: currency, customer, shippingAddress: to, shippingLines } = order;
  // Each order is in the default channel as well.
  const channel = order.channels.find(({ code }) => code !== '__default_channel__');
  // A key that may not read the channel sees only the default one.
  const locationId = mapLocation(channel?.code, LOCATIONS, 'channel');
  const pricesIncludeTax = channel?.pricesIncludeTax === true;
  const type = mapEnum(shippingLines[0]?.shippingMethod.code, TYPES, 'shippingMethod');
  /** Hundredths with the tax or without, as the channel's prices are. */
  const priced = <Name extends string>(of: Net<Name>, name: Name): number =>
    pricesIncludeTax ? of[`${name}WithTax`] : of[name];
  const amount = <Name extends string>(of: Net<Name>, name: Name): number =>
    fromHundredths(priced(of, name), currency, name);

  const lines = order.lines.filter(({ quantity }) => quantity > 0);
  // Of a coupon, each line may have a fraction of a yen, and their sum none.
  const sum = (name: 'linePrice' | 'proratedLinePrice'): number =>
    fromHundredths(
      lines.reduce((total, line) => total + priced(line, name), 0),
      currency,
      name,
    );
  const surcharges = order.surcharges.map((each) => ({ name: each.description, amount: amount(each, 'price') }));
  const credits = surcharges.filter((each) => each.amount < 0);
  // Vendure rounds each discount separately. What the lines lose is exact, also after a change.
  const discount =
    sum('linePrice') - sum('proratedLinePrice') - credits.reduce((total, each) => total + each.amount, 0);
  const names = [...order.discounts.map(({ description }) => description), ...credits.map(({ name }) => name)];
  // Vendure rounds a tax to hundredths, also of a yen.
  const taxes = roundTogether(
    order.taxSummary.map(({ taxTotal }) => taxTotal / 100),
    currency,
    'taxTotal',
  ).amounts;
  return {
    serviceOrderId: order.code,
    locationId,
    member: {
      id: customer.id,
      name: joinName(customer.firstName, customer.lastName),
      email: customer.emailAddress,
      phone: customer.phoneNumber ?? to.phoneNumber,
    },
    fulfillment: {
      type,
      destination:
        type === 'pickup'
          ? null
          : {
              line1: to.streetLine1,
              line2: to.streetLine2,
              postalCode: to.postalCode,
              city: to.city,
              region: to.province,
              country: to.countryCode,
            },
      requestedAt: order.customFields.wantedAt,
    },
    items: lines.map((line) => ({
      serviceItemId: line.productVariant.sku,
      name: line.productVariant.name,
      quantity: line.quantity,
      unitPrice: amount(line, 'unitPrice'),
      notes: line.customFields.note,
    })),
    money: {
      subtotal: sum('linePrice'),
      tip: 0,
      total: fromHundredths(order.totalWithTax, currency, 'totalWithTax'),
      currency,
      pricesIncludeTax,
    },
    discounts: discount === 0 ? [] : [{ name: names.join(', '), amount: discount }],
    fees: [
      ...shippingLines.map((each) => ({ name: each.shippingMethod.name, amount: amount(each, 'discountedPrice') })),
      ...surcharges.filter((each) => each.amount > 0),
    ],
    taxes: order.taxSummary.map(({ description: name, taxRate: rate }, nth) => ({
      name,
      rate,
      amount: taxes[nth] ?? 0,
    })),
    notes: order.customFields.note,
    placedAt: order.orderPlacedAt,
  };
}
