/**
 * The documented body of an order: https://developers.deliverect.com/page/channel-orders. Required fields of items:
 * https://docs.deliverect.com/doc/channel-api/operation/operation-post-parameter-order-parameter (read on 2026-11-23).
 * Undocumented fields are refused too, unlike perhaps at Deliverect, to find misspelt ones.
 */
export type DeliverectOrder = {
  channelOrderId: string;
  channelOrderDisplayId: string;
  orderType: number;
  deliveryIsAsap: boolean;
  pickupTime: string;
  deliveryTime?: string;
  placedTime?: string;
  courier: string;
  ageCheck?: boolean;
  deliveryAddress?: {
    street: string;
    streetNumber: string;
    postalCode: string;
    city: string;
    country: string;
    extraAddressInfo?: string;
  };
  tip?: number;
  driverTip?: number;
  /** A cancel of the order that has the same `channelOrderId`. */
  status?: 100;
  discountTotal?: number;
  discounts?: { amount: number }[];
  taxes?: { total: number }[];
  deliveryCost?: number;
  serviceCharge?: number;
  decimalDigits: number;
  payment: { amount: number; type: number; due?: number };
  orderIsAlreadyPaid?: boolean;
  items: DeliverectItem[];
  note?: string;
  customer?: { name?: string; phoneNumber?: string; email?: string; note?: string };
};

export type DeliverectItem = {
  plu: string;
  name: string;
  price: number;
  quantity: number;
  remark?: string;
  subItems?: DeliverectItem[];
};

/** The errors of a 400. */
export type FieldErrors = { orderFieldsErrors: Record<string, string>; orderPaymentErrors: Record<string, string> };

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isName: Check = (value) => typeof value === 'string' && value !== '';
const isInteger: Check = (value) => Number.isSafeInteger(value);
const isBoolean: Check = (value) => typeof value === 'boolean';
const isNumber: Check = (value) => typeof value === 'number';
/** UTC as yyyy-MM-ddTHH:mm:ssZ. The samples have fractions of a second. */
const isTime: Check = (value) =>
  typeof value === 'string' &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/.test(value) &&
  !Number.isNaN(Date.parse(value));
const oneOf =
  (...values: unknown[]): Check =>
  (value) =>
    values.includes(value);
const within =
  (least: number, most: number): Check =>
  (value) =>
    isInteger(value) && Number(value) >= least && Number(value) <= most;
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);

const REQUIRED: Record<string, Check> = {
  channelOrderId: isName,
  // "May go up to 12 characters": https://developers.deliverect.com/page/glossary-pos-orders
  channelOrderDisplayId: (value) => isName(value) && String(value).length <= 12,
  orderType: within(1, 5),
  deliveryIsAsap: isBoolean,
  pickupTime: isTime,
  courier: isName,
  decimalDigits: within(0, 4),
  items: (value) => Array.isArray(value) && value.length > 0 && value.every(isItem),
};

const OPTIONAL: Record<string, Check> = {
  deliveryTime: isTime,
  placedTime: isTime,
  ageCheck: isBoolean,
  orderIsAlreadyPaid: isBoolean,
  note: isText,
  ...Object.fromEntries(
    ['deliveryCost', 'deliveryCostTax', 'serviceCharge', 'serviceChargeTax', 'tip', 'driverTip', 'bagFee'].map(
      (name) => [name, isInteger],
    ),
  ),
  // "Should be specified as a minus value."
  discountTotal: (value) => isInteger(value) && Number(value) <= 0,
  status: oneOf(100),
  // Of a cancel, by the example of the channel API's.
  cancellationReason: isText,
  // https://developers.deliverect.com/v3.0-ordering-experience/docs/how-to-apply-discounts
  discounts: listOf((discount) =>
    hasFields(
      discount,
      {
        type: oneOf('order_percent_off', 'order_flat_off', 'item_percent_off', 'item_flat_off', 'unknown'),
        provider: oneOf('restaurant', 'channel', 'shared', 'loyalty', 'unknown'),
        name: isText,
        referenceId: isInteger,
        value: isInteger,
        amount: within(0, Number.MAX_SAFE_INTEGER),
      },
      { channelDiscountCode: isText, amountRestaurant: isInteger, amountChannel: isInteger },
    ),
  ),
  taxes: listOf((tax) => hasFields(tax, {}, { taxClassId: isInteger, name: isText, total: isInteger })),
  customer: (value) =>
    hasFields(
      value,
      {},
      { name: isText, companyName: isText, phoneNumber: isText, email: isText, tin: isText, note: isText },
    ),
  // "Required if delivery is done by restaurant or a dispatch provider":
  // https://developers.deliverect.com/page/glossary-channel-orders
  deliveryAddress: (value) =>
    hasFields(
      value,
      { street: isName, streetNumber: isName, postalCode: isName, city: isName, country: isName },
      {
        area: isText,
        extraAddressInfo: isText,
        coordinates: (at) => hasFields(at, { latitude: isNumber, longitude: isNumber }, {}),
      },
    ),
};

/** @returns undefined for an order that is as documented */
export function checkDeliverectOrder(json: unknown): FieldErrors | undefined {
  const order: Record<string, unknown> = isObject(json) ? json : {};
  const { payment: paid, ...others } = order;
  const orderFieldsErrors = errorsIn(others, REQUIRED, OPTIONAL);
  if (order['orderType'] === 2 && order['deliveryAddress'] === undefined) {
    orderFieldsErrors['deliveryAddress'] = 'Missing from the payload.';
  }
  if (order['orderType'] === 2 && order['deliveryIsAsap'] === false && order['deliveryTime'] === undefined) {
    orderFieldsErrors['deliveryTime'] = 'Missing from the payload.';
  }
  const payment = isObject(paid) ? paid : {};
  // A channel sends 0, credit card online, or 1, cash: https://developers.deliverect.com/page/payment-types
  const orderPaymentErrors = errorsIn(payment, { amount: isInteger, type: oneOf(0, 1) }, { due: isInteger });
  const errors = { orderFieldsErrors, orderPaymentErrors };
  const count = (): number => Object.values(errors).flatMap(Object.keys).length;
  // Deliverect documents no check of the discount's sum. The till would find it too late.
  if (count() === 0 && order['discountTotal'] !== undefined) {
    const { discountTotal = 0, discounts = [], payment } = json as DeliverectOrder;
    const named = discounts.reduce((sum, { amount }) => sum + amount, 0);
    if (discounts.length > 0 && named !== -discountTotal) orderFieldsErrors['discounts'] = 'Not the discountTotal.';
    if (payment.amount !== addUp(json as DeliverectOrder)) orderPaymentErrors['amount'] = 'Not what the order costs.';
  }
  return count() === 0 ? undefined : errors;
}

/** What an order costs: https://developers.deliverect.com/page/tax-exclusive-orders */
export function addUp(order: DeliverectOrder): number {
  const { items, deliveryCost = 0, serviceCharge = 0, tip = 0, driverTip = 0, discountTotal = 0, taxes = [] } = order;
  const tax = taxes.reduce((sum, { total }) => sum + total, 0);
  return priceOf(items) + deliveryCost + serviceCharge + tip + driverTip + discountTotal + tax;
}

function priceOf(items: readonly DeliverectItem[]): number {
  return items.reduce((sum, { price, quantity, subItems = [] }) => sum + (price + priceOf(subItems)) * quantity, 0);
}

function isItem(value: unknown): boolean {
  return hasFields(
    value,
    { plu: isName, name: isText, price: isInteger, quantity: within(1, Number.MAX_SAFE_INTEGER) },
    { remark: isText, subItems: listOf(isItem) },
  );
}

function hasFields(value: unknown, required: Record<string, Check>, optional: Record<string, Check>): boolean {
  return isObject(value) && Object.keys(errorsIn(value, required, optional)).length === 0;
}

function errorsIn(
  object: Record<string, unknown>,
  required: Record<string, Check>,
  optional: Record<string, Check>,
): Record<string, string> {
  const known = { ...required, ...optional };
  const errors: Record<string, string> = Object.fromEntries(
    Object.keys(object)
      .filter((name) => !(name in known))
      .map((name) => [name, 'Not documented.']),
  );
  for (const [name, check] of Object.entries(known)) {
    const value = object[name];
    if (value === undefined && name in required) errors[name] = 'Missing from the payload.';
    // How a field of the wrong type is refused is not documented.
    else if (value !== undefined && !check(value)) errors[name] = 'Not valid.';
  }
  return errors;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
