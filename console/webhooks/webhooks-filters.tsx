import { Choice } from '../parts/choice.tsx';
import { PlaceFilters } from '../parts/place-filters.tsx';
import { OUTCOME_TONES } from '../parts/tones.ts';
import { When, Written } from '../parts/written.tsx';
import type { DeliveryFilter } from './webhook-filter.ts';

const OUTCOMES = ['dropped', ...Object.keys(OUTCOME_TONES).filter((outcome) => outcome !== 'dropped')];

/** What the list is narrowed to. */
export function DeliveriesFilters({
  filter,
  change,
}: {
  filter: DeliveryFilter;
  change: (some: Partial<DeliveryFilter>) => void;
}) {
  return (
    <search class="filters deliveries-filters" aria-label="Which deliveries">
      <Choice
        id="deliveries-outcome"
        label="Outcome"
        value={filter.outcome}
        options={[['', 'any'], ...OUTCOMES.map((outcome) => [outcome, outcome] as const)]}
        onChoose={(outcome) => change({ outcome })}
      />
      <PlaceFilters page="deliveries" location={filter.location} integration={filter.integration} change={change} />
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
