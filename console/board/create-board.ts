import { TEST_ORDER } from '../../src/core/domain/test-order-id.ts';
import { isCalled } from '../parts/names.ts';
import type { BoardOrder } from '../wire.ts';
import { COLUMNS, type ColumnName } from './column-of.ts';
import { byUrgency, ticketOf, type Ticket, type Trouble } from './ticket-of.ts';

/** The filter of the board. Empty strings select everything. */
export type Filter = { location: string; integration: string; text: string };

/**
 * Lists of the tickets that match the filter, in their order on screen. A ticket is in the list of its column and, if
 * it needs a person, in the list of its trouble. `failed` is both a column and a trouble.
 */
export type ListName = ColumnName | Trouble | 'left_out';
export type Lists = Record<ListName, readonly Ticket[]>;

/** Their changes change what needs a person. */
export const NEEDY = ['in_doubt', 'held', 'failed', 'unsent', 'late', 'left_out'] as const satisfies ListName[];
/** The lists of what needs a person, without orders. */
export const NO_ORDERS: Pick<Lists, (typeof NEEDY)[number]> = forEach(NEEDY, () => []);

/** A part of the screen that may need redrawing. */
export type Part = ListName | 'counts' | 'places';

export type Board = {
  readonly lists: Lists;
  /** The number of late tickets by column. */
  readonly late: Readonly<Record<ColumnName, number>>;
  /** Counts of all orders, whatever the filter is. */
  readonly counts: Readonly<{ open: number; done: number; failed: number }>;
  /** Locations and integrations with tickets, sorted. */
  places(): { locations: string[]; integrations: string[] };
  /** The index of a ticket in a list, or -1. */
  indexOf(list: ListName, id: string): number;
  /** Starts to load a new board. The current board stays until `complete`. */
  begin(): void;
  /** Adds or replaces orders by their ids. */
  take(orders: readonly BoardOrder[], now: number): void;
  complete(now: number): void;
  /** Applies the passage of time: marks late tickets, and removes tickets that are over. */
  pass(now: number): void;
  narrow(filter: Filter): void;
  clear(): void;
  /** The parts that changed since the last call. */
  changes(): Set<Part>;
};

const LISTS = [...new Set<ListName>([...COLUMNS, ...NEEDY])];

/**
 * The board in memory. A changed order costs two binary searches in each of its lists, however many orders there are.
 * Lists are sorted only for a new board or a new filter.
 */
export function createBoard(): Board {
  let tickets = new Map<string, Ticket>();
  let loading: Map<string, BoardOrder> | undefined;
  let filter: Filter = { location: '', integration: '', text: '' };
  let changed = new Set<Part>();
  const lists = forEach(LISTS, (): Ticket[] => []);
  const late = forEach(COLUMNS, () => 0);
  const counts = { open: 0, done: 0, failed: 0 };
  const locations = new Map<string, number>();
  const integrations = new Map<string, number>();

  const matchesFilter = ({ order, text }: Ticket): boolean =>
    (filter.location === '' || order.locationId === filter.location) &&
    (filter.integration === '' || order.integration === filter.integration) &&
    (filter.text === '' || text.includes(filter.text) || isCalled(order.locationId, filter.text));

  const count = ({ order, column }: Ticket, by: 1 | -1): void => {
    counts[column === 'done' || column === 'failed' ? column : 'open'] += by;
    changed.add('counts');
    const isOther = [add(locations, order.locationId, by), add(integrations, order.integration, by)];
    if (isOther.includes(true)) changed.add('places');
  };

  const updateLists = (ticket: Ticket, put: (list: Ticket[], ticket: Ticket) => void, by: 1 | -1): void => {
    for (const name of listsOf(ticket)) {
      put(lists[name], ticket);
      changed.add(name);
    }
    if (ticket.isLate) late[ticket.column] += by;
  };

  const remove = (ticket: Ticket): void => {
    tickets.delete(ticket.id);
    count(ticket, -1);
    if (matchesFilter(ticket)) updateLists(ticket, takeOut, -1);
  };
  const insert = (ticket: Ticket): void => {
    tickets.set(ticket.id, ticket);
    count(ticket, 1);
    if (matchesFilter(ticket)) updateLists(ticket, putIn, 1);
  };

  const fill = (): void => {
    for (const name of LISTS) lists[name].length = 0;
    for (const column of COLUMNS) late[column] = 0;
    for (const ticket of tickets.values()) if (matchesFilter(ticket)) updateLists(ticket, putLast, 1);
    for (const name of LISTS) {
      lists[name].sort(byUrgency);
      changed.add(name);
    }
  };

  const replace = (next: Map<string, Ticket>): void => {
    for (const ticket of tickets.values()) count(ticket, -1);
    tickets = next;
    for (const ticket of tickets.values()) count(ticket, 1);
    fill();
  };

  return {
    lists,
    late,
    counts,
    places: () => ({ locations: sorted(locations), integrations: sorted(integrations) }),
    indexOf(list, id) {
      const ticket = tickets.get(id);
      if (ticket === undefined) return -1;
      const at = placeOf(lists[list], ticket);
      return lists[list][at] === ticket ? at : -1;
    },
    begin() {
      loading = new Map();
    },
    take(orders, now) {
      for (const order of orders) {
        if (loading !== undefined) {
          loading.set(order.serviceOrderId, order);
          continue;
        }
        const before = tickets.get(order.serviceOrderId);
        const ticket = ticketOf(order, now, now);
        if (before !== undefined) remove(before);
        if (isOver(ticket, midnight(now), now)) continue;
        insert(before?.column === ticket.column ? { ...ticket, movedAt: before.movedAt } : ticket);
      }
    },
    complete(now) {
      if (loading === undefined) return;
      const next = ticketsOf(loading, now);
      loading = undefined;
      replace(next);
    },
    pass(now) {
      const today = midnight(now);
      for (const ticket of tickets.values()) {
        if (isOver(ticket, today, now)) remove(ticket);
        else if (ticket.turnsAt <= now) {
          remove(ticket);
          insert(ticketOf(ticket.order, now, ticket.movedAt));
        }
      }
    },
    narrow(next) {
      filter = { ...next, text: next.text.trim().toLowerCase() };
      fill();
    },
    clear() {
      loading = undefined;
      replace(new Map());
    },
    changes() {
      const since = changed;
      changed = new Set();
      return since;
    },
  };
}

const DAY_MS = 24 * 60 * 60_000;

/** The tickets of a new board, by id. */
function ticketsOf(orders: ReadonlyMap<string, BoardOrder>, now: number): Map<string, Ticket> {
  const tickets = new Map<string, Ticket>();
  const today = midnight(now);
  for (const [id, order] of orders) {
    const ticket = ticketOf(order, now, 0);
    if (!isOver(ticket, today, now)) tickets.set(id, ticket);
  }
  return tickets;
}

/**
 * Nobody's midnight hides a failed order: it stays for a day. The person who placed a test order saw its end.
 * @param today midnight in the reader's time zone
 */
function isOver({ id, column, endedAt }: Ticket, today: number, now: number): boolean {
  return endedAt !== null && (TEST_ORDER.test(id) || endedAt < (column === 'failed' ? now - DAY_MS : today));
}

function midnight(now: number): number {
  return new Date(now).setHours(0, 0, 0, 0);
}

function listsOf({ column, trouble, lacks }: Ticket): ListName[] {
  const lists: ListName[] = trouble === null || trouble === column ? [column] : [column, trouble];
  return lacks ? [...lists, 'left_out'] : lists;
}

/** The index of the ticket, or the index where it has to be inserted. */
function placeOf(list: readonly Ticket[], ticket: Ticket): number {
  let from = 0;
  let to = list.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    const there = list[middle];
    if (there !== undefined && byUrgency(there, ticket) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

function putIn(list: Ticket[], ticket: Ticket): void {
  list.splice(placeOf(list, ticket), 0, ticket);
}

function takeOut(list: Ticket[], ticket: Ticket): void {
  const at = placeOf(list, ticket);
  if (list[at] === ticket) list.splice(at, 1);
}

function putLast(list: Ticket[], ticket: Ticket): void {
  list.push(ticket);
}

/** Changes the count of a name. @returns true if the name has appeared or disappeared */
function add(to: Map<string, number>, name: string | null, by: 1 | -1): boolean {
  if (name === null) return false;
  const before = to.get(name) ?? 0;
  if (before + by === 0) to.delete(name);
  else to.set(name, before + by);
  return before === 0 || before + by === 0;
}

function sorted(names: ReadonlyMap<string, number>): string[] {
  return [...names.keys()].sort((a, b) => a.localeCompare(b));
}

function forEach<Name extends string, Value>(names: readonly Name[], value: () => Value): Record<Name, Value> {
  return Object.fromEntries(names.map((name) => [name, value()])) as Record<Name, Value>;
}
