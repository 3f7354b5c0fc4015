/**
 * The documented body of an order: https://www.hubrise.com/developers/api/orders (read on 2026-11-23). Unknown fields
 * are refused to find typing errors. HubRise's own behaviour is not documented.
 */
import { z } from 'zod';

/** Digits of the currencies that do not have two. */
const DIGITS: Record<string, number> = { JPY: 0, KWD: 3 };

/** An amount. Two decimals in every currency, as in HubRise's own library: https://github.com/HubRise/ruby-money */
const MONEY = /^(-?)(\d+)\.(\d\d) ([A-Z]{3})$/;

const SERVICE_TYPES = ['delivery', 'collection', 'eat_in'] as const;
export const ORDER_STATUSES = [
  'new',
  'received',
  'accepted',
  'in_preparation',
  'awaiting_shipment',
  'awaiting_collection',
  'in_delivery',
  'completed',
  'rejected',
  'cancelled',
  'delivery_failed',
];

const Decimal = z.string().regex(/^-?\d+(\.\d+)?$/);
const PrivateRef = z.string().max(255);
const Text = z.string().nullish();
const Time = z.iso.datetime({ offset: true });

/** The customer of a guest's order. */
const Customer = z.strictObject({
  email: Text,
  first_name: Text,
  last_name: Text,
  company_name: Text,
  phone: z
    .string()
    .regex(/^\+[1-9]\d{1,14}$/)
    .nullish(),
  phone_access_code: Text,
  address_1: Text,
  address_2: Text,
  postal_code: Text,
  city: Text,
  state: Text,
  country: z
    .string()
    .regex(/^[A-Z]{2}$/)
    .nullish(),
  latitude: Decimal.nullish(),
  longitude: Decimal.nullish(),
  delivery_notes: Text,
  sms_marketing: z.boolean().nullish(),
  email_marketing: z.boolean().nullish(),
});

/** A customer of a list. Those of guests have no private ref. */
export const HubriseCustomer = Customer.extend({ private_ref: PrivateRef.nullish() });

function shapeOf(currency: string) {
  const Money = z.string().refine((text) => MONEY.exec(text)?.[4] === currency, {
    error: `is not a valid monetary amount in ${currency}`,
  });
  const Option = z.strictObject({
    option_list_name: z.string().min(1),
    name: z.string().min(1),
    ref: Text,
    price: Money.nullish(),
    quantity: z.int().min(1).default(1),
    removed: z.boolean().nullish(),
  });
  const Item = z.strictObject({
    private_ref: PrivateRef.nullish(),
    product_name: z.string().min(1),
    sku_name: Text,
    sku_ref: Text,
    price: Money,
    quantity: Decimal,
    tax_rate: Decimal.nullish(),
    customer_notes: Text,
    options: z.array(Option).default([]),
  });
  const Charge = z.strictObject({ name: z.string().min(1), ref: Text, price: Money, tax_rate: Decimal.nullish() });
  // "Order Discounts": the value is taken off, so it is above zero.
  const Discount = z.strictObject({
    private_ref: PrivateRef.nullish(),
    name: z.string().min(1),
    ref: Text,
    price_off: Money.refine((text) => !text.startsWith('-'), { error: 'is negative' }),
  });
  const Payment = z.strictObject({
    name: Text,
    ref: Text,
    amount: Money,
    info: z.record(z.string(), z.unknown()).nullish(),
  });
  return z.strictObject({
    ref: Text,
    private_ref: PrivateRef.nullish(),
    status: z.enum(ORDER_STATUSES),
    service_type: z.enum(SERVICE_TYPES).nullish(),
    service_type_ref: Text,
    // "Always in the future or null": https://www.hubrise.com/developers/integration-guide#encoding-orders
    expected_time: Time.refine((time) => Date.parse(time) > Date.now(), { error: 'is not in the future' }).nullish(),
    customer_notes: Text,
    seller_notes: Text,
    collection_code: Text,
    items: z.array(Item).default([]),
    charges: z.array(Charge).default([]),
    discounts: z.array(Discount).default([]),
    // "You should always pass at least one payment": without one an order counts as unpaid.
    payments: z.array(Payment).min(1, { error: 'at least one payment is required' }),
    customer: Customer.nullish(),
    customer_id: z.string().nullish(),
    customer_list_id: z.string().nullish(),
    customer_private_ref: Text,
  });
}

export type HubriseOrder = z.infer<ReturnType<typeof shapeOf>>;

/** Returns the order, or HubRise's objections by field. */
export function checkHubriseOrder(
  json: unknown,
  currency: string,
): { order: HubriseOrder } | { errors: { field: string; message: string }[] } {
  const result = shapeOf(currency).safeParse(json);
  if (result.success) {
    const { customer_id, customer_list_id, customer_private_ref, customer } = result.data;
    const named = [customer_id, customer_list_id ?? customer_private_ref, customer];
    const isTwice = named.filter((each) => each !== undefined && each !== null).length > 1;
    return isTwice
      ? { errors: [{ field: 'customer', message: 'cannot be used with customer_id' }] }
      : { order: result.data };
  }
  return { errors: result.error.issues.map(({ path, message }) => ({ field: path.join('.'), message })) };
}

/** Parses an amount into minor units: "12.90 EUR" is 1290, "900.00 JPY" 900, "1.29 KWD" 1290. */
export function readMoney(text: string): number {
  const [, sign = '', whole = '', decimals = '', currency = ''] = MONEY.exec(text) ?? [];
  const hundredths = Number(whole) * 100 + Number(decimals);
  return (sign === '-' ? -1 : 1) * hundredths * 10 ** ((DIGITS[currency] ?? 2) - 2);
}

/** The total: "Calculated by HubRise from items, charges and discounts." */
export function totalOf({ items, charges, discounts }: HubriseOrder, currency: string): string {
  const cents = (text: string | null | undefined) => Math.round(Number((text ?? '0').split(' ')[0]) * 100);
  const sum = [
    ...items.map(({ price, quantity, options }) => {
      const extras = options.reduce((sum, option) => sum + cents(option.price) * option.quantity, 0);
      return (cents(price) + extras) * Number(quantity);
    }),
    ...charges.map(({ price }) => cents(price)),
    ...discounts.map(({ price_off }) => -cents(price_off)),
  ].reduce((sum, part) => sum + part, 0);
  return `${(sum / 100).toFixed(2)} ${currency}`;
}
