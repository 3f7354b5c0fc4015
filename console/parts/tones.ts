import type { BoardOrder, WebhookOutcome } from '../wire.ts';

/** The importance of a message. Colour is never its only sign. */
export type Tone = 'plain' | 'good' | 'busy' | 'warn' | 'bad';

export const PLACEMENT_TONES: Record<BoardOrder['placement'], Tone> = {
  waiting: 'busy',
  held: 'warn',
  in_doubt: 'bad',
  sent: 'good',
  failed: 'bad',
  withdrawn: 'plain',
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

/** Writes `ready_for_pickup` as words. */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}
