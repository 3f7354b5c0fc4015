import { ask, query } from '../api.ts';
import { GroupChoice } from '../parts/group-choice.tsx';
import { Loading } from '../parts/loading.tsx';
import { locationName, vendorName } from '../parts/names.ts';
import { Page } from '../parts/page.tsx';
import { pageOf } from '../parts/page-of.ts';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import type { Scorecard, Scorecards } from '../wire.ts';
import { ScoreTable } from './score-table.tsx';

const EVERY_MS = 60_000;

/** The scorecard of each vendor. If the address names an integration, the scorecard of each of its locations. */
export function VendorsPage() {
  const [{ integration, group }, change] = useFilters('integration', 'group');
  const loaded = useLoaded(
    (signal) => ask<Scorecards>('GET', `/scorecards${query({ integration, group })}`, { signal }),
    [integration, group],
    EVERY_MS,
  );
  return (
    <Page title={integration === '' ? 'Vendors' : `Vendors: ${vendorName(integration)}`}>
      {integration !== '' && (
        <p>
          <a href={`/console/vendors${query({ group })}`}>All vendors</a>
        </p>
      )}
      <search class="filters">
        <GroupChoice page="vendors" value={group} onChoose={(group) => change({ group })} />
      </search>
      <Loading loaded={loaded}>
        {({ scorecards }) =>
          scorecards.length === 0 ? (
            <p class="sheet">No orders in the last 7 days, in whole hours.</p>
          ) : (
            scorecards.map((each) => <Card key={each.locationId ?? each.integration} scorecard={each} group={group} />)
          )
        }
      </Loading>
    </Page>
  );
}

function Card({ scorecard, group }: { scorecard: Scorecard; group: string }) {
  const { integration, locationId } = scorecard;
  const name = locationId === null ? vendorName(integration) : locationName(locationId);
  const href = locationId === null ? `/console/vendors${query({ integration, group })}` : pageOf.location(locationId);
  return (
    <section class="sheet" aria-label={name}>
      <h2>
        <a href={href}>{name}</a>
      </h2>
      <ScoreTable scorecard={scorecard} />
    </section>
  );
}
