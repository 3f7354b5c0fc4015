import { ask } from '../api.ts';
import type { ListedLocations } from '../wire.ts';
import { GroupChoice } from './group-choice.tsx';
import { useLoaded } from './use-loaded.ts';
import { Written } from './written.tsx';

export function PlaceFilters({
  page,
  location = '',
  group,
  integration = '',
  change,
}: {
  page: string;
  location: string | undefined;
  /** Undefined if the page has no filter by group. */
  group?: string;
  integration: string | undefined;
  change: (some: { location?: string; group?: string; integration?: string }) => void;
}) {
  // Only suggestions: a filter may name a location that no longer exists.
  const { value } = useLoaded((signal) => ask<ListedLocations>('GET', '/locations', { signal }), []);
  const locations = value?.locations ?? [];
  return (
    <>
      {group !== undefined && (
        <GroupChoice page={page} value={group} locations={locations} onChoose={(to) => change({ group: to })} />
      )}
      <Written
        id={`${page}-location`}
        label="Location"
        value={location}
        offers={locations.map((each) => each.locationId)}
        onWrite={(to) => change({ location: to })}
      />
      <Written
        id={`${page}-integration`}
        label="POS"
        value={integration}
        offers={[...new Set(locations.map((each) => each.integration))]}
        onWrite={(to) => change({ integration: to })}
      />
    </>
  );
}
