import { Choice } from './form.tsx';
import { GroupChoice } from './group-choice.tsx';
import { LocationField } from './location-field.tsx';
import { vendorOptions } from './names.ts';

type AboutPlaceFilters = {
  page: string;
  location: string | undefined;
  /** Undefined if the page has no filter by group. */
  group?: string;
  integration: string | undefined;
  change: (some: { location?: string; group?: string; integration?: string }) => void;
};

export function PlaceFilters({ page, location = '', group, integration = '', change }: AboutPlaceFilters) {
  return (
    <>
      {group !== undefined && <GroupChoice page={page} value={group} onChoose={(to) => change({ group: to })} />}
      <LocationField
        id={`${page}-location`}
        label="Location"
        value={location}
        onChoose={(to) => change({ location: to })}
      />
      <Choice
        id={`${page}-integration`}
        label="POS"
        value={integration}
        options={[['', 'all'], ...vendorOptions(integration)]}
        onChoose={(to) => change({ integration: to })}
      />
    </>
  );
}
