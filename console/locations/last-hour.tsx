import { tenSeconds } from '../parts/clock.ts';
import { percent } from '../parts/percent.ts';
import { sum } from '../parts/series.ts';
import { Sparkline } from '../parts/sparkline.tsx';
import type { ListedLocation } from '../wire.ts';
import { errorShare, errorTone, repairOf, stepShares, trend } from './assess-location.ts';

type Counted = Pick<ListedLocation, 'webhooks' | 'errors' | 'open' | 'refused'>;

/** The full height of the chart is at least this share, so that 1 % does not look like 100 %. */
const A_FEW = 0.25;
const NUMBER = new Intl.NumberFormat();

/** The number of a location's webhooks in the last hour. */
export function LastHourWebhooks({ location: { webhooks } }: { location: Counted }) {
  return (
    <span class="row locations-figure">
      <b>{NUMBER.format(sum(webhooks))}</b>
      <Sparkline values={webhooks} isUnderWay label={`Webhooks by five minutes: ${trend(webhooks)}`} />
    </span>
  );
}

/** The share of a location's webhooks in the last hour that were dropped, or refused: the errors. */
export function LastHourErrors({ location }: { location: Counted }) {
  const tone = errorTone(location);
  const count = sum(location.errors);
  const shares = stepShares(location);
  const repair = repairOf(location, tenSeconds.value);
  return (
    <span class="row locations-figure">
      <b class={tone} title={count === 0 ? undefined : `${NUMBER.format(count)} webhooks, dropped or refused`}>
        {percent(errorShare(location))}
        {repair !== undefined && <span class="row locations-about">{repair}</span>}
      </b>
      <Sparkline
        values={shares}
        most={Math.max(A_FEW, ...shares)}
        tone={tone === 'plain' ? 'busy' : tone}
        label={`Errors by five minutes: ${trend(location.errors)}`}
      />
    </span>
  );
}
