import { randomBytes, randomInt, randomUUID } from 'node:crypto';

/** A dish: its price and its groups in the menu. A modifier is in modifier groups. */
export type Dish = { name: string; price: number; groups: ReadonlySet<string> };

export type ToastRestaurant = {
  guid: string;
  /** Digits of the currency, which Toast itself never names. */
  digits: number;
  diningOptions: ReadonlyMap<string, 'TAKE_OUT' | 'DELIVERY'>;
  dishes: ReadonlyMap<string, Dish>;
  modifiers: ReadonlyMap<string, Dish>;
  /** The other id of each dish, modifier and group, by its GUID. */
  multiLocationIds: ReadonlyMap<string, string>;
  alternatePayment: string;
  /** A service charge with the order's own amount, not taxed. */
  openServiceCharge: string;
  /** A discount of checks with the order's own amount, not allowed with other discounts. */
  openDiscount: string;
  /** A secret for each subscription. */
  secrets: { guest_order_status: string; order_updated: string; restaurant_availability: string };
};

const DIGITS: Readonly<Record<string, number>> = { JPY: 0, KWD: 3 };

/** Makes a restaurant that serves `sampleOrder`'s items, and an online ordering client's settings for it. */
export function openToastRestaurant(currency: string, baseUrl: string) {
  const multiLocationIds = new Map<string, string>();
  const newGuid = (): string => {
    const guid = randomUUID();
    multiLocationIds.set(guid, `5000000${String(randomInt(1e11)).padStart(11, '0')}`);
    return guid;
  };
  const mains = newGuid();
  const drinks = newGuid();
  const extras = newGuid();
  const dishes = new Map<string, Dish>();
  const modifiers = new Map<string, Dish>();
  const itemMap: Record<string, object> = {};

  const serve = (id: string, itemGroup: string, name: string, price: number): void => {
    if (Object.hasOwn(itemMap, id)) return;
    const item = newGuid();
    dishes.set(item, { name, price, groups: new Set([itemGroup]) });
    itemMap[id] = { item, itemGroup };
  };
  const offer = (id: string, name: string, price: number): void => {
    if (Object.hasOwn(itemMap, id)) return;
    const item = newGuid();
    modifiers.set(item, { name, price, groups: new Set([extras]) });
    itemMap[id] = { item, optionGroup: extras };
  };
  serve('burger-classic', mains, 'Classic Burger', 1290);
  serve('fries-sweet-potato', mains, 'Sweet Potato Fries', 450);
  serve('beer-pale-ale', drinks, 'Pale Ale 0.33 l', 480);
  offer('cheddar', 'Extra cheddar', 150);
  offer('no-onions', 'No onions', 0);
  const specialRequestItem = { item: newGuid(), itemGroup: mains, optionGroup: extras };
  const request = { name: 'Special request', price: 0 };
  dishes.set(specialRequestItem.item, { ...request, groups: new Set([mains]) });
  modifiers.set(specialRequestItem.item, { ...request, groups: new Set([extras]) });

  const diningOptionGuids = { pickup: randomUUID(), delivery: randomUUID() };
  const restaurant: ToastRestaurant = {
    guid: randomUUID(),
    digits: DIGITS[currency] ?? 2,
    diningOptions: new Map([
      [diningOptionGuids.pickup, 'TAKE_OUT'],
      [diningOptionGuids.delivery, 'DELIVERY'],
    ]),
    dishes,
    modifiers,
    multiLocationIds,
    alternatePayment: randomUUID(),
    openServiceCharge: randomUUID(),
    openDiscount: randomUUID(),
    secrets: {
      guest_order_status: randomBytes(24).toString('base64'),
      order_updated: randomUUID(),
      restaurant_availability: randomUUID(),
    },
  };
  const settings = {
    baseUrl,
    clientId: randomBytes(24).toString('base64url'),
    clientSecret: randomBytes(48).toString('base64url'),
    restaurantGuid: restaurant.guid,
    webhookSecret: Object.values(restaurant.secrets),
    diningOptionGuids,
    alternatePaymentGuid: restaurant.alternatePayment,
    feeServiceChargeGuid: restaurant.openServiceCharge,
    discountGuid: restaurant.openDiscount,
    namingAuthority: 'EXPEDITER-TEST',
    defaultState: 'BE',
    itemMap,
    specialRequestItem,
  };
  const sell = (id: string, name: string, price: number): void => serve(id, mains, name, price);
  return { restaurant, settings, menu: { sell, offer } };
}
