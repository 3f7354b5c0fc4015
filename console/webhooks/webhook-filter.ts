import type { ReplayMany } from '../wire.ts';

/** As the address has it: empty where it is not set. */
export type WebhookFilter = Record<(typeof FILTERS)[number], string>;

export const FILTERS = ['location', 'integration', 'outcome', 'order', 'since', 'until'] as const;

/** All that matches, for a replay; or why it cannot be asked for. */
export function replayOf({ order, ...filter }: WebhookFilter): ReplayMany | { why: string } {
  if (order !== '') return { why: 'The webhooks of one order are replayed one by one.' };
  if (filter.outcome === '' && filter.since === '') {
    return { why: 'Choose an outcome, or since when, and all that match can be replayed.' };
  }
  const set = Object.entries(filter).filter(([, value]) => value !== '');
  return Object.fromEntries(set);
}
