import type { Replayed, WebhookOutcome } from '../wire.ts';

const MEANINGS: Record<WebhookOutcome, string> = {
  applied: 'Applied to its order. The member is notified.',
  parked: 'Waiting for an order with its POS id. Then it is applied automatically.',
  duplicate: 'Its order already has this status.',
  stale: 'Its order already has a later status.',
  unmatched: 'Not about an order of ours. Usually the order was entered at the till.',
  ignored: 'It contains no order status.',
  dropped: 'Kept, but not applied to any order.',
};

/** Explains an outcome in a sentence. @param reason the webhook's reason */
export function outcomeMeaning(outcome: WebhookOutcome, reason: string | null): string {
  return outcome === 'unmatched' && reason !== null ? 'No order got its POS id in time.' : MEANINGS[outcome];
}

/** Whether a replay with this result may change something. Even a known status may come with a new POS id. */
export function mayChange({ outcome }: Pick<Replayed, 'outcome'>): boolean {
  return outcome !== 'dropped';
}
