import type { ReplayMany } from '../wire.ts';

/** The filter in the address. An empty string means no filter. */
export type WebhookFilter = Record<(typeof FILTERS)[number], string>;

export const FILTERS = ['location', 'group', 'integration', 'outcome', 'oldToken', 'order', 'since', 'until'] as const;

/** The request that replays all matching webhooks, or why it is not possible. */
export function replayOf({ order, oldToken, ...filter }: WebhookFilter): ReplayMany | { why: string } {
  if (order !== '') return { why: 'To replay the webhooks of one order, open each of them.' };
  if (filter.outcome === '' && filter.since === '' && oldToken !== 'true') {
    return { why: 'To replay all that match, choose an outcome or a start time.' };
  }
  const set = Object.entries(filter).filter(([, value]) => value !== '');
  return { ...Object.fromEntries(set), ...(oldToken === 'true' && { oldToken: true }) };
}
