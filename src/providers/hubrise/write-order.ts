import { discountsOf, sumItems } from '../../core/domain/money.ts';
import { GiveUp } from '../../core/domain/errors.ts';
import { flattenModifiers } from '../../core/domain/flatten-modifiers.ts';
import type { CanonicalOrder, KitchenOrder, Modifier } from '../../core/domain/order.ts';
import { cutText, orderNote } from '../order-texts.ts';
import { entryOf } from '../shared-settings.ts';
import type { Settings } from './payloads.ts';
import { NAME_MAX, NOTE_MAX, writeCustomer } from './write-customer.ts';
import { writeMoney } from './write-money.ts';

/**
 * Milliseconds ahead from which a time counts as in the future. HubRise requires that by its own clock when the request
 * arrives; a nearer time is sent as soon as possible.
 */
const AHEAD_MS = 60_000;

/** The option list of every option. HubRise requires one, and our modifiers have no lists. */
const OPTION_LIST = 'Options';

/** The most identical options sent as separate objects. Beyond it, one object holds the quantity. */
const SEPARATE_OPTIONS = 50;

type Item = CanonicalOrder['items'][number];

/**
 * Writes the order for `POST /location/orders`: https://www.hubrise.com/developers/api/orders#create-order and
 * https://www.hubrise.com/developers/integration-guide#encoding-orders.
 * @param now decides whether `requestedAt` still lies ahead
 * @param customerId of an attached customer; without it the order is a guest's
 * @throws GiveUp for what HubRise's format cannot hold
 */
export function writeOrder(order: KitchenOrder, itemMap: Settings['itemMap'], now: Date, customerId?: string): object {
  const { serviceOrderId, fulfillment, items, money } = order;
  const { requestedAt } = fulfillment;
  const isAhead = requestedAt !== undefined && Date.parse(requestedAt) >= now.getTime() + AHEAD_MS;
  return {
    status: 'new',
    ref: serviceOrderId,
    private_ref: serviceOrderId,
    service_type: fulfillment.type === 'delivery' ? 'delivery' : 'collection',
    ...(isAhead && { expected_time: requestedAt }),
    // What the member shows to collect the order.
    collection_code: order.callOutCode,
    customer_notes: orderNote(order, NOTE_MAX),
    items: items.map((item, nth) => writeItem(item, `items.${nth}`, money.currency, itemMap)),
    charges: chargesOf(order).map(({ name, ref, price }) => ({
      name,
      ref: lookUp(ref, itemMap).ref,
      price: writeMoney(price, money.currency),
    })),
    // They are "applied to the whole order", and HubRise takes them off its total.
    discounts: discountsOf(order).map(({ name, amount }) => ({
      name: cutText(name, NAME_MAX),
      ref: lookUp('DISCOUNT', itemMap).ref,
      price_off: writeMoney(amount, money.currency),
    })),
    payments: [
      { name: 'Paid online', ref: lookUp('ONLINE', itemMap).ref, amount: writeMoney(money.total, money.currency) },
    ],
    // Data of a customer's own goes with a guest's order alone.
    ...(customerId === undefined ? { customer: writeCustomer(order) } : { customer_id: customerId }),
  };
}

function writeItem(item: Item, path: string, currency: string, itemMap: Settings['itemMap']): object {
  const { serviceItemId, name, quantity, unitPrice, notes, modifiers } = item;
  if (unitPrice === undefined) {
    throw new GiveUp(`${path}.unitPrice is missing: HubRise requires the price of every item`, {
      reason: 'The restaurant could not take this order.',
      reasonCode: 'technical',
    });
  }
  return {
    product_name: cutText(name, NAME_MAX),
    sku_ref: lookUp(serviceItemId, itemMap).ref,
    price: writeMoney(unitPrice, currency),
    quantity: String(quantity),
    customer_notes: notes && cutText(notes, NOTE_MAX),
    options: flattenModifiers(modifiers).flatMap((modifier) => writeOptions(modifier, currency, itemMap)),
  };
}

/** Writes a modifier as options. An option without a price is free, at HubRise as well. */
function writeOptions(modifier: Modifier, currency: string, itemMap: Settings['itemMap']): object[] {
  const { serviceModifierId, name, quantity, unitPrice } = modifier;
  const { ref, optionListName = OPTION_LIST } = lookUp(serviceModifierId, itemMap);
  const option = {
    option_list_name: optionListName,
    name: cutText(name, NAME_MAX),
    ref,
    ...(unitPrice !== undefined && { price: writeMoney(unitPrice, currency) }),
  };
  if (quantity > SEPARATE_OPTIONS) return [{ ...option, quantity }];
  return Array.from({ length: quantity }, () => ({ ...option, quantity: 1 }));
}

/**
 * The charges: whatever is paid beside the items, so that HubRise's total, less the discounts, is what was paid. Prices include tax or not
 * as the HubRise account is set (https://www.hubrise.com/developers/api/orders#tax-rates), so the tax is a charge only
 * if the order's total shows that it was added.
 */
function chargesOf({ fulfillment, items, money }: CanonicalOrder): { name: string; ref: string; price: number }[] {
  const { discount = 0, fee, tip, tax, total } = money;
  const isOnTop = sumItems(items) - discount + fee + tip + tax === total;
  const feeCharge =
    fulfillment.type === 'delivery'
      ? { name: 'Delivery fee', ref: 'DELIVERY_FEE', price: fee }
      : { name: 'Service fee', ref: 'SERVICE_FEE', price: fee };
  return [
    feeCharge,
    { name: 'Tip', ref: 'TIP', price: tip },
    { name: 'Tax', ref: 'TAX', price: isOnTop ? tax : 0 },
  ].filter(({ price }) => price > 0);
}

function lookUp(id: string, itemMap: Settings['itemMap']): { ref: string; optionListName?: string | undefined } {
  const mapped = entryOf(itemMap, id);
  return typeof mapped === 'object' ? mapped : { ref: mapped ?? id };
}
