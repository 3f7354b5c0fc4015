import { scopeOf } from '../may.ts';
import { Choice, FieldGroup, Text, Tick } from '../parts/form.tsx';
import type { Role } from '../wire.ts';
import { rightOf, type Draft } from './right-of.ts';

const ROLES: readonly (readonly [role: Role, means: string])[] = [
  ['operator', 'retry, resolve, cancel, replay, pause, test'],
  ['member-data', 'reveal what members ordered and wrote'],
  ['integrator', 'add, change and connect locations; alone, it reads only locations'],
  ['admin', 'tokens, roles, sessions, the audit'],
];

/** The inputs for roles and their locations. */
export function RightFields({ draft, onChange }: { draft: Draft; onChange: (draft: Draft) => void }) {
  const own = scopeOf('admin');
  return (
    <>
      <FieldGroup
        id="people-roles-of"
        label="Roles"
        hint="Each includes viewer, which reads everything except member data."
      >
        {ROLES.map(([role, means]) => (
          <Tick
            key={role}
            isOn={draft.roles.includes(role)}
            onTick={(isOn) =>
              onChange({
                ...draft,
                roles: [...draft.roles.filter((each) => each !== role), ...(isOn ? [role] : [])],
              })
            }
          >
            {role}: {means}
          </Tick>
        ))}
      </FieldGroup>
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
          <Text
            id="people-locations"
            label="Location ids, one per line"
            isCode
            lines={3}
            maxLength={100_000}
            placeholder={own?.locations.join('\n')}
            problem={rightOf(draft) === undefined ? 'Name a location or a group.' : undefined}
            value={draft.ids}
            onWrite={(ids) => onChange({ ...draft, ids })}
          />
          <Text
            id="people-groups"
            label="Groups of locations, one per line; also future locations"
            isCode
            lines={2}
            maxLength={100_000}
            placeholder={own?.groups.join('\n')}
            value={draft.groups}
            onWrite={(groups) => onChange({ ...draft, groups })}
          />
        </>
      )}
    </>
  );
}
