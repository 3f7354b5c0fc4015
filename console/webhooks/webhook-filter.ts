import type { ReplayMany } from '../wire.ts';

/** The filter in the address. Empty strings are not set. */
export type WebhookFilter = Record<(typeof FILTERS)[number], string>;

export const FILTERS = ['location', 'integration', 'outcome', 'oldToken', 'order', 'since', 'until'] as const;

/** The request to replay all that match, or why it is not possible. */
export function replayOf({ order, oldToken, ...filter }: WebhookFilter): ReplayMany | { why: string } {
  if (order !== '') return { why: 'The webhooks of one order are replayed one by one.' };
  if (filter.outcome === '' && filter.since === '' && oldToken !== 'true') {
    return { why: 'Choose an outcome, or since when, and all that match can be replayed.' };
  }
  const set = Object.entries(filter).filter(([, value]) => value !== '');
  return { ...Object.fromEntries(set), ...(oldToken === 'true' && { oldToken: true }) };
}
