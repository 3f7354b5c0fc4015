import { scopeOf } from '../may.ts';
import { Choice } from '../parts/choice.tsx';
import type { Role } from '../wire.ts';
import type { Draft } from './right-of.ts';

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
      <fieldset class="people-roles">
        <legend>Roles. Each includes viewer, which reads everything except member data</legend>
        {ROLES.map(([role, means]) => (
          <label key={role}>
            <input
              type="checkbox"
              checked={draft.roles.includes(role)}
              onChange={({ currentTarget }) =>
                onChange({
                  ...draft,
                  roles: [...draft.roles.filter((each) => each !== role), ...(currentTarget.checked ? [role] : [])],
                })
              }
            />{' '}
            {role}: {means}
          </label>
        ))}
      </fieldset>
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
          <div class="field">
            <label htmlFor="people-locations">Location ids, one per line</label>
            <textarea
              id="people-locations"
              class="mono"
              rows={3}
              spellcheck={false}
              placeholder={own?.locations.join('\n')}
              value={draft.ids}
              onInput={(event) => onChange({ ...draft, ids: event.currentTarget.value })}
            />
          </div>
          <div class="field">
            <label htmlFor="people-groups">Groups of locations, one per line; also future locations</label>
            <textarea
              id="people-groups"
              class="mono"
              rows={2}
              spellcheck={false}
              placeholder={own?.groups.join('\n')}
              value={draft.groups}
              onInput={(event) => onChange({ ...draft, groups: event.currentTarget.value })}
            />
          </div>
        </>
      )}
    </>
  );
}
