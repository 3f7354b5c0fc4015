import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, query } from '../api.ts';
import { inShort } from '../../src/core/domain/explain-cause.ts';
import { may } from '../may.ts';
import { announce } from '../parts/announce.ts';
import { Badge } from '../parts/badge.tsx';
import { holdRows } from '../parts/hold-rows.ts';
import { Loading } from '../parts/loading.tsx';
import { Page } from '../parts/page.tsx';
import { Ago, Time } from '../parts/time.tsx';
import { MEMBER_STATE_TONES, PLACEMENT_TONES, words } from '../parts/tones.ts';
import { Problem } from '../parts/said.tsx';
import { saysOf } from '../../src/core/domain/explain-failure.ts';
import { useFilters } from '../parts/use-filters.ts';
import { Pick } from '../parts/pick.tsx';
import { LocationLink, LocationName } from '../parts/location-field.tsx';
import { orderName, vendorName } from '../parts/names.ts';
import { OrderName } from '../parts/order-name.tsx';
import { useChosen, type Chosen } from '../parts/use-chosen.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import { FixSettings } from '../set-up/configuration.tsx';
import type { ListedOrders } from '../wire.ts';
import { pageOf } from '../parts/page-of.ts';
import { ManyOrders } from './many-orders.tsx';
import { OrdersFilters } from './orders-filters.tsx';
import { FILTERS, ordersFilter, type OrdersFilter } from './orders-filter.ts';
import './orders.css';
import { readOn } from './read-on.ts';
import { Heads } from '../parts/heads.tsx';

type Row = ListedOrders['orders'][number];

export function OrdersPage() {
  const [chosen, change] = useFilters(...FILTERS);
  const filter = ordersFilter(chosen);
  const found = useLoaded((signal) => readOrders(filter, undefined, signal), [query(filter)], EVERY_MS);
  return (
    <Page title="Orders">
      <OrdersFilters filter={filter} change={change} />
      <Loading loaded={found}>
        {(first) => (
          <>
            {filter.state === 'held' && filter.location !== undefined && (
              <Held key={filter.location} at={filter.location} orders={first.orders} again={found.again} />
            )}
            <List first={first} filter={filter} isBusy={found.isLoading} again={found.again} />
          </>
        )}
      </Loading>
    </Page>
  );
}

/** Why the orders of a location are held, and the settings that the reason names. */
function Held({ at, orders, again }: { at: string; orders: readonly Row[]; again: () => void }) {
  const problems = [...new Set(orders.map(({ problem }) => problem))].filter((each) => each !== null);
  return (
    <div class="sheet case">
      {problems.map((problem) => (
        <div key={problem}>
          <Problem text={problem} />
        </div>
      ))}
      <FixSettings
        locationId={at}
        said={JSON.stringify(orders.map(({ problem, cause }) => [problem, cause]))}
        onSaved={again}
      />
      <p>
        More about <LocationLink id={at} />.
      </p>
    </div>
  );
}

const LIMIT = 50;
/** How often the newest orders are read again. */
const EVERY_MS = 5_000;

function readOrders(filter: OrdersFilter, cursor: string | undefined, signal?: AbortSignal): Promise<ListedOrders> {
  return readOn(
    (cursor) => ask<ListedOrders>('GET', `/orders${query({ ...filter, limit: LIMIT, cursor })}`, { signal }),
    cursor,
  );
}

type AboutList = { first: ListedOrders; filter: OrdersFilter; isBusy: boolean; again: () => void };

function List({ first, filter, isBusy, again }: AboutList) {
  const [older, setOlder] = useState<ListedOrders>();
  const showNew = { rows: first.orders as readonly Row[], waiting: 0 };
  const [{ rows, waiting }, hold] = useState(showNew);
  const [problem, setProblem] = useState<string>();
  const [isReading, setReading] = useState(false);
  const body = useRef<HTMLTableSectionElement>(null);
  const firstNew = useRef<number | undefined>(undefined);
  const chosen = useChosen();
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const isBeingRead = older !== undefined || chosen.ids.size > 0 || scrollY > 0;
    const isRead = isBeingRead || list.current?.matches(':hover, :focus-within') === true;
    hold((shown) => holdRows(shown.rows, first.orders, ({ serviceOrderId }) => serviceOrderId, isRead));
  }, [first]);
  // New orders move the pages, so an order may be in two of them.
  const orders = withoutRepeats([...rows, ...(older?.orders ?? [])]);
  const next = older === undefined ? first.next : older.next;
  const showNewest = (): void => {
    setOlder(undefined);
    hold(showNew);
  };
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
      setOlder({ orders: [...(older?.orders ?? []), ...page.orders], next: page.next });
      announce(page.orders.length === 0 ? 'No older orders found so far' : `${page.orders.length} older orders`);
    } catch (error) {
      setProblem((error as Error).message);
    }
    setReading(false);
  };

  return (
    <div ref={list} class="sheet" aria-busy={isBusy || isReading}>
      {waiting > 0 && (
        <button type="button" onClick={showNewest}>
          Show {waiting} new
        </button>
      )}
      {orders.length > 0 && (
        <table class="orders-list linked">
          <Heads of={['Order', 'Location', 'Placement', 'Problem', 'Member sees', 'Placed']} />
          <tbody ref={body}>
            {orders.map((order) => (
              <OrderRow key={order.serviceOrderId} order={order} chosen={chosen} />
            ))}
          </tbody>
        </table>
      )}
      {orders.length === 0 && (
        <p>{next === null ? 'No orders match.' : 'No orders match yet. Older orders were not searched.'}</p>
      )}
      <p class="problem" role="alert">
        {problem}
      </p>
      <div class="buttons">
        {next !== null && (
          <button type="button" disabled={isReading} onClick={() => void readOlder()}>
            {orders.length === 0 ? 'Search further back' : 'Older'}
          </button>
        )}
      </div>
      <ManyOrders
        orders={orders}
        chosen={chosen}
        onDone={() => {
          setOlder(undefined);
          again();
        }}
      />
    </div>
  );
}

function withoutRepeats(orders: readonly Row[]): Row[] {
  return [...new Map(orders.toReversed().map((order) => [order.serviceOrderId, order])).values()].toReversed();
}

function OrderRow({ order, chosen }: { order: Row; chosen: Chosen }) {
  const { serviceOrderId, locationId, integration, fulfillment, placement, needsOperator, problem } = order;
  const { memberState, signalledAt, callOutCode, cause, changes, refreshFailure: failure } = order;
  // As the board says it.
  const asked = placement !== 'sent' ? 'needs you' : changes.length > 0 ? 'tell the restaurant' : 'cancel by phone';
  return (
    <tr>
      <th scope="row">
        {may('operator', locationId) && (
          <Pick chosen={chosen} ids={[serviceOrderId]} label={`Choose ${orderName(order)}`} />
        )}
        <a href={pageOf.order(serviceOrderId)}>
          <OrderName id={serviceOrderId} code={callOutCode} />
        </a>
      </th>
      <td>
        {locationId === null ? <span class="faint">not known yet</span> : <LocationName id={locationId} />}
        <span class="orders-about">
          {[integration && vendorName(integration), fulfillment].filter((part) => part !== null).join(', ')}
        </span>
      </td>
      <td>
        <Badge tone={needsOperator && placement === 'sent' ? 'bad' : PLACEMENT_TONES[placement]}>
          {words(placement)}
          {needsOperator && `: ${asked}`}
        </Badge>
      </td>
      <td class="orders-problem">
        {inShort(cause) ??
          saysOf(problem) ??
          (failure ? `not fetched again: ${inShort(failure.cause) ?? saysOf(failure.problem)}` : changes?.join('; '))}
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
