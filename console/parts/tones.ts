import type { BoardOrder, WebhookOutcome } from '../wire.ts';

/** How much it matters; a colour is never all that says so. */
export type Tone = 'plain' | 'good' | 'busy' | 'warn' | 'bad';

/** What a placement's state means to whoever looks at it. */
export const PLACEMENT_TONES: Record<BoardOrder['placement'], Tone> = {
  waiting: 'busy',
  held: 'warn',
  in_doubt: 'bad',
  sent: 'good',
  failed: 'bad',
};

export const MEMBER_STATE_TONES: Record<NonNullable<BoardOrder['memberState']>, Tone> = {
  placed: 'plain',
  sent: 'plain',
  confirmed: 'busy',
  preparing: 'busy',
  ready_for_pickup: 'good',
  ready_for_delivery: 'good',
  out_for_delivery: 'good',
  picked_up: 'good',
  delivered: 'good',
  failed: 'bad',
  cancelled: 'warn',
};

export const OUTCOME_TONES: Record<WebhookOutcome, Tone> = {
  applied: 'good',
  parked: 'busy',
  duplicate: 'plain',
  stale: 'plain',
  unmatched: 'warn',
  ignored: 'plain',
  dropped: 'bad',
};

/** `ready_for_pickup` in words. */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}
