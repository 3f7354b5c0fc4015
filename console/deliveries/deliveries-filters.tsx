import { ask } from '../api.ts';
import { Choice } from '../parts/choice.tsx';
import { OUTCOME_TONES } from '../parts/tones.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import { When, Written } from '../parts/written.tsx';
import type { ListedLocations } from '../wire.ts';
import type { DeliveryFilter } from './delivery-filter.ts';

const OUTCOMES = ['dropped', ...Object.keys(OUTCOME_TONES).filter((outcome) => outcome !== 'dropped')];

/** What the list is narrowed to. */
export function DeliveriesFilters({
  filter,
  change,
}: {
  filter: DeliveryFilter;
  change: (some: Partial<DeliveryFilter>) => void;
}) {
  // Only to be offered: a delivery's location may be configured no more.
  const { value } = useLoaded((signal) => ask<ListedLocations>('GET', '/locations', { signal }), []);
  const locations = value?.locations ?? [];
  return (
    <search class="filters deliveries-filters" aria-label="Which deliveries">
      <Choice
        id="deliveries-outcome"
        label="Outcome"
        value={filter.outcome}
        options={[['', 'any'], ...OUTCOMES.map((outcome) => [outcome, outcome] as const)]}
        onChoose={(outcome) => change({ outcome })}
      />
      <Written
        id="deliveries-location"
        label="Location"
        value={filter.location}
        offers={locations.map((each) => each.locationId)}
        onWrite={(location) => change({ location })}
      />
      <Written
        id="deliveries-integration"
        label="Integration"
        value={filter.integration}
        offers={[...new Set(locations.map((each) => each.integration))]}
        onWrite={(integration) => change({ integration })}
      />
      <Written
        id="deliveries-order"
        label="Order id"
        isCode
        value={filter.order}
        onWrite={(order) => change({ order })}
      />
      <When id="deliveries-since" label="Received since" value={filter.since} onSay={(since) => change({ since })} />
      <When id="deliveries-until" label="and before" value={filter.until} onSay={(until) => change({ until })} />
      {Object.values(filter).some((value) => value !== '') && (
        <a class="button" href="/console/deliveries">
          Clear
        </a>
      )}
    </search>
  );
}
