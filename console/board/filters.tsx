import { useId } from 'preact/hooks';
import { FilterChoice } from '../parts/filter-choice.tsx';
import { Text } from '../parts/form.tsx';
import { GroupChoice } from '../parts/group-choice.tsx';
import { locationName, optionsOf, vendorName } from '../parts/names.ts';
import type { Filter } from './create-board.ts';
import { board, follow } from './live-board.ts';

/** The group is filtered by the service. */
export type BoardFilter = Filter & { group: string };

type AboutFilters = { filter: BoardFilter; change: (some: Partial<BoardFilter>, how?: 'typed') => void };

export function Filters({ filter, change }: AboutFilters) {
  follow('places');
  const { locations, integrations } = board.places();
  const id = useId();
  const of = { page: id, filter, change };
  const isSet = filter.group !== '' || filter.location !== '' || filter.integration !== '' || filter.text !== '';
  return (
    <search class="filters board-filters">
      <GroupChoice page={id} value={filter.group} onChoose={(group) => change({ group })} />
      <FilterChoice
        of={of}
        name="location"
        label="Location"
        options={[['', 'All locations'], ...optionsOf(locations, filter.location, locationName)]}
      />
      <FilterChoice
        of={of}
        name="integration"
        label="POS"
        options={[['', 'All POS systems'], ...optionsOf(integrations, filter.integration, vendorName)]}
      />
      <Text
        id={`${id}-text`}
        label="Order, POS id, code or location"
        type="search"
        placeholder="Order, POS id, code or location"
        value={filter.text}
        onWrite={(text) => change({ text }, 'typed')}
      />
      {isSet && (
        <button type="button" onClick={() => change({ group: '', location: '', integration: '', text: '' })}>
          Show all
        </button>
      )}
    </search>
  );
}
