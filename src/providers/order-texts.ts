import type { CanonicalOrder } from '../core/domain/order.ts';

/** Says that something was left out. */
const CUT = ' […]';

/** A text within a POS's limit, counted in UTF-16 units, which no vendor's own count exceeds; what is cut says so. */
export function cutText(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return text.slice(0, limit - CUT.length).replace(/[\uD800-\uDBFF]$/, '') + CUT;
}

/** What the person who hands the order over must not miss, for a POS that has no field for it; undefined for none. */
export function ageCheck({ items }: CanonicalOrder): string | undefined {
  const names = items.filter((item) => item.ageRestricted).map((item) => item.name);
  return names.length === 0 ? undefined : `AGE CHECK: ${names.join(', ')}`;
}

/** The order's note: the age check first, then what the member wrote; undefined for none. */
export function orderNote(order: CanonicalOrder, limit: number): string | undefined {
  const lines = [ageCheck(order), order.notes].filter(Boolean);
  return lines.length === 0 ? undefined : cutText(lines.join('\n'), limit);
}

/** A name in two parts, the last word being the second; a single word stands as the first. */
export function splitName(name: string): { first: string; last: string } {
  const words = name.trim().split(/\s+/);
  const last = words.length > 1 ? (words.pop() ?? '') : '';
  return { first: words.join(' '), last };
}
