import { Choice } from './form.tsx';
import { knownLocations } from './names.ts';

type AboutGroupChoice = { page: string; value: string; onChoose: (group: string) => void };

/** The choice of a group of locations. It is left out if there are no groups. */
export function GroupChoice({ page, value, onChoose }: AboutGroupChoice) {
  const groups = knownGroups();
  if (groups.length === 0 && value === '') return null;
  // A shared link may name a group that no longer exists.
  const options = value === '' || groups.includes(value) ? groups : [value, ...groups];
  return (
    <Choice
      id={`${page}-group`}
      label="Group"
      value={value}
      options={[['', 'all'], ...options.map((group) => [group, group] as const)]}
      onChoose={onChoose}
    />
  );
}

/** The groups of the locations that the operator may see. */
export function knownGroups(): string[] {
  return [...new Set(knownLocations.value.flatMap(({ groups }) => groups))].toSorted();
}
