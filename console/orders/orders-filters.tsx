import { Choice } from '../parts/form.tsx';
import { FoldedFilters } from '../parts/folded-filters.tsx';
import { PlaceFilters } from '../parts/place-filters.tsx';
import { words } from '../parts/tones.ts';
import { When } from '../parts/written.tsx';
import { MEMBER_STATES, PLACEMENT_STATES, type OrdersFilter } from './orders-filter.ts';

const named = (states: readonly string[]) => states.map((state) => [state, words(state)] as const);

/** The inputs of the filter. */
export function OrdersFilters({ filter, change }: { filter: OrdersFilter; change: (some: OrdersFilter) => void }) {
  return (
    <FoldedFilters label="Which orders" filters={filter} clear="/console/orders">
      <PlaceFilters
        page="orders"
        location={filter.location}
        group={filter.group ?? ''}
        integration={filter.integration}
        change={change}
      />
      <Choice
        id="orders-state"
        label="Placement"
        value={filter.needs ?? filter.state ?? ''}
        options={[['', 'any'], ['operator', 'needs a person'], ['late', 'late'], ...named(PLACEMENT_STATES)]}
        onChoose={(chosen) =>
          change(PLACEMENT_STATES.includes(chosen) ? { state: chosen, needs: '' } : { state: '', needs: chosen })
        }
      />
      <Choice
        id="orders-member-state"
        label="Member sees"
        value={filter.memberState ?? ''}
        options={[['', 'anything'], ...named(MEMBER_STATES)]}
        onChoose={(memberState) => change({ memberState })}
      />
      <Choice
        id="orders-open"
        label="Open or ended"
        value={filter.open ?? ''}
        options={[
          ['', 'either'],
          ['true', 'open'],
          ['false', 'ended'],
        ]}
        onChoose={(open) => change({ open })}
      />
      <When id="orders-since" label="Placed since" value={filter.since ?? ''} onSay={(since) => change({ since })} />
      <When id="orders-until" label="and before" value={filter.until ?? ''} onSay={(until) => change({ until })} />
    </FoldedFilters>
  );
}
