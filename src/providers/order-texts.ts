import { discountsOf, toDecimal } from '../core/domain/money.ts';
import type { CanonicalOrder } from '../core/domain/order.ts';
import type { ReasonCode } from '../core/domain/reason-code.ts';

export type Item = CanonicalOrder['items'][number];
export type Destination = NonNullable<CanonicalOrder['fulfillment']['destination']>;

/** The ISO 3166-1 alpha-2 code in capitals. Undefined for any other text: a POS refuses it, and no courier needs it. */
export function countryCode(country = ''): string | undefined {
  return /^[a-z]{2}$/i.test(country) ? country.toUpperCase() : undefined;
}

/** The mark at the end of a text that was cut. */
const CUT = ' […]';

/** Cuts a text to a POS's limit and marks the cut. Counts UTF-16 units, because no vendor's own count is higher. */
export function cutText(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return text.slice(0, limit - CUT.length).replace(/[\uD800-\uDBFF]$/, '') + CUT;
}

/** A line that asks staff to check the member's age, for a POS without such a field. Undefined if no item needs it. */
export function ageCheck({ items }: CanonicalOrder): string | undefined {
  const names = items.filter((item) => item.ageRestricted).map((item) => item.name);
  return names.length === 0 ? undefined : `AGE CHECK: ${names.join(', ')}`;
}

/** A line that tells staff which discounts to subtract, for a POS without such a field. Undefined if there are none. */
export function takeOff(order: CanonicalOrder): string | undefined {
  const { currency } = order.money;
  const each = discountsOf(order).map(({ name, amount }) => `${name} ${toDecimal(amount, currency)} ${currency}`);
  return each.length === 0 ? undefined : `TAKE OFF: ${each.join(', ')}`;
}

/** Writes a note, one text on each line. Undefined if there is no text. */
export function joinNotes(limit: number, ...texts: (string | undefined)[]): string | undefined {
  return cutText(texts.filter(Boolean).join('\n'), limit) || undefined;
}

/** Writes the order's note: first the age check, then the member's text. */
export function orderNote(order: CanonicalOrder, limit: number): string | undefined {
  return joinNotes(limit, ageCheck(order), order.notes);
}

/**
 * English phrases by which people and POS systems give a reason. The first match wins: a text with both "on customer
 * request" and "not in stock" is `member_cancelled`. We inferred the phrases that no vendor documents.
 */
const WORDS: readonly (readonly [RegExp, ReasonCode])[] = [
  [/\b(customer|guest)(['’]s)? (has )?(cancel|request|chang\w*( of)?( \w+)? mind\b)/i, 'member_cancelled'],
  [/\b(customer|guest) (no longer (want|need)|(wants|wanted|asked|called) to cancel\b)/i, 'member_cancelled'],
  [/\b(cancel|request)\w* by (the )?(customer|guest)\b/i, 'member_cancelled'],
  [/\b(out of|not in|no) stock\b|\bsold ?out\b|\b86'?d\b|\bsnoozed\b/i, 'item_unavailable'],
  [/\b(invalid|unavailable) ?(plu|product|modifier|item)\b|\bnot attached to a menu\b/i, 'item_unavailable'],
  [/\b(item|product|modifier|ingredient)s?\b.*\b(unavailable|not available|not found|missing)\b/i, 'item_unavailable'],
  [/\b(out of|outside) (the |our )?(delivery )?(area|range|zone)\b|\btoo far\b/i, 'out_of_area'],
  [/\b(price|tax|total)s?\b.*\b(mismatch|changed|differ|wrong|incorrect)/i, 'price_changed'],
  [/\bpaused\b/i, 'paused'],
  [/\b(is|are|['’]re|store|restaurant|kitchen|shop) (\w+ )?closed\b/i, 'closed'],
  [/^\W*closed\W*$|\bclosed (today|early|now|for|until)\b|\bclosing\b/i, 'closed'],
  [/\bbusy\b|\bcapacity\b/i, 'too_busy'],
  [/\baddress\b/i, 'invalid_address'],
  [/\bduplicate\b/i, 'duplicate'],
  [/\bpayment\b|\bunpaid\b/i, 'payment'],
  [/\b(under ?age|age (check|verification|limit))\b/i, 'age_check'],
  [
    /\b(not accepted|(did not|didn['’]t) (answer|respond|reply)|no (answer|response|reply)|expired|timed? ?-?out)\b/i,
    'no_answer',
  ],
  [/\b(offline|unreachable|unable to reach|connection|connect to)\b/i, 'technical'],
];

/** Maximum number of characters that are searched. */
const READ = 500;

/** Finds our code for a reason in free text. Undefined if no pattern matches. */
export function reasonInWords(text: string): ReasonCode | undefined {
  // Some channels send codes such as OUT_OF_STOCK.
  const read = text.slice(0, READ).replaceAll('_', ' ');
  return WORDS.find(([words]) => words.test(read))?.[1];
}
