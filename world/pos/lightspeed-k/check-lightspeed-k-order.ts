/**
 * The body of `POST /o/op/1/order/toGo` as Lightspeed documents it:
 * https://api-docs.lsk.lightspeed.app/operation/operation-apeplacetogoorder, read on 2026-11-23
 */
export type ToGoOrder = {
  businessLocationId: Digits;
  thirdPartyReference: string;
  endpointId: string;
  customerInfo: { firstName: string; lastName?: string; email?: string; contactNumberAsE164?: string };
  orderCollectionTimeAsIso8601?: string;
  orderNote?: string;
  accountProfileCode?: string;
  collectionCode?: string;
  payment?: { paymentMethod?: string; paymentAmount: Digits; tipAmount?: Digits };
  items?: ToGoItem[];
  deliveryAddress?: { addressLine1?: string; addressLine2?: string; zip?: string; city?: string };
};

export type ToGoItem = {
  quantity: number;
  sku: string;
  modifiers?: { modifierId: string }[];
  subItems?: ToGoItem[];
  discountCode?: string;
  discountAmountOverride?: Digits;
};

/** A number as text. A double could change an int64 or an amount. */
export type Digits = { digits: string };

/** An error as Spring reports it: the field, and the rule that it breaks. */
export type FieldError = { field: string; code: string };

type Check = (value: unknown) => boolean;
type Fields = Record<string, Check>;

const EXACT = new Set([
  'businessLocationId',
  'paymentAmount',
  'tipAmount',
  'customItemPrice',
  'discountAmountOverride',
]);
const NANOS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$/;

/** Parses JSON, with those numbers as their digits. `{}` if it is not a JSON object. */
export function readToGoOrder(text: string): Record<string, unknown> {
  try {
    const json: unknown = JSON.parse(text, (key: string, value: unknown, context?: { source?: string }) =>
      EXACT.has(key) && typeof value === 'number' ? { digits: context?.source ?? '' } : value,
    );
    return isObject(json) ? json : {};
  } catch {
    return {};
  }
}

/**
 * Lists the rules that an order breaks. Undocumented fields are refused too, to find misspelt ones.
 * @param decimals of the location's currency
 */
export function checkToGoOrder(order: Record<string, unknown>, decimals: number): FieldError[] {
  const isText: Check = (value) => typeof value === 'string';
  const text = (least: number, most = Infinity): Check => {
    return (value) => typeof value === 'string' && value.length >= least && value.length <= most;
  };
  const isInt64: Check = (value) => isDigits(value) && /^[1-9]\d{0,18}$/.test(value.digits);
  const isInt32 = (least: number): Check => {
    return (value) => Number.isInteger(value) && Number(value) >= least && Number(value) < 2 ** 31;
  };
  const isAmount: Check = (value) => {
    const form = decimals === 0 ? /^\d+$/ : new RegExp(`^\\d+(\\.\\d{1,${decimals}})?$`);
    return isDigits(value) && form.test(value.digits);
  };
  const isFuture: Check = (value) => NANOS.test(String(value)) && Date.parse(String(value)) > Date.now();
  const isBoolean: Check = (value) => typeof value === 'boolean';
  const listOf = (fits: Check): Check => {
    return (value) => Array.isArray(value) && value.every(fits);
  };
  const shape = (required: Fields, optional: Fields): Check => {
    return (value) => isObject(value) && errorsIn(value, required, optional).length === 0;
  };

  // Ids of production instructions are int64, sent as strings.
  const isModifier = shape({ modifierId: (value) => /^\d{1,19}$/.test(String(value)) }, {});
  const inLine: Fields = {
    customItemName: isText,
    customItemPrice: isAmount,
    modifiers: listOf(isModifier),
    subItems: (value) => listOf(isSubItem)(value),
  };
  const isSubItem: Check = shape({ quantity: isInt32(1), sku: text(1, 25) }, inLine);
  // "Must be used in conjunction with a discountCode", says the schema of the same line in a local order.
  const isItem: Check = (value) => {
    const discounts = { discountCode: text(1), discountAmountOverride: isAmount };
    const fits = shape({ quantity: isInt32(1), sku: text(1, 25) }, { ...inLine, ...discounts })(value);
    return fits && isObject(value) && (value['discountAmountOverride'] === undefined || 'discountCode' in value);
  };

  const customer: Fields = {
    lastName: isText,
    thirdPartyReference: isText,
    email: isText,
    contactNumberAsE164: (value) => /^\+[1-9]\d{1,14}$/.test(String(value)),
    notes: isText,
    salutation: isText,
    sendEmailReceipts: isBoolean,
    emailNotification: (value) => ['ENABLE', 'DISABLE', 'DONT_CHANGE'].includes(String(value)),
  };
  const { customerInfo } = order;
  const errors = errorsIn(
    order,
    {
      businessLocationId: isInt64,
      thirdPartyReference: text(1, 48),
      endpointId: isText,
      customerInfo: shape({ firstName: text(1, 128) }, customer),
    },
    {
      orderNote: isText,
      accountProfileCode: isText,
      maxTimeToAttemptOrderDeliverToPos: isInt32(60_000),
      scheduledTimeForOrderAsIso8601: isFuture,
      orderCollectionTimeAsIso8601: isFuture,
      collectionCode: text(0, 8),
      payment: shape({ paymentAmount: isAmount }, { paymentMethod: isText, tipAmount: isAmount }),
      items: listOf(isItem),
      deliveryAddress: shape({}, { addressLine1: isText, addressLine2: isText, zip: isText, city: isText }),
    },
  );
  if (isObject(customerInfo) && customerInfo['thirdPartyReference'] && !customerInfo['email']) {
    errors.push({ field: 'customerInfo.thirdPartyReference', code: 'EmptyWithoutEmail' });
  }
  return errors;
}

function errorsIn(object: Record<string, unknown>, required: Fields, optional: Fields): FieldError[] {
  const known: Fields = { ...required, ...optional };
  const missing = Object.keys(required).filter((field) => object[field] === undefined);
  const wrong = Object.entries(object).filter(([field, value]) => known[field]?.(value) !== true);
  return [
    ...missing.map((field) => ({ field, code: 'NotNull' })),
    ...wrong.map(([field]) => ({ field, code: field in known ? 'Size' : 'Unknown' })),
  ];
}

function isDigits(value: unknown): value is Digits {
  return isObject(value) && typeof value['digits'] === 'string';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
