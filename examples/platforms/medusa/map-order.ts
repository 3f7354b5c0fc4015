/** Turns orders of Medusa 2 into canonical orders: `ORDER_MODULE=./examples/platforms/medusa/map-order.ts`. */
import {
  joinName,
  mapEnum,
  mapLocation,
  MappingError,
  roundTogether,
  skip,
  toMinorUnits,
  type FetchContext,
  type OrderInput,
  type Skipped,
} from 'expediter-platform';

const FIELDS = [
  'id,status,created_at,canceled_at,currency_code,email,metadata,total,credit_line_total',
  'customer.has_account,sales_channel.name,*shipping_address',
  'items.id,items.title,items.variant_title,items.variant_sku,items.metadata,items.quantity,items.unit_price',
  'items.is_tax_inclusive,*items.adjustments,*items.tax_lines',
  '*shipping_methods,*shipping_methods.tax_lines,shipping_methods.shipping_option.type.code',
].join();

/** The token is a secret API key. Medusa takes it as a user without a password. */
export const headers = (token: string | undefined) => ({ authorization: `Basic ${btoa(`${token}:`)}` });

export async function fetchOrder(orderId: string, { fetch }: FetchContext): Promise<Answer | null> {
  const answer = await fetch(`/admin/orders/${encodeURIComponent(orderId)}?fields=${FIELDS}`);
  return answer.ok ? ((await answer.json()) as Answer) : null;
}

/** Our location for each sales channel, our type for each type of a shipping option. An order of any other is held. */
const LOCATIONS = { 'Trattoria Nord': 'nord', 'Trattoria Süd': 'sued' };
const TYPES = { delivery: 'delivery', pickup: 'pickup' } as const;

type Texts<Name extends string> = Record<Name, string | null>;
type Taxed = { tax_lines: { code: string; description: string | null; rate: number; total: number }[] };
/** Storefronts write it, so a value may have any type. */
type Metadata = Record<string, unknown> | null;
/** What `FIELDS` selects. Amounts are decimals, which Medusa does not round: 8.875 % of 3.591 USD are 0.31870125. */
export type MedusaOrder = Texts<'canceled_at' | 'email'> & {
  id: string;
  status: string;
  created_at: string;
  currency_code: string;
  metadata: Metadata;
  total: number;
  credit_line_total: number;
  customer: { id: string; has_account: boolean } | null;
  sales_channel: { name: string } | null;
  shipping_address:
    | (Texts<'first_name' | 'last_name' | 'phone'> &
        Texts<'address_1' | 'address_2' | 'postal_code' | 'city' | 'province' | 'country_code'>)
    | null;
  items: (Taxed &
    Texts<'variant_title' | 'variant_sku'> & {
      id: string;
      title: string;
      quantity: number;
      unit_price: number;
      is_tax_inclusive: boolean;
      adjustments: { code: string | null; subtotal: number; total: number }[];
      metadata: Metadata;
    })[];
  shipping_methods: (Taxed & {
    name: string;
    total: number;
    tax_total: number;
    shipping_option: { type: { code: string } } | null;
  })[];
};
type Answer = { order: MedusaOrder };

/** Asked first, so that staff can cancel an order that cannot be read. */
export const cancelled = ({ order }: Answer) => order.canceled_at && { cancelledAt: order.canceled_at };

export function toCanonicalOrder({ order }: Answer): OrderInput | Skipped {
  if (order.status === 'draft') return skip('draft');
  const { customer, shipping_address: to, shipping_methods: ways } = order;
  const currency = order.currency_code.toUpperCase();
  const type = mapEnum(ways[0]?.shipping_option?.type.code, TYPES, 'shipping_option.type');
  // Medusa gives the items in any order.
  const items = order.items.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const pricesIncludeTax = items.every((item) => item.is_tax_inclusive);
  // Then no sum of the prices would fit.
  if (!pricesIncludeTax && items.some((item) => item.is_tax_inclusive))
    throw new MappingError('enum_unmapped', 'items.is_tax_inclusive');

  const goods = { amount: sum(items, (item) => item.unit_price * item.quantity) };
  const reductions = group(
    items.flatMap((item) => item.adjustments),
    ({ code }) => code ?? 'Discount',
  ).map(([name, all]) => ({ name, amount: -sum(all, (each) => (pricesIncludeTax ? each.total : each.subtotal)) }));
  const fees = ways.map((way) => ({ name: way.name, amount: way.total - (pricesIncludeTax ? 0 : way.tax_total) }));
  const taxes = group(
    [...items, ...ways].flatMap((each) => each.tax_lines),
    ({ code, description }) => description ?? code,
  ).map(([name, all]) => ({ name, rate: all[0]?.rate, amount: sum(all, ({ total }) => total) }));
  round([goods, ...reductions, ...fees, ...(pricesIncludeTax ? [] : taxes)], currency);
  if (pricesIncludeTax) round(taxes, currency);

  return {
    serviceOrderId: order.id,
    locationId: mapLocation(order.sales_channel?.name, LOCATIONS, 'sales_channel'),
    member: {
      // Medusa has one customer for all orders of a guest's e-mail address.
      id: customer?.has_account ? customer.id : order.id,
      name: joinName(to?.first_name, to?.last_name),
      email: order.email,
      phone: to?.phone,
    },
    fulfillment: {
      type,
      destination:
        type === 'delivery' && to
          ? {
              line1: to.address_1 ?? '',
              line2: to.address_2,
              postalCode: to.postal_code,
              city: to.city,
              region: to.province,
              country: to.country_code?.toUpperCase(),
            }
          : null,
      requestedAt: textOf(order.metadata, 'wanted_at'),
    },
    items: items.map((item, nth) => ({
      serviceItemId: item.variant_sku ?? '',
      name: [item.title, item.variant_title].filter((text) => text && text !== 'Default variant').join(', '),
      quantity: item.quantity,
      unitPrice: toMinorUnits(item.unit_price, currency, `items.${nth}.unit_price`),
      notes: textOf(item.metadata, 'notes'),
    })),
    money: {
      subtotal: goods.amount,
      tip: 0,
      // Medusa takes refunds and gift cards from the total. The order costs as much as before.
      total: roundTogether([order.total + order.credit_line_total], currency, 'total').sum,
      currency,
      pricesIncludeTax,
    },
    discounts: reductions.map(({ name, amount }) => ({ name, amount: -amount })),
    fees,
    taxes,
    notes: textOf(order.metadata, 'notes'),
    placedAt: order.created_at,
  };
}

const textOf = (metadata: Metadata, key: string) => (typeof metadata?.[key] === 'string' ? metadata[key] : null);
const group = <Each>(list: Each[], key: (each: Each) => string) => [...Map.groupBy(list, key)];
const sum = <Each>(list: Each[], amount: (each: Each) => number) => list.reduce((all, each) => all + amount(each), 0);

/** Rounds amounts to minor units together, so that they still add up to the rounded total. */
function round(parts: { amount: number }[], currency: string): void {
  const { amounts } = roundTogether(
    parts.map(({ amount }) => amount),
    currency,
  );
  for (const [nth, part] of parts.entries()) part.amount = amounts[nth] ?? 0;
}
