import type { WebhookOutcome } from '../wire.ts';

const MEANINGS: Record<WebhookOutcome, string> = {
  applied: 'It updates its order, and the member is notified.',
  parked: 'Its POS id is not known yet. It waits, and is applied automatically when one of our orders has that id.',
  duplicate: 'Its order already has this status. Nothing changes.',
  stale: 'Its order already has a later status and is never moved back. The event is in the timeline.',
  unmatched: 'It matches none of our orders. Usually the order was entered at the till.',
  ignored: 'It contains no order status.',
  dropped: 'It is stored but cannot be used. Its order does not change.',
};

/** Explains an outcome in a sentence. @param reason the webhook's reason */
export function outcomeMeaning(outcome: WebhookOutcome, reason: string | null): string {
  return outcome === 'unmatched' && reason !== null
    ? 'It waited for its order, but none of our orders got its POS id in time.'
    : MEANINGS[outcome];
}
