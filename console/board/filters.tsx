import { useId } from 'preact/hooks';
import { Choice, Text } from '../parts/form.tsx';
import { GroupChoice } from '../parts/group-choice.tsx';
import type { ListedLocation } from '../wire.ts';
import type { Filter } from './create-board.ts';
import { board, follow } from './live-board.ts';

/** The group is filtered by the service. */
export type BoardFilter = Filter & { group: string };

export function Filters({
  filter,
  known,
  change,
}: {
  filter: BoardFilter;
  known: readonly ListedLocation[];
  change: (some: Partial<BoardFilter>, how?: 'typed') => void;
}) {
  follow('places');
  const { locations, integrations } = board.places();
  const id = useId();
  const isSet = filter.group !== '' || filter.location !== '' || filter.integration !== '' || filter.text !== '';
  return (
    <search class="filters board-filters">
      <GroupChoice page={id} value={filter.group} locations={known} onChoose={(group) => change({ group })} />
      <Choice
        id={`${id}-location`}
        label="Location"
        value={filter.location}
        options={[['', 'All locations'], ...optionsOf(locations, filter.location)]}
        onChoose={(location) => change({ location })}
      />
      <Choice
        id={`${id}-integration`}
        label="Integration"
        value={filter.integration}
        options={[['', 'All integrations'], ...optionsOf(integrations, filter.integration)]}
        onChoose={(integration) => change({ integration })}
      />
      <Text
        id={`${id}-text`}
        label="Order, POS id, code or location"
        type="search"
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

/** Options including the chosen one: a shared link may name a location that has no ticket. */
function optionsOf(names: string[], chosen: string): [value: string, name: string][] {
  const all = chosen === '' || names.includes(chosen) ? names : [chosen, ...names];
  return all.map((name) => [name, name]);
}
