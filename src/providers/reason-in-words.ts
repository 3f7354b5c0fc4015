import type { ReasonCode } from '../core/domain/reason-code.ts';

/**
 * What people and POS systems write as a reason, in English. The first that is found counts: who cancels "on customer
 * request" for an item that is "not in stock" says the customer's reason. Inferred, where the vendor's page quotes none.
 */
const WORDS: readonly (readonly [RegExp, ReasonCode])[] = [
  [/\bcustomer\b.*\b(cancel|request|chang)|\b(cancel|request)\w* by (the )?(customer|guest)/i, 'member_cancelled'],
  [/\b(out of|not in|no) stock\b|\bsold ?out\b|\b86'?d\b|\bsnoozed\b/i, 'item_unavailable'],
  [/\binvalid ?(plu|product|modifier|item)\b/i, 'item_unavailable'],
  [/\b(item|product|modifier|ingredient)s?\b.*\b(unavailable|not available|not found|missing)\b/i, 'item_unavailable'],
  [/\b(out of|outside) (the |our )?(delivery )?(area|range|zone)\b|\btoo far\b/i, 'out_of_area'],
  [/\baddress\b/i, 'invalid_address'],
  [/\b(price|tax|total)s?\b.*\b(mismatch|changed|differ|wrong|incorrect)/i, 'price_changed'],
  [/\bpaused\b/i, 'paused'],
  [/\b(closed|closing)\b/i, 'closed'],
  [/\bbusy\b|\bcapacity\b/i, 'too_busy'],
  [/\bduplicate\b/i, 'duplicate'],
  [/\bpayment\b|\bunpaid\b/i, 'payment'],
  [/\b(under ?age|age (check|verification|limit))\b/i, 'age_check'],
  [/\b(not accepted|no (answer|response|reply)|expired|timed? ?-?out)\b/i, 'no_answer'],
  [/\b(offline|unreachable|unable to reach|connection|connect to)\b/i, 'technical'],
];

/** As much of a text as is read. */
const READ = 500;

/** The code of a reason that somebody wrote in words of their own. Undefined if none is known. */
export function reasonInWords(text: string): ReasonCode | undefined {
  const read = text.slice(0, READ);
  return WORDS.find(([words]) => words.test(read))?.[1];
}
