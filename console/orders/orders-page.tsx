import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, query } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { Badge } from '../parts/badge.tsx';
import { Loading } from '../parts/loading.tsx';
import { Page } from '../parts/page.tsx';
import { Ago, Time } from '../parts/time.tsx';
import { MEMBER_STATE_TONES, PLACEMENT_TONES, words } from '../parts/tones.ts';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import type { ListedOrders } from '../wire.ts';
import { pageOf } from '../parts/page-of.ts';
import { OrderSearch } from './order-search.tsx';
import { OrdersFilters } from './orders-filters.tsx';
import { FILTERS, ordersFilter, type OrdersFilter } from './orders-filter.ts';
import './orders.css';
import { readOn } from './read-on.ts';

type Row = ListedOrders['orders'][number];

export function OrdersPage() {
  const [chosen, change] = useFilters(...FILTERS);
  const filter = ordersFilter(chosen);
  const found = useLoaded((signal) => readOrders(filter, undefined, signal), [query(filter)]);
  return (
    <Page title="Orders" beside={<OrderSearch />}>
      <OrdersFilters filter={filter} change={change} />
      <Loading loaded={found}>
        {(first) => <List first={first} filter={filter} isBusy={found.isLoading} again={found.again} />}
      </Loading>
    </Page>
  );
}

const LIMIT = 50;

function readOrders(filter: OrdersFilter, cursor: string | undefined, signal?: AbortSignal): Promise<ListedOrders> {
  return readOn(
    (cursor) => ask<ListedOrders>('GET', `/orders${query({ ...filter, limit: LIMIT, cursor })}`, { signal }),
    cursor,
  );
}

function List({
  first,
  filter,
  isBusy,
  again,
}: {
  first: ListedOrders;
  filter: OrdersFilter;
  isBusy: boolean;
  again: () => void;
}) {
  const [older, setOlder] = useState<ListedOrders & { behind: ListedOrders }>();
  const [problem, setProblem] = useState<string>();
  const [isReading, setReading] = useState(false);
  const body = useRef<HTMLTableSectionElement>(null);
  const firstNew = useRef<number | undefined>(undefined);
  // Older pages of a previous list do not belong to this one.
  const read = older?.behind === first ? older : { orders: [], next: first.next };
  const orders = [...first.orders, ...read.orders];
  const { next } = read;
  // Focuses the first of the newly loaded orders.
  useEffect(() => {
    if (firstNew.current === undefined) return;
    body.current?.rows[firstNew.current]?.querySelector('a')?.focus();
    firstNew.current = undefined;
  }, [older]);

  const readOlder = async (): Promise<void> => {
    setReading(true);
    setProblem(undefined);
    try {
      const page = await readOrders(filter, next ?? undefined);
      if (page.orders.length > 0) firstNew.current = orders.length;
      setOlder({ behind: first, orders: [...read.orders, ...page.orders], next: page.next });
      announce(page.orders.length === 0 ? 'No older orders found so far' : `${page.orders.length} older orders`);
    } catch (error) {
      setProblem((error as Error).message);
    }
    setReading(false);
  };

  return (
    <div class="sheet" aria-busy={isBusy || isReading}>
      {orders.length > 0 && (
        <table class="orders-list linked">
          <thead>
            <tr>
              <th scope="col">Order</th>
              <th scope="col">Location</th>
              <th scope="col">Placement</th>
              <th scope="col">Member sees</th>
              <th scope="col">Signalled</th>
            </tr>
          </thead>
          <tbody ref={body}>
            {orders.map((order) => (
              <OrderRow key={order.serviceOrderId} order={order} />
            ))}
          </tbody>
        </table>
      )}
      {orders.length === 0 && <p>{next === null ? 'No order matches the filter.' : NONE_AMONG_NEWEST}</p>}
      <p class="problem" role="alert">
        {problem}
      </p>
      <div class="buttons">
        {next !== null && (
          <button type="button" disabled={isReading} onClick={() => void readOlder()}>
            {orders.length === 0 ? 'Search further back' : 'Older'}
          </button>
        )}
        <button type="button" class="quiet" onClick={again}>
          Refresh
        </button>
        <span class="faint orders-count">
          {orders.length} {orders.length === 1 ? 'order' : 'orders'}
          {next === null ? ' in total' : ' so far'}
        </span>
      </div>
    </div>
  );
}

const NONE_AMONG_NEWEST = 'None of the newest orders matches the filter. Older orders were not searched yet.';

function OrderRow({ order }: { order: Row }) {
  const { serviceOrderId, locationId, integration, fulfillment, placement, needsOperator, problem } = order;
  const { memberState, providerOrderId, signalledAt } = order;
  return (
    <tr>
      <th scope="row">
        <a href={pageOf.order(serviceOrderId)} class="mono">
          {serviceOrderId}
        </a>
        {providerOrderId !== null && <span class="orders-about mono">POS {providerOrderId}</span>}
      </th>
      <td>
        {locationId ?? <span class="faint">not known yet</span>}
        <span class="orders-about">{[integration, fulfillment].filter((part) => part !== null).join(', ')}</span>
      </td>
      <td>
        <Badge tone={PLACEMENT_TONES[placement]}>{needsOperator ? 'in doubt: needs you' : words(placement)}</Badge>
        {problem !== null && <span class="orders-about">{problem}</span>}
      </td>
      <td>
        {memberState === null ? (
          <span class="faint">nothing yet</span>
        ) : (
          <Badge tone={MEMBER_STATE_TONES[memberState]}>{words(memberState)}</Badge>
        )}
      </td>
      <td>
        <Time at={signalledAt} />
        <span class="orders-about">
          <Ago at={signalledAt} />
        </span>
      </td>
    </tr>
  );
}
