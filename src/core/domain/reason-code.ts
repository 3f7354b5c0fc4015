import { z } from 'zod';

/**
 * Why an order failed or was cancelled, for programs, and what to tell the member. `reason` says it to people. A code is
 * never renamed. A reason that fits no code is `other`.
 */
export const REASONS = {
  item_unavailable: 'sold out or off the menu: hide `itemIds`, and offer the rest',
  closed: 'closed at the wanted time: offer another',
  too_busy: 'offer another time',
  paused: 'takes no orders for now: hide the restaurant, or offer a later time',
  price_changed: 'reload the menu, and ask the member',
  invalid_address: 'nobody can deliver there: ask for the address',
  out_of_area: 'too far away: offer a pickup, or another restaurant',
  payment: 'the POS refuses the payment: a person must check',
  age_check: 'the person collecting it was too young, or had no proof',
  duplicate: 'the POS took it for an order that it has: a person must check',
  no_answer: 'not confirmed in time, or unreachable: we do not try again. Offer a new order, or refund',
  member_cancelled: 'the member cancelled, or did not come',
  restaurant_cancelled: 'without a reason: refund',
  technical: 'a fault of ours, of the POS or between them: we do not try again. Offer a new order, or refund',
  other: 'no reason, or none of these: show `reason`',
} as const;
export const REASON_CODES = Object.keys(REASONS) as readonly (keyof typeof REASONS)[];
export const ReasonCode = z.enum(REASON_CODES).meta({
  description: `Why it failed or was cancelled, for programs. ${Object.entries(REASONS)
    .map(([code, about]) => `\`${code}\`: ${about}.`)
    .join(' ')}`,
});
export const RecordedReasonCode = z.string().meta({ description: 'A `ReasonCode`, or one of a newer version.' });
export type ReasonCode = z.infer<typeof ReasonCode>;
