import { z } from 'zod';
import type { ToastRestaurant } from './open-toast-restaurant.ts';
import { ToastError } from './toast-error.ts';

// The accepted fields of the orders API 2.9.0: https://doc.toasttab.com/openapi/orders/operation/ordersPost/, read on
// 2026-11-23.
// Whether unknown fields are refused is not documented; they are refused here, to find typing errors. Of a special
// request the schema requires an item, and the guide's example has none; here the schema is held to.

const Time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}$/);
const EntityType = z.string().optional();
/** `{authority-name}:{identifier}`, of up to 16 and 256 characters. */
const ExternalId = z.string().regex(/^[^:]{1,16}:.{1,256}$/su);
const Reference = z.strictObject({ guid: z.guid(), entityType: EntityType });
const Amount = z.number().nonnegative();

/**
 * What the menu has, by one id of two: "You cannot submit both identifiers."
 * https://doc.toasttab.com/doc/devguide/apiUsingMultiLocationIdsInOrders.html
 */
const MenuReference = z
  .strictObject({ guid: z.guid().optional(), multiLocationId: z.string().optional(), entityType: EntityType })
  .refine(({ guid, multiLocationId }) => (guid === undefined) !== (multiLocationId === undefined), {
    error: 'has neither guid nor multiLocationId, or both',
  });

const Selection = z.strictObject({
  entityType: EntityType,
  externalId: ExternalId.optional(),
  item: MenuReference,
  itemGroup: MenuReference.optional(),
  optionGroup: MenuReference.optional(),
  quantity: z.number().positive(),
  selectionType: z.enum(['NONE', 'SPECIAL_REQUEST']).optional(),
  displayName: z.string().min(1).max(1000).optional(),
  get modifiers() {
    return z.array(Selection).optional();
  },
});

type Thing = { guid: string };
export type ToastSelection = Omit<z.infer<typeof Selection>, 'item' | 'itemGroup' | 'optionGroup' | 'modifiers'> & {
  item: Thing;
  itemGroup: Thing | undefined;
  optionGroup: Thing | undefined;
  modifiers: ToastSelection[];
};

const Customer = z.strictObject({
  entityType: EntityType,
  firstName: z.string().min(1),
  lastName: z.string().min(1),
  email: z
    .string()
    .max(53)
    .regex(/^[\x21-\x7e]+@[\x21-\x7e]+$/)
    .includes('.'),
  phone: z.string().regex(/^[\d-]+$/),
  phoneCountryCode: z
    .string()
    .regex(/^\d{1,3}$/)
    .optional(),
});

const Payment = z.strictObject({
  entityType: EntityType,
  type: z.literal('OTHER'),
  otherPayment: Reference,
  amount: Amount,
  tipAmount: Amount,
  amountTendered: Amount.optional(),
  paidDate: Time.optional(),
});

const Check = z.strictObject({
  entityType: EntityType,
  externalId: ExternalId.optional(),
  tabName: z.string().max(255).optional(),
  displayNumber: z.string().optional(),
  customer: Customer.optional(),
  selections: z.array(Selection).min(1),
  payments: z.array(Payment).optional(),
  appliedServiceCharges: z
    .array(z.strictObject({ serviceCharge: Reference, chargeAmount: Amount.optional() }))
    .optional(),
  // https://doc.toasttab.com/doc/devguide/apiDiscountingOrders.html, read on 2026-11-23
  appliedDiscounts: z.array(z.strictObject({ discount: Reference, discountAmount: Amount.optional() })).optional(),
});

const DeliveryInfo = z.strictObject({
  address1: z.string().min(1),
  address2: z.string().optional(),
  city: z.string().min(1),
  state: z.string().regex(/^[A-Z]{2}$/),
  zipCode: z.string().min(1),
  country: z
    .string()
    .regex(/^[A-Z]{2}$/)
    .optional(),
  latitude: z.number().optional(),
  longitude: z.number().optional(),
  notes: z.string().optional(),
});

const Order = z.strictObject({
  entityType: EntityType,
  externalId: ExternalId.optional(),
  diningOption: Reference,
  checks: z.array(Check).length(1),
  deliveryInfo: DeliveryInfo.optional(),
  promisedDate: Time.nullish(),
  openedDate: Time.optional(),
  numberOfGuests: z.int().optional(),
});
type ToastCheck = Omit<z.infer<typeof Check>, 'selections'> & { selections: ToastSelection[] };
/** An order whose selections name all by GUID, however they came. */
export type ToastOrder = Omit<z.infer<typeof Order>, 'checks'> & { checks: ToastCheck[] };

/** @throws ToastError that names the wrong field: 404 for what the restaurant does not have, 400 for all else */
export function readToastOrder(json: unknown, restaurant: ToastRestaurant): ToastOrder {
  const { data, error } = Order.safeParse(json);
  if (data === undefined) {
    const issues = error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw new ToastError(400, `Invalid order: ${issues.join('; ')}`);
  }
  const order = {
    ...data,
    checks: data.checks.map((check) => ({
      ...check,
      selections: check.selections.map((selection) => byGuid(selection, restaurant)),
    })),
  };
  const behavior = restaurant.diningOptions.get(order.diningOption.guid);
  if (behavior === undefined) throw new ToastError(404, 'diningOption was not found');
  if (behavior === 'DELIVERY' && order.deliveryInfo === undefined) {
    throw new ToastError(400, 'deliveryInfo is required for delivery');
  }
  if (order.promisedDate && order.openedDate && Date.parse(order.promisedDate) < Date.parse(order.openedDate)) {
    throw new ToastError(400, 'promisedDate is earlier than openedDate');
  }
  for (const check of order.checks) checkCheck(check, restaurant);
  return order;
}

function byGuid(selection: z.infer<typeof Selection>, restaurant: ToastRestaurant): ToastSelection {
  const { item, itemGroup, optionGroup, modifiers = [], ...others } = selection;
  const ids = [...restaurant.multiLocationIds];
  const named = (reference: z.infer<typeof MenuReference>): Thing => {
    const [guid = 'unknown'] = ids.find(([, id]) => id === reference.multiLocationId) ?? [];
    return { guid: reference.guid ?? guid };
  };
  return {
    ...others,
    item: named(item),
    itemGroup: itemGroup && named(itemGroup),
    optionGroup: optionGroup && named(optionGroup),
    modifiers: modifiers.map((modifier) => byGuid(modifier, restaurant)),
  };
}

function checkCheck(check: ToastCheck, restaurant: ToastRestaurant): void {
  const { customer, selections, payments = [], appliedServiceCharges = [], appliedDiscounts = [] } = check;
  if (customer === undefined) throw new ToastError(400, 'customer is required for takeout and delivery');
  const { phone, phoneCountryCode } = customer;
  if (phoneCountryCode === undefined && phone.replaceAll('-', '').length !== 10) {
    throw new ToastError(400, 'phone must have exactly 10 digits');
  }
  for (const selection of selections) checkSelection(selection, restaurant);
  for (const { otherPayment, amount, tipAmount } of payments) {
    if (otherPayment.guid !== restaurant.alternatePayment) throw new ToastError(404, 'otherPayment was not found');
    for (const value of [amount, tipAmount]) toMinor(value, restaurant);
  }
  for (const { serviceCharge, chargeAmount } of appliedServiceCharges) {
    if (serviceCharge.guid !== restaurant.openServiceCharge) throw new ToastError(404, 'serviceCharge was not found');
    if (chargeAmount === undefined) throw new ToastError(400, 'chargeAmount is required for an open service charge');
    toMinor(chargeAmount, restaurant);
  }
  for (const { discount, discountAmount } of appliedDiscounts) {
    if (discount.guid !== restaurant.openDiscount) throw new ToastError(404, 'discount was not found');
    if (discountAmount === undefined) throw new ToastError(400, 'discountAmount is required for an open discount');
    toMinor(discountAmount, restaurant);
  }
  if (appliedDiscounts.length > 1) throw new ToastError(400, 'the discount is not allowed with other discounts');
}

function checkSelection(selection: ToastSelection, restaurant: ToastRestaurant): void {
  const { item, itemGroup, optionGroup, quantity, modifiers } = selection;
  checkRequest(selection);
  if (itemGroup === undefined) throw new ToastError(400, 'item and itemGroup are required');
  if (optionGroup !== undefined) throw new ToastError(400, 'optionGroup is for modifiers');
  const dish = restaurant.dishes.get(item.guid);
  if (dish?.groups.has(itemGroup.guid) !== true) throw new ToastError(404, 'item was not found in its itemGroup');
  for (const modifier of modifiers) checkModifier(modifier, quantity, restaurant);
}

function checkModifier(modifier: ToastSelection, quantity: number, restaurant: ToastRestaurant): void {
  if (modifier.quantity !== quantity) throw new ToastError(400, "a modifier's quantity is not its item's");
  checkRequest(modifier);
  const { item, optionGroup } = modifier;
  if (optionGroup === undefined) throw new ToastError(400, 'item and optionGroup are required');
  const option = restaurant.modifiers.get(item.guid);
  if (option?.groups.has(optionGroup.guid) !== true) throw new ToastError(404, 'item was not found in its optionGroup');
  for (const nested of modifier.modifiers) checkModifier(nested, quantity, restaurant);
}

function checkRequest(selection: ToastSelection): void {
  if (!isRequest(selection)) return;
  const { displayName, modifiers } = selection;
  if (displayName === undefined) throw new ToastError(400, 'a special request wants a displayName');
  if (modifiers.length > 0) throw new ToastError(400, 'a special request has no modifiers');
}

export function isRequest({ selectionType }: ToastSelection): boolean {
  return selectionType === 'SPECIAL_REQUEST';
}

/** @throws ToastError if an amount has more digits than its currency */
export function toMinor(amount: number, { digits }: ToastRestaurant): number {
  const minor = Math.round(amount * 10 ** digits);
  if (minor / 10 ** digits !== amount) throw new ToastError(400, `an amount has more than ${digits} decimals`);
  return minor;
}
