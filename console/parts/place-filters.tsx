import { ask } from '../api.ts';
import type { ListedLocations } from '../wire.ts';
import { useLoaded } from './use-loaded.ts';
import { Written } from './written.tsx';

export function PlaceFilters({
  page,
  location = '',
  integration = '',
  change,
}: {
  page: string;
  location: string | undefined;
  integration: string | undefined;
  change: (some: { location?: string; integration?: string }) => void;
}) {
  // Only suggestions: a filter may name a location that no longer exists.
  const { value } = useLoaded((signal) => ask<ListedLocations>('GET', '/locations', { signal }), []);
  const locations = value?.locations ?? [];
  return (
    <>
      <Written
        id={`${page}-location`}
        label="Location"
        value={location}
        offers={locations.map((each) => each.locationId)}
        onWrite={(to) => change({ location: to })}
      />
      <Written
        id={`${page}-integration`}
        label="Integration"
        value={integration}
        offers={[...new Set(locations.map((each) => each.integration))]}
        onWrite={(to) => change({ integration: to })}
      />
    </>
  );
}
