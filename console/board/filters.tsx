import { useId } from 'preact/hooks';
import { Choice } from '../parts/choice.tsx';
import type { Filter } from './create-board.ts';
import { board, follow } from './live-board.ts';

export function Filters({
  filter,
  change,
}: {
  filter: Filter;
  change: (some: Partial<Filter>, how?: 'typed') => void;
}) {
  follow('places');
  const { locations, integrations } = board.places();
  const id = useId();
  const isSet = filter.location !== '' || filter.integration !== '' || filter.text !== '';
  return (
    <search class="filters board-filters">
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
      <div class="field">
        <label htmlFor={`${id}-text`}>Order, POS id, code or location</label>
        <input
          id={`${id}-text`}
          type="search"
          placeholder="Order, POS id, code or location"
          value={filter.text}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => change({ text: event.currentTarget.value }, 'typed')}
        />
      </div>
      {isSet && (
        <button type="button" onClick={() => change({ location: '', integration: '', text: '' })}>
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
