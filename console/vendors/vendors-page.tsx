import { ask, query } from '../api.ts';
import { Choice } from '../parts/form.tsx';
import { GroupChoice } from '../parts/group-choice.tsx';
import { Loading } from '../parts/loading.tsx';
import { locationName, vendorName } from '../parts/names.ts';
import { Page } from '../parts/page.tsx';
import { pageOf } from '../parts/page-of.ts';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import type { Scorecards } from '../wire.ts';
import { ScoreTable } from './score-table.tsx';

const EVERY_MS = 60_000;
const DAYS = [['', '24 hours'] as const, ['7', '7 days'] as const];

/** Compares vendors. If the address names an integration, compares its locations. */
export function VendorsPage() {
  const [{ integration, group, days, by }, change] = useFilters('integration', 'group', 'days', 'by');
  const loaded = useLoaded(
    (signal) => ask<Scorecards>('GET', `/scorecards${query({ integration, group })}`, { signal }),
    [integration, group],
    EVERY_MS,
  );
  return (
    <Page
      title={integration === '' ? 'Vendors' : `Vendors: ${vendorName(integration)}`}
      beside={integration !== '' && <a href={`/console/vendors${query({ group, days, by })}`}>All vendors</a>}
    >
      <search class="filters">
        <Choice id="vendors-days" label="Last" value={days} options={DAYS} onChoose={(days) => change({ days })} />
        <GroupChoice page="vendors" value={group} onChoose={(group) => change({ group })} />
      </search>
      <Loading loaded={loaded}>
        {({ scorecards }) =>
          scorecards.length === 0 ? (
            <p class="sheet">No orders in the last 7 days, in whole hours.</p>
          ) : (
            <div class="sheet">
              <ScoreTable
                what={integration === '' ? 'Vendor' : 'Location'}
                by={by}
                onSort={(by) => change({ by })}
                rows={scorecards.map(({ integration, locationId, day, week }) => ({
                  ...(locationId === null
                    ? {
                        name: vendorName(integration),
                        href: `/console/vendors${query({ integration, group, days, by })}`,
                      }
                    : { name: locationName(locationId), href: pageOf.location(locationId) }),
                  score: days === '7' ? week : day,
                }))}
              />
            </div>
          )
        }
      </Loading>
    </Page>
  );
}
