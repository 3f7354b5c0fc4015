import { useId } from 'preact/hooks';
import type { Filter } from './keep-board.ts';
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
  const textId = useId();
  const isSet = filter.location !== '' || filter.integration !== '' || filter.text !== '';
  return (
    <search class="filters board-filters">
      <Choice
        label="Location"
        names={locations}
        chosen={filter.location}
        onChange={(location) => change({ location })}
      />
      <Choice
        label="Integration"
        names={integrations}
        chosen={filter.integration}
        onChange={(integration) => change({ integration })}
      />
      <div class="field">
        <label htmlFor={textId}>Order, POS id or location</label>
        <input
          id={textId}
          type="search"
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

function Choice({
  label,
  names,
  chosen,
  onChange,
}: {
  label: string;
  names: string[];
  chosen: string;
  onChange: (name: string) => void;
}) {
  const id = useId();
  // One that an address names need not be on the board.
  const all = chosen === '' || names.includes(chosen) ? names : [chosen, ...names];
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={chosen} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">All</option>
        {all.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}
