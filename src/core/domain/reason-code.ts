import { z } from 'zod';

/**
 * Why an order failed or was cancelled, for programs; `reason` says it to people. A code is never renamed. A reason
 * that fits no code is `other`.
 */
export const REASON_CODES = [
  'item_unavailable',
  'closed',
  'too_busy',
  'paused',
  'price_changed',
  'invalid_address',
  'out_of_area',
  'payment',
  'age_check',
  'duplicate',
  'no_answer',
  'member_cancelled',
  'restaurant_cancelled',
  'technical',
  'other',
] as const;
export const ReasonCode = z.enum(REASON_CODES).meta({
  description:
    'Why it failed or was cancelled, for programs. `no_answer`: nobody at the POS took it in time. `technical`: a fault ' +
    'of ours, of the POS or of the connection. `other`: the POS gave a reason that fits none of these.',
});
export const RecordedReasonCode = z.string().meta({ description: 'A `ReasonCode`, or one of a newer version.' });
export type ReasonCode = z.infer<typeof ReasonCode>;
