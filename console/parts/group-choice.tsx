import type { ListedLocation } from '../wire.ts';
import { Choice } from './form.tsx';

/** The choice of a group of locations. It is left out if there are no groups. */
export function GroupChoice({
  page,
  value,
  locations,
  onChoose,
}: {
  page: string;
  value: string;
  locations: readonly Pick<ListedLocation, 'groups'>[];
  onChoose: (group: string) => void;
}) {
  const groups = groupsOf(locations);
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

export function groupsOf(locations: readonly Pick<ListedLocation, 'groups'>[]): string[] {
  return [...new Set(locations.flatMap(({ groups }) => groups))].toSorted();
}
