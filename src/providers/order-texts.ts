import { discountsOf, toDecimal } from '../core/domain/money.ts';
import type { CanonicalOrder } from '../core/domain/order.ts';

/** The mark at the end of a text that was cut. */
const CUT = ' […]';

/** Cuts a text to a POS's limit and marks the cut. Counts UTF-16 units: no vendor's own count is higher. */
export function cutText(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return text.slice(0, limit - CUT.length).replace(/[\uD800-\uDBFF]$/, '') + CUT;
}

/** The warning for whoever hands the order over, for a POS without a field for it. Undefined if no item needs it. */
export function ageCheck({ items }: CanonicalOrder): string | undefined {
  const names = items.filter((item) => item.ageRestricted).map((item) => item.name);
  return names.length === 0 ? undefined : `AGE CHECK: ${names.join(', ')}`;
}

/** The discounts, for staff to take off where a POS has not been told. Undefined if there are none. */
export function takeOff(order: CanonicalOrder): string | undefined {
  const { currency } = order.money;
  const each = discountsOf(order).map(({ name, amount }) => `${name} ${toDecimal(amount, currency)} ${currency}`);
  return each.length === 0 ? undefined : `TAKE OFF: ${each.join(', ')}`;
}

/** The order's note: the age check first, then the member's text. Undefined if there is neither. */
export function orderNote(order: CanonicalOrder, limit: number): string | undefined {
  const lines = [ageCheck(order), order.notes].filter(Boolean);
  return lines.length === 0 ? undefined : cutText(lines.join('\n'), limit);
}
