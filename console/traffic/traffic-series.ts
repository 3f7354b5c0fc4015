import type { Series } from '../parts/series.ts';
import { words } from '../parts/tones.ts';
import type { Traffic } from '../wire.ts';

export type IntegrationTraffic = Traffic['integrations'][number];
type WebhookOutcome = keyof IntegrationTraffic['webhooks'];
type PlacementOutcome = keyof IntegrationTraffic['placements'];

/** The colour of each outcome, from the bottom of a bar up: updates, no change, then what needs attention. */
const WEBHOOKS: Record<WebhookOutcome, string> = {
  applied: '--good',
  parked: '--busy',
  duplicate: '--line-strong',
  stale: '--faint',
  ignored: '--traffic-ignored',
  unmatched: '--warn',
  dropped: '--bad',
  unauthorized: '--traffic-unauthorized',
  not_committed: '--violet',
};
const PLACEMENTS: Record<PlacementOutcome, string> = {
  sent: '--good',
  held: '--warn',
  in_doubt: '--violet',
  failed: '--bad',
};
/** Outcomes that count as errors. */
export const ERRORS: readonly WebhookOutcome[] = ['dropped', 'unauthorized', 'not_committed'];

/** A series for each outcome that occurred. */
export function webhookSeries({ webhooks }: IntegrationTraffic): Series[] {
  return (Object.keys(WEBHOOKS) as WebhookOutcome[]).flatMap((outcome) => {
    const values = webhooks[outcome];
    return values === undefined ? [] : [{ name: words(outcome), colour: WEBHOOKS[outcome], values }];
  });
}

/** A series for sent placements, even if there were none, and for each other outcome that occurred. */
export function placementSeries({ placements }: IntegrationTraffic): Series[] {
  return (Object.keys(PLACEMENTS) as PlacementOutcome[])
    .filter((outcome) => outcome === 'sent' || placements[outcome].some((count) => count > 0))
    .map((outcome) => ({ name: words(outcome), colour: PLACEMENTS[outcome], values: placements[outcome] }));
}

export function quantileSeries({ p50, p95 }: IntegrationTraffic['placementSeconds']): Series[] {
  return [
    { name: 'median', colour: '--busy', values: p50 },
    { name: '95 %', colour: '--violet', values: p95, isDashed: true },
  ];
}
