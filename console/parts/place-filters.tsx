import { FilterChoice } from './filter-choice.tsx';
import { GroupChoice } from './group-choice.tsx';
import { LocationField } from './location-field.tsx';
import { vendorOptions } from './names.ts';

type Places = { location?: string; group?: string; integration?: string };

export function PlaceFilters({ of }: { of: { page: string; filter: Places; change: (some: Places) => void } }) {
  const { page, filter, change } = of;
  const { location = '', group = '', integration = '' } = filter;
  return (
    <>
      <GroupChoice page={page} value={group} onChoose={(to) => change({ group: to })} />
      <LocationField
        id={`${page}-location`}
        label="Location"
        value={location}
        onChoose={(to) => change({ location: to })}
      />
      <FilterChoice of={of} name="integration" label="POS" options={[['', 'all'], ...vendorOptions(integration)]} />
    </>
  );
}
