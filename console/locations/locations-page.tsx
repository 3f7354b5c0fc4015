import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { ask } from '../api.ts';
import { may } from '../may.ts';
import { Badge } from '../parts/badge.tsx';
import { Choice } from '../parts/choice.tsx';
import { GroupChoice } from '../parts/group-choice.tsx';
import { now } from '../parts/clock.ts';
import { Loading } from '../parts/loading.tsx';
import { Page } from '../parts/page.tsx';
import { Ago } from '../parts/time.tsx';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import type { ListedLocation, ListedLocations } from '../wire.ts';
import { pageOf } from '../parts/page-of.ts';
import { findLocations, integrationsOf } from './find-locations.ts';
import { silence } from './assess-location.ts';
import { LastHourErrors, LastHourWebhooks } from './last-hour.tsx';
import './locations.css';

const EVERY_MS = 10_000;

export function LocationsPage() {
  const loaded = useLoaded((signal) => ask<ListedLocations>('GET', '/locations', { signal }), [], EVERY_MS);
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
      <Loading loaded={loaded}>{({ locations }) => <List all={locations} />}</Loading>
    </Page>
  );
}

function List({ all }: { all: readonly ListedLocation[] }) {
  const [filters, change] = useFilters('text', 'group', 'integration', 'paused', 'by');
  const found = useMemo(() => findLocations(all, filters, Date.now()), [all, ...Object.values(filters)]);
  // Rows are rendered again only if the data has changed.
  const rows = useMemo(
    () =>
      found.map((location) => (
        <tr key={location.locationId}>
          <th scope="row">
            <a href={pageOf.location(location.locationId)}>{location.locationId}</a>
            <span class="locations-about">
              {[location.name, location.integration, ...location.groups].filter((each) => each !== null).join(' · ')}
              {location.pausedAt !== null && (
                <Badge tone="warn">{location.pausedUntil === null ? 'paused' : 'paused by the POS'}</Badge>
              )}
            </span>
          </th>
          <td>
            <LastSeen at={location.lastSeenAt} isBrief />
          </td>
          <td>
            <LastHourWebhooks location={location} />
          </td>
          <td>
            <LastHourErrors location={location} />
          </td>
        </tr>
      )),
    [found],
  );
  if (all.length === 0) {
    return (
      <p>
        There is no location yet. Add one here, or run <code>expediter location put --help</code>.
      </p>
    );
  }
  return (
    <>
      <search class="filters locations-filters">
        <div class="field">
          <label htmlFor="locations-text">Location</label>
          <input
            id="locations-text"
            type="search"
            value={filters.text}
            onInput={(event) => change({ text: event.currentTarget.value }, 'typed')}
          />
        </div>
        <GroupChoice page="locations" value={filters.group} locations={all} onChoose={(group) => change({ group })} />
        <Choice
          id="locations-integration"
          label="Integration"
          value={filters.integration}
          options={[['', 'all'], ...integrationsOf(all).map((name) => [name, name] as const)]}
          onChoose={(integration) => change({ integration })}
        />
        <Choice
          id="locations-paused"
          label="Orders"
          value={filters.paused}
          options={[
            ['', 'all'],
            ['false', 'accepted'],
            ['true', 'paused'],
          ]}
          onChoose={(paused) => change({ paused })}
        />
        <Choice
          id="locations-by"
          label="Sort by"
          value={filters.by}
          options={[
            ['', 'worst first'],
            ['name', 'name'],
            ['heard', 'longest silent'],
            ['webhooks', 'most webhooks'],
            ['errors', 'most errors'],
          ]}
          onChoose={(by) => change({ by })}
        />
        <output class="faint locations-count">
          {found.length === all.length ? all.length : `${found.length} of ${all.length}`}
          {all.length === 1 ? ' location' : ' locations'}
        </output>
      </search>
      <div class="sheet">
        <table class="locations-list">
          <thead>
            <tr>
              <th scope="col">Location</th>
              <th scope="col">Last webhook, ago</th>
              <th scope="col">Webhooks, last hour</th>
              <th scope="col">Errors, last hour</th>
            </tr>
          </thead>
          <tbody>{rows}</tbody>
        </table>
        {found.length === 0 && <p class="faint">No location matches the filter.</p>}
      </div>
    </>
  );
}

/** The time since a location's last webhook, highlighted if it is long. */
export function LastSeen({ at, isBrief = false }: { at: string | null; isBrief?: boolean }) {
  const tone = useMemo(() => computed(() => silence(at, now.value)), [at]).value;
  if (at === null) return <Badge tone={tone}>never</Badge>;
  return tone === 'plain' ? (
    <Ago at={at} isBrief={isBrief} />
  ) : (
    <Badge tone={tone}>
      <Ago at={at} isBrief={isBrief} />
    </Badge>
  );
}
