import { useState } from 'preact/hooks';
import { may, scopeOf } from '../may.ts';
import { Choice } from '../parts/choice.tsx';
import { knownLocations, locationName } from '../parts/names.tsx';
import type { Role } from '../wire.ts';
import type { Draft } from './right-of.ts';

const ROLES: readonly (readonly [role: Role, means: string])[] = [
  ['operator', 'retry, resolve, cancel, replay, pause, test'],
  ['member-data', 'reveal what members ordered and wrote'],
  ['integrator', 'add, change and connect locations; alone, it reads only locations'],
  ['admin', 'tokens, roles, sessions, the audit'],
];
/** With more options, there is a text that filters them. */
const MANY = 8;

/** The inputs for roles and their locations. */
export function RightFields({ draft, onChange }: { draft: Draft; onChange: (draft: Draft) => void }) {
  const own = scopeOf('admin');
  const places = knownLocations.value.filter(({ locationId }) => may('admin', locationId));
  const groups = new Set(own?.groups ?? places.flatMap((each) => each.groups));
  return (
    <>
      <Ticks
        legend="Roles. Each includes viewer, which reads everything except member data"
        options={ROLES.map(([role, means]) => [role, `${role}: ${means}`])}
        chosen={draft.roles}
        onChange={(roles) => onChange({ ...draft, roles })}
      />
      <Choice
        id="people-where"
        label="Where"
        value={draft.where}
        options={[
          ['', 'Choose …'],
          ...(own === null ? ([['all', 'at all locations, also future ones']] as const) : []),
          ['some', 'only at these locations and groups'],
        ]}
        onChoose={(where) => onChange({ ...draft, where: where as Draft['where'] })}
      />
      {draft.where === 'some' && (
        <>
          <Ticks
            legend="Groups of locations, also their future locations"
            options={[...groups].toSorted().map((group) => [group, group])}
            chosen={draft.groups}
            onChange={(chosen) => onChange({ ...draft, groups: chosen })}
          />
          <Ticks
            legend="Locations"
            options={places.map(({ locationId }) => [locationId, locationName(locationId)])}
            chosen={draft.locations}
            onChange={(locations) => onChange({ ...draft, locations })}
          />
        </>
      )}
    </>
  );
}

/** Checkboxes for several of some options. It is left out if there are none. */
function Ticks<Value extends string>({
  legend,
  options,
  chosen,
  onChange,
}: {
  legend: string;
  options: readonly (readonly [value: Value, name: string])[];
  chosen: readonly Value[];
  onChange: (chosen: Value[]) => void;
}) {
  const [text, setText] = useState('');
  if (options.length === 0) return null;
  const wanted = text.trim().toLowerCase();
  return (
    <fieldset class="people-ticks">
      <legend>
        {legend}
        {options.length > MANY && ` (${chosen.length} chosen)`}
      </legend>
      {options.length > MANY && (
        <input
          type="search"
          aria-label={`Filter: ${legend}`}
          placeholder="Filter by name"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      )}
      <div class="people-options">
        {options
          .filter(([value, name]) => `${name}\n${value}`.toLowerCase().includes(wanted))
          .map(([value, name]) => (
            <label key={value} title={value}>
              <input
                type="checkbox"
                checked={chosen.includes(value)}
                onChange={({ currentTarget: { checked } }) =>
                  onChange([...chosen.filter((each) => each !== value), ...(checked ? [value] : [])])
                }
              />{' '}
              {name}
            </label>
          ))}
      </div>
    </fieldset>
  );
}
