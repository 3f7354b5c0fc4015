import { toDecimal } from '../core/domain/money.ts';
import type { CanonicalOrder } from '../core/domain/order.ts';
import { sumItems } from '../core/domain/sum-items.ts';

/** What is odd about a field of an order that can be placed. */
export type Remark = { path: string; says: string };

/**
 * Says which sums of an order do not add up, in words that follow the field's name. Items and subtotal may each include
 * the tax or not. Items are not added up where one has no price.
 */
export function compareSums({ items, money }: CanonicalOrder): Remark[] {
  const { subtotal, discount = 0, tax, tip, fee, total, currency } = money;
  const inWords = (amount: number): string => `${toDecimal(amount, currency)} ${currency}`;
  const remarks: Remark[] = [];
  const ordered = sumItems(items);
  const arePriced = items.every(({ unitPrice }) => unitPrice !== undefined);
  if (arePriced && ordered !== subtotal && Math.abs(ordered - subtotal) !== tax) {
    const says = `is ${inWords(subtotal)}, and the items with their modifiers come to ${inWords(ordered)}`;
    remarks.push({ path: 'money.subtotal', says });
  }
  const due = subtotal - discount + tip + fee;
  if (total !== due && total !== due + tax) {
    const taxed = tax > 0 ? `, ${inWords(due + tax)} with the tax` : '';
    const less = discount > 0 ? ' less the discount' : '';
    const says = `is ${inWords(total)}, and subtotal${less}, tip and fee come to ${inWords(due)}${taxed}`;
    remarks.push({ path: 'money.total', says });
  }
  return remarks;
}
