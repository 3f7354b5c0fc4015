import { useMemo, useRef } from 'preact/hooks';
import { ask, query } from '../api.ts';
import { Chart } from '../parts/chart.tsx';
import { Choice } from '../parts/form.tsx';
import { clockTime, zoneName } from '../parts/clock-time.ts';
import { Loading } from '../parts/loading.tsx';
import { vendorName } from '../parts/names.ts';
import { Page } from '../parts/page.tsx';
import { PlaceFilters } from '../parts/place-filters.tsx';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded, type Loaded } from '../parts/use-loaded.ts';
import type { Traffic as Answer } from '../wire.ts';
import { describePlacements, describeQuantiles, describeWebhooks } from './describe-traffic.ts';
import './traffic.css';
import { placementSeries, quantileSeries, webhookSeries, type IntegrationTraffic } from './traffic-series.ts';

const EVERY_MS = 10_000;
const HOURS = [
  ['', 'hour'],
  ['6', '6 hours'],
  ['24', '24 hours'],
] as const;

export function TrafficPage() {
  const [filters, change] = useFilters('hours', 'location', 'group', 'integration');
  const { hours, location, group, integration } = filters;
  const loaded = useLastValue(
    useLoaded(
      (signal) => ask<Answer>('GET', `/traffic${query({ hours, location, group, integration })}`, { signal }),
      [hours, location, group, integration],
      EVERY_MS,
    ),
  );
  return (
    <Page title="Traffic">
      <search class="filters">
        <Choice id="traffic-hours" label="Last" value={hours} options={HOURS} onChoose={(hours) => change({ hours })} />
        <PlaceFilters of={{ page: 'traffic', filter: filters, change }} />
      </search>
      <Loading loaded={loaded}>{(traffic) => <Shown traffic={traffic} />}</Loading>
    </Page>
  );
}

/** Shows the last value while the next one loads, so that the page does not jump. */
function useLastValue<Value>(loaded: Loaded<Value>): Loaded<Value> {
  const last = useRef<Value | undefined>(undefined);
  if (loaded.value !== undefined) last.current = loaded.value;
  return { ...loaded, value: loaded.value ?? (loaded.problem === undefined ? last.current : undefined) };
}

function Shown({ traffic: { at, integrations } }: { traffic: Answer }) {
  if (integrations.length === 0) return <p class="sheet">No traffic in this period.</p>;
  return (
    <>
      <p class="faint">
        Times are in {zoneName()}. Errors are webhooks that were dropped, or refused before they were stored.
      </p>
      {integrations.map((each) => (
        <Integration key={each.integration} at={at} traffic={each} />
      ))}
    </>
  );
}

function Integration({ at, traffic }: { at: string[]; traffic: IntegrationTraffic }) {
  const id = `traffic-${traffic.integration}`;
  const charts = useMemo(() => {
    const { placementSeconds: ticket, liveLagSeconds: live } = traffic;
    const placements = placementSeries(traffic);
    return [
      ['Webhooks, by outcome', 'counts', describeWebhooks(traffic), webhookSeries(traffic)],
      ['Orders, by outcome', 'counts', describePlacements(placements), placements],
      ['From signal to ticket', 'seconds', describeQuantiles(ticket, at, clockTime), quantileSeries(ticket)],
      ['From commit to live message', 'seconds', describeQuantiles(live, at, clockTime), quantileSeries(live)],
    ] as const;
  }, [traffic, at]);
  return (
    <section class="sheet" aria-labelledby={id}>
      <h2 id={id}>{vendorName(traffic.integration)}</h2>
      {traffic.integration === 'unknown' && (
        <p class="faint">Requests for no known POS, and orders whose location was not known yet.</p>
      )}
      <div class="traffic-charts">
        {charts.map(([title, measure, summary, series]) => (
          <Chart key={title} {...{ title, measure, summary, series, at }} />
        ))}
      </div>
    </section>
  );
}
