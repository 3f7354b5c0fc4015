import { ask, query } from '../api.ts';
import { may } from '../may.ts';
import { FilterChoice } from '../parts/filter-choice.tsx';
import { FoldedFilters } from '../parts/folded-filters.tsx';
import { GroupChoice } from '../parts/group-choice.tsx';
import { LocationField } from '../parts/location-field.tsx';
import { Page } from '../parts/page.tsx';
import { Paged } from '../parts/paged.tsx';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import { WithRole } from '../parts/with-role.tsx';
import { When, Written } from '../parts/written.tsx';
import type { ListedActions } from '../wire.ts';
import { Acts } from './actions.tsx';
import './audit.css';
import { ACT_CODES, actionName, personName } from '../../src/core/domain/describe-action.ts';

const LIMIT = 50;
const FILTERS = ['actor', 'action', 'group', 'location', 'order', 'outcome', 'since', 'until'] as const;

export function AuditPage() {
  if (may('admin', { anywhere: true })) return <Audit />;
  return (
    <Page title="Audit">
      <p>
        <WithRole needs="admin" at={{ anywhere: true }} to="To read the audit" /> The timeline of an order shows the
        actions on it.
      </p>
    </Page>
  );
}

function Audit() {
  const [{ cursor, ...filter }, change] = useFilters(...FILTERS, 'cursor');
  const chosen = query({ ...filter, cursor, limit: LIMIT });
  const authors = useLoaded((signal) => ask<{ people: string[] }>('GET', '/audit/people', { signal }), []);
  const found = useLoaded((signal) => ask<ListedActions>('GET', `/audit${chosen}`, { signal }), [chosen]);
  const set = (some: Partial<typeof filter>): void => change({ ...some, cursor: '' });
  const of = { page: 'audit', filter, change: set };
  const at = (cursor: string): string => `/console/audit${query({ ...filter, cursor })}`;
  return (
    <Page
      title="Audit"
      beside={
        <button type="button" onClick={found.again} disabled={found.isLoading}>
          Refresh
        </button>
      }
    >
      <FoldedFilters label="Which actions" filters={filter} clear="/console/audit">
        <FilterChoice
          of={of}
          name="actor"
          label="By whom"
          options={[...new Set(['', filter.actor, ...(authors.value?.people ?? [])])].map(
            (name) => [name, personName(name) || 'anybody'] as const,
          )}
        />
        <FilterChoice
          of={of}
          name="action"
          label="What"
          options={[['', 'anything'], ...ACT_CODES.map((code) => [code, actionName(code)] as const)]}
        />
        <FilterChoice
          of={of}
          name="outcome"
          label="How it ended"
          options={[['', 'any'], ...['done', 'refused', 'failed', 'unknown'].map((each) => [each, each] as const)]}
        />
        <GroupChoice page="audit" value={filter.group} onChoose={(group) => set({ group })} />
        <LocationField
          id="audit-location"
          label="Location"
          value={filter.location}
          onChoose={(location) => set({ location })}
        />
        <Written id="audit-order" label="Order id" isCode value={filter.order} onWrite={(order) => set({ order })} />
        <When id="audit-since" label="Since" value={filter.since} onSay={(since) => set({ since })} />
        <When id="audit-until" label="Before" value={filter.until} onSay={(until) => set({ until })} />
      </FoldedFilters>
      <Paged found={found} cursor={cursor} at={at} isEmpty={({ actions }) => actions.length === 0}>
        {({ actions, next }) =>
          actions.length > 0 ? (
            <Acts actions={actions} label="What was done" />
          ) : (
            <p>{next === null ? 'No actions match.' : 'No actions match yet. Older actions were not searched.'}</p>
          )
        }
      </Paged>
    </Page>
  );
}
