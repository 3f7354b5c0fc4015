import { computed } from '@preact/signals';
import { useMemo, useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { ask } from '../api.ts';
import { may } from '../may.ts';
import { Badge } from '../parts/badge.tsx';
import { Text } from '../parts/form.tsx';
import { GroupChoice } from '../parts/group-choice.tsx';
import { now } from '../parts/clock.ts';
import { FoldedFilters } from '../parts/folded-filters.tsx';
import { Loading } from '../parts/loading.tsx';
import { LocationLink } from '../parts/location-field.tsx';
import { knownLocations, locationName, names, vendorName, vendorOptions, vendors } from '../parts/names.ts';
import { Page } from '../parts/page.tsx';
import { Pick } from '../parts/pick.tsx';
import { Ago } from '../parts/time.tsx';
import { useChosen } from '../parts/use-chosen.ts';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import type { ListedLocation, ListedLocations } from '../wire.ts';
import { findLocations } from './find-locations.ts';
import { notReachedInWords } from '../../src/core/domain/explain-cause.ts';
import { failingTone, heldOf, silence, unreportedOf } from './assess-location.ts';
import { KITCHEN_TONES, kitchenInShort } from './kitchen.ts';
import { LastHourErrors, LastHourWebhooks } from './last-hour.tsx';
import './locations.css';
import { PauseDialog, ResumeDialog } from './pause-dialog.tsx';
import { isByPos, pausedBy, stateOfOrders } from './pause.ts';
import { FilterChoice } from '../parts/filter-choice.tsx';
import { Heads } from '../parts/heads.tsx';

const EVERY_MS = 10_000;
const PAUSED = Object.entries({ '': 'all', false: 'taking orders', true: 'paused' });
const LONGEST = { heard: 'longest silent', webhooks: 'most webhooks', errors: 'most errors' };
const ORDER = Object.entries({ '': 'worst first', name: 'name', ...LONGEST });

export function LocationsPage() {
  const loaded = useLoaded(readLocations, [], EVERY_MS);
  return (
    <Page
      title="Locations"
      beside={
        may('integrator', { anywhere: true }) && (
          <a class="button primary" href="/console/locations/new">
            Add a location
          </a>
        )
      }
    >
      <Loading loaded={loaded}>{({ locations }) => <List all={locations} onDone={loaded.again} />}</Loading>
    </Page>
  );
}

/** Also gives other pages the names that are new. */
async function readLocations(signal: AbortSignal): Promise<ListedLocations> {
  const listed = await ask<ListedLocations>('GET', '/locations', { signal });
  // An answer in another form breaks only this page.
  if (Array.isArray(listed.locations)) knownLocations.value = listed.locations;
  return listed;
}

function List({ all, onDone }: { all: readonly ListedLocation[]; onDone: () => void }) {
  const [filters, change] = useFilters('text', 'group', 'integration', 'paused', 'by');
  const of = { page: 'locations', filter: filters, change };
  const chosen = useChosen();
  const found = useMemo(() => findLocations(all, filters, Date.now()), [all, ...Object.values(filters)]);
  // Rows are rendered again only if the data has changed.
  const rows = useMemo(
    () =>
      found.map((location) => (
        <tr key={location.locationId}>
          <th scope="row">
            {may('operator', location.locationId) && (
              <Pick chosen={chosen} ids={[location.locationId]} label={`Choose ${locationName(location.locationId)}`} />
            )}
            <LocationLink id={location.locationId} />
            <span class="row locations-about">
              {[vendorName(location.integration), ...location.groups].join(' · ')}
              <NotTaking location={location} />
              {location.open?.unreported > 0 && <Badge tone="bad">{unreportedOf(location.open)}</Badge>}
            </span>
          </th>
          <td data-name="Last webhook">
            <LastSeen at={location.lastSeenAt} isBrief />
          </td>
          <td data-name="Webhooks, 1 h">
            <LastHourWebhooks location={location} />
          </td>
          <td data-name="Errors, 1 h">
            <LastHourErrors location={location} />
          </td>
        </tr>
      )),
    [found, chosen.ids, names.value, vendors.value],
  );
  if (all.length === 0) {
    return (
      <p>
        No locations yet. Add one here, or run <code>expediter location put --help</code>.
      </p>
    );
  }
  return (
    <>
      <FoldedFilters
        label="Which locations"
        filters={{ ...filters, text: '' }}
        first={
          <Text
            id="locations-text"
            label="Location"
            type="search"
            value={filters.text}
            onWrite={(text) => change({ text }, 'typed')}
          />
        }
      >
        <GroupChoice page="locations" value={filters.group} onChoose={(group) => change({ group })} />
        <FilterChoice
          of={of}
          name="integration"
          label="POS"
          options={[['', 'all'], ...vendorOptions(filters.integration)]}
        />
        <FilterChoice of={of} name="paused" label="Orders" options={PAUSED} />
        <FilterChoice of={of} name="by" label="Sort by" options={ORDER} />
      </FoldedFilters>
      <output class="faint locations-count">
        {found.length === all.length ? all.length : `${found.length} of ${all.length}`}
        {all.length === 1 ? ' location' : ' locations'}
      </output>
      <div class="sheet">
        <table class="locations-list lines">
          <Heads of={['Location', 'Last webhook', 'Webhooks, last hour', 'Errors, last hour']} />
          <tbody>{rows}</tbody>
        </table>
        {found.length === 0 && <p class="faint">No locations match.</p>}
      </div>
      <ForChosen
        locations={found.filter(({ locationId }) => chosen.ids.has(locationId))}
        onClear={chosen.clear}
        onDone={onDone}
      />
    </>
  );
}

/** Says why orders wait or take longer. */
function NotTaking({ location }: { location: ListedLocation }) {
  const state = stateOfOrders(location);
  const { kitchen, open } = location;
  if (state === 'paused') return <Badge tone="warn">paused by {pausedBy(location)}</Badge>;
  if (state === 'access ended') return <Badge tone="bad">{state}</Badge>;
  return (
    <>
      {open?.failing && <Badge tone={failingTone(location)}>{notReachedInWords(open.failing)}</Badge>}
      {heldOf(location) && <Badge tone="warn">{heldOf(location)}</Badge>}
      {kitchen.state !== 'open' && <Badge tone={KITCHEN_TONES[kitchen.state]}>{kitchenInShort(kitchen)}</Badge>}
    </>
  );
}

type Chosen = { locations: readonly ListedLocation[]; onClear: () => void; onDone: () => void };

/** The actions on the chosen locations. */
function ForChosen({ locations, onClear, onDone }: Chosen) {
  const [dialog, setDialog] = useState<'pause' | 'change' | 'resume'>();
  const isPaused = ({ pausedAt }: ListedLocation): boolean => pausedAt !== null;
  const paused = locations.filter(isPaused);
  const changeable = paused.filter((each) => !isByPos(each));
  const others = locations.filter((each) => !isPaused(each));
  const shared = { onDone, onClose: () => setDialog(undefined) };
  if (locations.length === 0) return null;
  return (
    <section class="row chosen" aria-label="Chosen locations">
      {others.length > 0 && <AskButton onClick={() => setDialog('pause')}>Pause {others.length}</AskButton>}
      {changeable.length > 0 && (
        <AskButton onClick={() => setDialog('change')}>Change the pause of {changeable.length}</AskButton>
      )}
      {paused.length > 0 && <AskButton onClick={() => setDialog('resume')}>Resume {paused.length}</AskButton>}
      <button type="button" onClick={onClear}>
        Clear
      </button>
      {dialog === 'pause' && <PauseDialog locations={others} {...shared} />}
      {dialog === 'change' && <PauseDialog locations={changeable} {...shared} />}
      {dialog === 'resume' && <ResumeDialog locations={paused} {...shared} />}
    </section>
  );
}

/** The time since a location's last webhook, highlighted if it is long. */
export function LastSeen({ at, isBrief = false }: { at: string | null; isBrief?: boolean }) {
  const tone = useMemo(() => computed(() => silence(at, now.value)), [at]).value;
  const shown = at === null ? 'never' : <Ago at={at} isBrief={isBrief} />;
  return tone === 'plain' ? <>{shown}</> : <Badge tone={tone}>{shown}</Badge>;
}
