import { useEffect, useRef } from 'preact/hooks';
import { ask, query } from '../api.ts';
import { Badge } from '../parts/badge.tsx';
import { Loading } from '../parts/loading.tsx';
import { Page } from '../parts/page.tsx';
import { Ago, Time } from '../parts/time.tsx';
import { OUTCOME_TONES } from '../parts/tones.ts';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import type { ListedDeliveries, ListedDelivery } from '../wire.ts';
import { pageOf } from '../parts/page-of.ts';
import { bytesInWords } from './bytes-in-words.ts';
import './webhooks.css';
import { DeliveriesFilters } from './webhooks-filters.tsx';
import { FILTERS } from './webhook-filter.ts';
import { explainDrop } from './explain-drop.ts';
import { outcomeMeaning } from './outcome-meaning.ts';
import { ReplayAll } from './replay-all.tsx';

const LIMIT = 50;

/** Webhooks as they came, newest first, by what is asked for. */
export function Deliveries() {
  const [{ cursor, ...filter }, change] = useFilters(...FILTERS, 'cursor');
  const asked = query({ ...filter, cursor, limit: LIMIT });
  const found = useLoaded((signal) => ask<ListedDeliveries>('GET', `/deliveries${asked}`, { signal }), [asked]);
  const list = useRef<HTMLDivElement>(null);
  const shownFrom = useRef(cursor);
  // The link to another page, which had the focus, is gone with the page before.
  useEffect(() => {
    if (found.value === undefined || shownFrom.current === cursor) return;
    shownFrom.current = cursor;
    list.current?.focus();
  }, [found.value]);
  const at = (cursor: string): string => `/console/deliveries${query({ ...filter, cursor })}`;
  return (
    <Page
      title="Deliveries"
      beside={
        <button type="button" onClick={found.again} disabled={found.isLoading}>
          Refresh
        </button>
      }
    >
      <DeliveriesFilters filter={filter} change={(some) => change({ ...some, cursor: '' })} />
      <ReplayAll key={query(filter)} filter={filter} onReplayed={found.again} />
      <Loading loaded={found}>
        {({ deliveries, next }) => (
          <div ref={list} class="sheet deliveries-sheet" tabIndex={-1} aria-busy={found.isLoading}>
            {deliveries.length > 0 ? (
              <Rows deliveries={deliveries} />
            ) : (
              <Nothing isStretch={next !== null} isLater={cursor !== ''} />
            )}
            <nav class="buttons deliveries-pages" aria-label="Older and newer">
              {cursor !== '' && (
                <a class="button" href={at('')}>
                  Newest
                </a>
              )}
              {next !== null && (
                <a class="button" href={at(next)}>
                  {deliveries.length > 0 ? 'Older' : 'Look further back'}
                </a>
              )}
            </nav>
          </div>
        )}
      </Loading>
    </Page>
  );
}

function Nothing({ isStretch, isLater }: { isStretch: boolean; isLater: boolean }) {
  if (isStretch) return <p>Nothing in this stretch of time. There are older ones, which were not looked at yet.</p>;
  return <p>{isLater ? 'There are no older ones.' : 'No webhook that is kept is like that.'}</p>;
}

function Rows({ deliveries }: { deliveries: readonly ListedDelivery[] }) {
  return (
    <table class="deliveries-list linked">
      <thead>
        <tr>
          <th scope="col">Received</th>
          <th scope="col">Outcome</th>
          <th scope="col">Location</th>
          <th scope="col">Why</th>
          <th scope="col" class="deliveries-number">
            Events
          </th>
          <th scope="col" class="deliveries-number">
            Size
          </th>
        </tr>
      </thead>
      <tbody>
        {deliveries.map((delivery) => (
          <Row key={delivery.deliveryId} delivery={delivery} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ delivery }: { delivery: ListedDelivery }) {
  const { deliveryId, receivedAt, outcome, locationId, integration, reason, events, bytes, truncated } = delivery;
  return (
    <tr>
      <th scope="row">
        <a href={pageOf.delivery(deliveryId)}>
          <Time at={receivedAt} />
        </a>{' '}
        <span class="deliveries-about">
          <Ago at={receivedAt} />
        </span>
      </th>
      <td>
        <Badge tone={OUTCOME_TONES[outcome]}>{outcome}</Badge>
        {delivery.replayOf !== null && <span class="deliveries-about"> a replay</span>}
      </td>
      <td>
        {locationId} <span class="deliveries-about">{integration}</span>
      </td>
      <td class="deliveries-reason">
        {outcome === 'dropped'
          ? explainDrop(reason, delivery).what
          : reason === null
            ? ''
            : outcomeMeaning(outcome, reason)}
      </td>
      <td class="deliveries-number">{events}</td>
      <td class="deliveries-number">
        {bytesInWords(bytes)}
        {truncated && <span class="deliveries-about"> cut off</span>}
      </td>
    </tr>
  );
}
