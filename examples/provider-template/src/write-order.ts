import { cutText, discountsOf, entryOf, flattenModifiers, orderNote, toDecimal } from 'expediter-kit';
import type { KitchenOrder } from 'expediter-kit';
import type { Settings } from './payloads.ts';

// Maximum lengths, from "Orders".
const NAME_MAX = 80;
const LINE_NOTE_MAX = 200;
const NOTE_MAX = 500;

/** Writes the order in Acme's format ("Orders"). Undefined fields are left out. */
export function writeOrder(order: KitchenOrder, { itemMap }: Settings, now: Date) {
  const { serviceOrderId, callOutCode, fulfillment, member, items, money } = order;
  // Acme requires decimals. `toDecimal` moves the point in the text, because a division would produce rounding errors.
  const amount = (minorUnits: number) => toDecimal(minorUnits, money.currency);
  return {
    reference: serviceOrderId,
    // The counter's screen and the member's app show this code.
    pickupCode: callOutCode,
    type: fulfillment.type === 'delivery' ? 'DELIVERY' : 'PICKUP',
    due: dueOf(fulfillment.requestedAt, now),
    guest: { name: cutText(member.name, NAME_MAX), phone: member.phone },
    address: fulfillment.type === 'delivery' ? addressOf(fulfillment.destination) : undefined,
    // Acme has no field for an age check, so `orderNote` puts it first in the note.
    note: orderNote(order, NOTE_MAX),
    lines: items.map((item) => ({
      sku: skuOf(item.serviceItemId, itemMap),
      count: item.quantity,
      // For an item without a price, Acme uses its own price.
      price: item.unitPrice === undefined ? undefined : amount(item.unitPrice),
      note: item.notes === undefined ? undefined : cutText(item.notes, LINE_NOTE_MAX),
      // An option at Acme cannot have options.
      options: flattenModifiers(item.modifiers).map((modifier) => ({
        sku: skuOf(modifier.serviceModifierId, itemMap),
        count: modifier.quantity,
        price: modifier.unitPrice === undefined ? undefined : amount(modifier.unitPrice),
      })),
    })),
    discounts: discountsOf(order).map((discount) => ({
      name: cutText(discount.name, NAME_MAX),
      amount: amount(discount.amount),
    })),
    paid: {
      currency: money.currency,
      tax: amount(money.tax),
      tip: amount(money.tip),
      fee: amount(money.fee),
      total: amount(money.total),
    },
  };
}

/** Acme's id of an item or a modifier. */
export function skuOf(id: string, itemMap: Settings['itemMap']): string {
  return entryOf(itemMap, id) ?? id;
}

/** Returns the requested time in UTC. Undefined (as soon as possible) if there is no such time or it has passed. */
function dueOf(requestedAt: string | undefined, now: Date): string | undefined {
  const due = requestedAt === undefined ? now : new Date(requestedAt);
  return due > now ? due.toISOString() : undefined;
}

function addressOf({ line1, line2, city, postalCode, instructions }: Destination) {
  return {
    street: [line1, line2].filter(Boolean).join(', '),
    city,
    postcode: postalCode,
    directions: instructions === undefined ? undefined : cutText(instructions, LINE_NOTE_MAX),
  };
}

type Destination = NonNullable<KitchenOrder['fulfillment']['destination']>;
