import { useState } from 'preact/hooks';
import { may, scopeOf } from '../may.ts';
import { Choice, FieldGroup, Text, Tick, type FieldProps } from '../parts/form.tsx';
import { knownLocations, locationName, optionsOf } from '../parts/names.ts';
import type { Role } from '../wire.ts';
import { rightOf, type Draft } from './right-of.ts';

const ROLES: readonly (readonly [role: Role, means: string])[] = [
  ['operator', 'retry, resolve, cancel, replay, pause, test connections; no settings'],
  ['member-data', 'find members; reveal their names, numbers, addresses and notes'],
  ['integrator', 'add, change, connect and test locations; alone, it reads only locations'],
  ['admin', 'tokens, roles, sessions, the audit'],
];
/** With more options, there is a text that filters them. */
const MANY = 8;

/** The inputs for roles and their locations. */
export function RightFields({ draft, onChange }: { draft: Draft; onChange: (draft: Draft) => void }) {
  const own = scopeOf('admin');
  const places = knownLocations.value.filter(({ locationId }) => may('admin', locationId));
  const ids = places.map(({ locationId }) => locationId);
  const groups = new Set(own?.groups ?? places.flatMap((each) => each.groups));
  return (
    <>
      <Ticks
        id="people-roles-of"
        label="Roles"
        hint="Each but integrator includes viewer, which reads everything except member data."
        options={ROLES.map(([role, means]) => [role, `${role}: ${means}`])}
        chosen={draft.roles}
        onChoose={(roles) => onChange({ ...draft, roles })}
      />
      <Choice
        id="people-where"
        label="Where"
        isRequired
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
            id="people-groups"
            label="Groups of locations"
            hint="Also their future locations."
            options={[...groups].toSorted().map((group) => [group, group])}
            chosen={draft.groups}
            onChoose={(chosen) => onChange({ ...draft, groups: chosen })}
          />
          <Ticks
            id="people-locations"
            label="Locations"
            problem={rightOf(draft) === undefined ? 'Choose a location or a group.' : undefined}
            options={optionsOf(ids, '', locationName)}
            chosen={draft.locations}
            onChoose={(locations) => onChange({ ...draft, locations })}
          />
        </>
      )}
    </>
  );
}

/** Several of some options. It is left out if there are none. */
function Ticks<Value extends string>({
  options,
  chosen,
  onChoose,
  ...about
}: FieldProps & {
  options: readonly (readonly [value: Value, name: string])[];
  chosen: readonly Value[];
  onChoose: (chosen: Value[]) => void;
}) {
  const [text, setText] = useState('');
  if (options.length === 0) return null;
  const wanted = text.trim().toLowerCase();
  return (
    <FieldGroup {...about}>
      {options.length > MANY && (
        <Text
          id={`${about.id}-filter`}
          label={`${chosen.length} chosen. Filter by name`}
          type="search"
          value={text}
          onWrite={setText}
        />
      )}
      <div class="people-options">
        {options
          .filter(([value, name]) => `${name}\n${value}`.toLowerCase().includes(wanted))
          .map(([value, name]) => (
            <Tick
              key={value}
              isOn={chosen.includes(value)}
              onTick={(isOn) => onChoose([...chosen.filter((each) => each !== value), ...(isOn ? [value] : [])])}
            >
              {name}
            </Tick>
          ))}
      </div>
    </FieldGroup>
  );
}
