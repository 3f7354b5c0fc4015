import { Choice } from '../parts/form.tsx';
import { FoldedFilters } from '../parts/folded-filters.tsx';
import { PlaceFilters } from '../parts/place-filters.tsx';
import { words } from '../parts/tones.ts';
import { When } from '../parts/written.tsx';
import { MEMBER_STATES, PLACEMENT_STATES, type OrdersFilter } from './orders-filter.ts';
import { FilterChoice } from '../parts/filter-choice.tsx';

const OPEN = Object.entries({ '': 'either', true: 'open', false: 'ended' });
const named = (states: readonly string[]) => states.map((state) => [state, words(state)] as const);

/** The inputs of the filter. */
export function OrdersFilters({ filter, change }: { filter: OrdersFilter; change: (some: OrdersFilter) => void }) {
  const of = { page: 'orders', filter, change };
  return (
    <FoldedFilters label="Which orders" filters={filter} clear="/console/orders">
      <PlaceFilters of={of} />
      <Choice
        id="orders-state"
        label="Placement"
        value={filter.needs ?? filter.state ?? ''}
        options={[['', 'any'], ['operator', 'waits for you'], ['late', 'late'], ...named(PLACEMENT_STATES)]}
        onChoose={(chosen) =>
          change(PLACEMENT_STATES.includes(chosen) ? { state: chosen, needs: '' } : { state: '', needs: chosen })
        }
      />
      <FilterChoice
        of={of}
        name="memberState"
        label="Member sees"
        options={[['', 'anything'], ...named(MEMBER_STATES)]}
      />
      <FilterChoice of={of} name="open" label="Open or ended" options={OPEN} />
      <When id="orders-since" label="Placed since" value={filter.since ?? ''} onSay={(since) => change({ since })} />
      <When id="orders-until" label="and before" value={filter.until ?? ''} onSay={(until) => change({ until })} />
    </FoldedFilters>
  );
}
