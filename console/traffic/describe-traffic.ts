import { percent } from '../parts/percent.ts';
import { showValue, sum, type Series } from '../parts/series.ts';
import { ERRORS, type IntegrationTraffic } from './traffic-series.ts';

export function describeWebhooks({ webhooks }: IntegrationTraffic): string {
  const all = sum(Object.values(webhooks).flat());
  if (all === 0) return 'None.';
  const errors = sum(ERRORS.flatMap((outcome) => webhooks[outcome] ?? []));
  const share = errors === 0 ? 'no errors' : `${percent(errors / all)} errors`;
  return `${showValue(all, 'counts')}, ${share}.`;
}

export function describePlacements(series: readonly Series[]): string {
  const totals = series.map(({ name, values }) => ({ name, total: sum(values.map((value) => value ?? 0)) }));
  const some = totals.filter(({ total }) => total > 0);
  if (some.length === 0) return 'None.';
  return `${some.map(({ name, total }) => `${showValue(total, 'counts')} ${name}`).join(', ')}.`;
}

/** @param time formats an instant */
export function describeQuantiles(
  { p50, p95 }: IntegrationTraffic['placementSeconds'],
  at: readonly string[],
  time: (instant: string) => string,
): string {
  const last = p95.findLastIndex((value) => value !== null);
  const lastAt = at[last];
  if (lastAt === undefined) return 'None.';
  const worst = p95.reduce<number>((worst, value, nth) => ((value ?? -1) > (p95[worst] ?? -1) ? nth : worst), last);
  const worstAt = at[worst] ?? lastAt;
  return (
    `Last: median ${showValue(p50[last] ?? null, 'seconds')}, 95 % ${showValue(p95[last] ?? null, 'seconds')}` +
    (worst === last ? '.' : `; slowest ${showValue(p95[worst] ?? null, 'seconds')} at ${time(worstAt)}.`)
  );
}
