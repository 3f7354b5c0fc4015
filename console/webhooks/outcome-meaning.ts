import type { WebhookOutcome } from '../wire.ts';

const MEANINGS: Record<WebhookOutcome, string> = {
  applied: 'It moves its order, and the member hears of it.',
  parked:
    'The id by which the POS names the order is not known yet. It waits, and goes on by itself as soon as one of our ' +
    'orders has that id.',
  duplicate: 'Its order is there already: nothing moves.',
  stale: 'Its order is further already, and is never moved back. It stands in the history.',
  unmatched: 'It is about no order of ours. Most often that is one that was taken at the till itself.',
  ignored: 'It says nothing about how far an order is.',
  dropped: 'We have it, but it cannot be used: its order knows nothing of it.',
};

/** Explains an outcome in a sentence. @param reason the webhook's, which matters if it was not dropped */
export function outcomeMeaning(outcome: WebhookOutcome, reason: string | null): string {
  return outcome === 'unmatched' && reason !== null
    ? 'It waited for its order until it was too late: the id by which the POS names it became none of ours.'
    : MEANINGS[outcome];
}
