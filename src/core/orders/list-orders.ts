import type { Pool } from 'pg';
import { z } from 'zod';
import { PlacementState } from '../domain/placement.ts';
import { StoredPlacementCause } from '../domain/placement-cause.ts';
import {
  FulfillmentType,
  LIFECYCLE,
  MemberState,
  RANK_CANCELLED,
  RANK_FAILED,
  Status,
  memberStateAt,
  statusAt,
  type Step,
} from '../domain/lifecycle.ts';
import { RecordedChange } from '../domain/live-message.ts';
import { StoredLeftOuts } from '../domain/left-out.ts';
import { Next } from '../domain/next.ts';
import { compareInstants, compareTexts, Instant } from '../domain/order.ts';
import { RecordedReasonCode } from '../domain/reason-code.ts';
import { CANCELLED_UNREAD, ESTIMATED_AT, ofEvent, reasonCodeAt } from '../live/outbox.ts';
import { changesInWords } from '../contacts/changes-in-words.ts';
import { jsonObject, type SqlOf } from '../postgres/sql-rows.ts';
import { readerOf, type Reader } from '../retention/pack-order.ts';
import { ENDED_AT, NEEDS_OPERATOR } from './needs-operator.ts';
import { TIME_ZONE, TOLD, type ToldChange } from './read-contents.ts';
import { NEEDS } from './needs-person.ts';
import { LATE_MIN } from '../domain/settled-case.ts';

export type OrderFilter = {
  /** Only orders at these locations. Undefined selects all orders, also those without a location. */
  locations?: readonly string[] | undefined;
  /** The integration that the order's last attempt called. */
  integration?: string | undefined;
  state?: PlacementState | undefined;
  needs?: 'operator' | 'late' | undefined;
  /** Orders that have not ended. An order that was never fetched is open while its placement is unfinished. */
  open?: boolean | undefined;
  status?: Status | undefined;
  memberState?: MemberState | undefined;
  /** Signalled at this time or later. */
  since?: Date | undefined;
  /** Signalled before this time. */
  until?: Date | undefined;
};

export const EXAMPLE_ORDER = {
  serviceOrderId: 'order-4711',
  locationId: 'club-1',
  integration: 'acme',
  fulfillment: 'pickup',
  callOutCode: 'K472',
  placement: 'in_doubt',
  needsOperator: true,
  problem: 'the POS may have the order and cannot be asked',
  cause: { code: 'pos_cannot_be_asked' },
  status: null,
  memberState: 'placed',
  cancellation: null,
  change: null,
  changes: [],
  reasonCode: null,
  leftOut: [],
  refreshFailure: null,
  providerOrderId: null,
  signalledAt: '2027-01-31T18:00:00.123456+00:00',
  nextAttemptAt: null,
  finishedAt: null,
  updatedAt: '2027-01-31T18:00:00.223456+00:00',
  endedAt: null,
};

/** Why the last fetch of a known order failed. */
export const RefreshFailure = z
  .object({
    since: Instant,
    problem: z.string().nullable(),
    cause: StoredPlacementCause.nullable(),
    nextAttemptAt: Instant,
  })
  .nullable()
  .meta({
    description:
      'Why a signalled change or cancel of the order cannot be fetched from the platform, and since when. Null if the ' +
      'last fetch succeeded.',
  });

/** One order of a list, without its member and its items. */
export const ListedOrder = z
  .object({
    serviceOrderId: z.string(),
    locationId: z.string().nullable().meta({ description: 'Null until the order was fetched for the first time.' }),
    integration: z.string().nullable().meta({ description: 'The integration at the last attempt.' }),
    fulfillment: FulfillmentType.nullable(),
    callOutCode: z
      .string()
      .nullable()
      .meta({ description: 'The code that the staff call out and the member shows, such as K472.' }),
    placement: PlacementState,
    needsOperator: z.boolean().meta({
      description:
        'It waits for a person: it is held, other than by a pause of its location, it is in doubt and not tried again ' +
        'automatically, only a person can cancel it, or nobody has said whether the restaurant applied its change.',
    }),
    problem: z.string().nullable().meta({ description: 'Why the placement waits, is held, is in doubt or failed.' }),
    cause: StoredPlacementCause.nullable(),
    status: Status.nullable(),
    memberState: MemberState.nullable().meta({
      description: 'The last state that the member was notified of; null for none.',
    }),
    cancellation: z
      .enum(['requested', 'refused'])
      .nullable()
      .meta({ description: "The member's last notification about a cancellation; null for none or if cancelled." }),
    change: RecordedChange.nullable().meta({
      description: "What became of the platform's last change after it was sent; null for none.",
    }),
    changes: z.array(z.string()).meta({
      description: 'What to tell the restaurant of this change, in words. Empty unless the change waits for an answer.',
    }),
    reasonCode: RecordedReasonCode.nullable().meta({ description: 'Code for why the order failed or was cancelled.' }),
    leftOut: StoredLeftOuts,
    refreshFailure: RefreshFailure,
    providerOrderId: z.string().nullable().meta({ description: "The ticket's id at the POS." }),
    signalledAt: Instant,
    nextAttemptAt: Instant.nullable().meta({ description: 'Null if there is no further automatic attempt.' }),
    finishedAt: Instant.nullable(),
    updatedAt: Instant.nullable(),
    endedAt: Instant.nullable(),
  })
  .meta({ id: 'ListedOrder', examples: [EXAMPLE_ORDER] });
export type ListedOrder = z.infer<typeof ListedOrder>;

export const ListedOrders = z.object({ orders: z.array(ListedOrder), next: Next });
export type ListedOrders = z.infer<typeof ListedOrders>;

/** Maximum of placements scanned for one page, however few match. */
const SCAN = 2_000;

type Row = Ranked<Omit<ListedOrder, 'changes'>> & ToldChange;

/** SQL of the rank that the member was last notified of; NULL for none. An order never read has failed or is cancelled. */
const NOTIFIED_RANK = `coalesce(o.rank::int, CASE WHEN p.last_notified_sequence > 0 THEN
  CASE WHEN ${CANCELLED_UNREAD} THEN ${RANK_CANCELLED} ELSE ${RANK_FAILED} END END)`;

/** SQL of the same code as in the live message. An order never read has it only in its event. */
const REASON_CODE = reasonCodeAt(
  `(${NOTIFIED_RANK})`,
  `CASE WHEN o.rank IS NULL THEN ${ofEvent('reason_code', 'p.service_order_id', 'p.last_notified_sequence')} END`,
);

/** SQL of when a placement or a cancellation `of` is tried next. NULL if there is no further automatic attempt. */
export const nextAttemptAt = (of: string): string =>
  `CASE WHEN ${of}.finished_at IS NULL THEN nullif(${of}.next_attempt_at, 'infinity') END`;

/** SQL of the `RefreshFailure` of an order `o`. An order that has ended is not fetched any more. */
export const REFRESH_FAILURE = `CASE WHEN o.ended_at IS NULL THEN (
  SELECT ${jsonObject({ since: 'r.failing_since', problem: 'r.problem', cause: 'r.cause', nextAttemptAt: 'r.next_attempt_at' })}
  FROM refreshes r WHERE r.service_order_id = o.service_order_id AND r.failing_since IS NOT NULL) END`;

/** SQL of the fields of an order in any list, from `placements p` and `orders o`. */
export const ORDER_FIELDS = {
  serviceOrderId: 'p.service_order_id',
  locationId: 'p.location_id',
  integration: 'o.integration',
  fulfillment: 'o.fulfillment',
  callOutCode: 'o.call_out_code',
  placement: 'p.state',
  needsOperator: NEEDS_OPERATOR,
  problem: 'p.problem',
  cause: 'p.cause',
  rank: NOTIFIED_RANK,
  cancellation: 'o.cancellation',
  change: 'o.change',
  leftOut: `coalesce(o.left_out, '[]')`,
  refreshFailure: REFRESH_FAILURE,
  providerOrderId: 'coalesce(o.provider_order_id, p.provider_order_id)',
  signalledAt: 'p.signalled_at',
  nextAttemptAt: nextAttemptAt('p'),
  updatedAt: 'o.updated_at',
} satisfies Partial<SqlOf<Row>>;
const LISTED: SqlOf<Row> = {
  ...ORDER_FIELDS,
  reasonCode: REASON_CODE,
  told: `CASE WHEN ${NEEDS.changed} THEN ${TOLD} END`,
  timeZone: `CASE WHEN o.change IS NOT NULL THEN ${TIME_ZONE} END`,
  finishedAt: 'p.finished_at',
  endedAt: 'o.ended_at',
};

/**
 * Lists orders by their first signal, newest first, starting after the order `page.after`. The cost of a page is
 * bounded for any filter, so a page with a `next` may have fewer orders than `limit`, even none.
 * @returns undefined if no signal ever named the order `page.after`, or if that order is at another location
 */
export async function listOrders(
  pool: Pool,
  filter: OrderFilter,
  page: { after?: string | undefined; limit: number },
): Promise<ListedOrders | undefined> {
  const after = page.after === undefined ? undefined : await findSignal(pool, page.after, filter);
  if (page.after !== undefined && after === undefined) return undefined;
  const current = await readPage(pool, filter, after, page.limit);
  if (!mayBePast(filter, current.end)) return { orders: current.orders, next: current.end?.serviceOrderId ?? null };
  return mergePages(current, await readPastPage(pool, filter, after, page.limit), page.limit);
}

/** Orders, newest first. After them, orders older than `end` may follow; undefined if there are none. */
type Page = { orders: ListedOrder[]; end: Signal | undefined };

/** Lists current orders, or past orders if `reader` has only those. */
async function readPage(reader: Reader, filter: OrderFilter, after: Signal | undefined, limit: number): Promise<Page> {
  const values = candidatesOf(filter, after);
  const { candidates, last } = findCandidates(filter);
  const { rows } = await reader.query<{ order: Row }>(
    `SELECT ${jsonObject(LISTED)} AS "order"
     FROM (${candidates}) AS p
     LEFT JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = p.service_order_id OFFSET 0) AS o ON true
     WHERE ($7::boolean IS NULL OR $7 = (${ENDED_AT} IS NULL))
       AND ($8::int4multirange IS NULL OR ${NOTIFIED_RANK} <@ $8)
       AND ($9::int4multirange IS NULL
            OR ${NOTIFIED_RANK} <@ CASE o.fulfillment WHEN 'pickup' THEN $9 ELSE $10::int4multirange END)
       AND ($11::text IS NULL OR o.integration = $11)
     ORDER BY p.signalled_at DESC, p.service_order_id DESC
     LIMIT $12::int`,
    [
      ...values,
      filter.open ?? null,
      ranksOf(filter.status),
      filter.memberState === undefined ? null : ranksWhere((step) => step.pickup === filter.memberState),
      filter.memberState === undefined ? null : ranksWhere((step) => step.delivery === filter.memberState),
      filter.integration ?? null,
      limit,
    ],
  );
  const orders = rows.map(({ order: { told, timeZone, ...order } }) => ({
    ...withStep(order),
    changes: changesInWords(told ?? [], 'en', timeZone),
  }));
  if (orders.length === limit) return { orders, end: orders.at(-1) };
  const { rows: end } = await reader.query<Signal>(`SELECT ${SIGNAL} FROM (${last}) AS p`, values);
  return { orders, end: end[0] };
}

/** All past orders were signalled at least this long ago, because member data is stored for two days or more. */
const PAST_AFTER_MS = 3 * 86_400_000;

/** False if no past order can be newer than the end of a page. */
function mayBePast({ needs, open }: OrderFilter, end: Signal | undefined): boolean {
  if (needs !== undefined || open === true) return false;
  return end === undefined || Date.parse(end.signalledAt) < Date.now() - PAST_AFTER_MS;
}

/** Lists past orders. Reads at most `SCAN` of them, and unpacks at most one page. */
async function readPastPage(pool: Pool, filter: OrderFilter, after: Signal | undefined, limit: number): Promise<Page> {
  const values = candidatesOf(filter, after);
  const { candidates, last } = findCandidates(filter, 'past_orders p');
  const { rows } = await pool.query<Signal & { packed: Buffer }>(
    `SELECT ${SIGNAL}, packed FROM (${candidates}) AS p
     WHERE $7::int4multirange IS NULL
        OR coalesce(rank, CASE WHEN last_notified_sequence > 0 THEN ${RANK_FAILED} END)::int <@ $7
        -- Its cause is packed.
        OR rank IS NULL AND last_notified_sequence > 0 AND state = 'withdrawn'
     LIMIT $8::int`,
    [...values, ranksOf(filter.status), limit],
  );
  const { rows: end } =
    rows.length === limit
      ? { rows: rows.slice(-1) }
      : await pool.query<Signal>(`SELECT ${SIGNAL} FROM (${last}) AS p`, values);
  if (rows.length === 0) return { orders: [], end: end[0] };
  const packed = rows.map((row) => row.packed);
  const { orders } = await readPage(readerOf(pool, packed), { ...filter, locations: undefined }, undefined, limit);
  return { orders, end: end[0] };
}

/** Merges two pages by time, down to the end of the one that ends first. */
function mergePages(one: Page, other: Page, limit: number): ListedOrders {
  const [end] = [one.end, other.end].filter((each) => each !== undefined).toSorted(newestFirst);
  // An order that moved between the two reads is in both.
  const orders = [...new Map([...other.orders, ...one.orders].map((order) => [order.serviceOrderId, order])).values()]
    .filter((order) => end === undefined || newestFirst(order, end) <= 0)
    .toSorted(newestFirst);
  const next = orders.length > limit ? orders[limit - 1] : end;
  return { orders: orders.slice(0, limit), next: next?.serviceOrderId ?? null };
}

function newestFirst(a: Signal, b: Signal): number {
  return compareInstants(b.signalledAt, a.signalledAt) || compareTexts(b.serviceOrderId, a.serviceOrderId);
}

/** An order as it is stored: with its rank instead of `status` and `memberState`. */
export type Ranked<Order> = Omit<Order, 'status' | 'memberState'> & { rank: number | null };

/** Replaces the rank by `status` and `memberState`. Both are null before the member's first notification. */
export function withStep<Order extends { rank: number | null; fulfillment: FulfillmentType | null }>({
  rank,
  ...order
}: Order): Omit<Order, 'rank'> & { status: Status | null; memberState: MemberState | null } {
  if (rank === null) return { ...order, status: null, memberState: null };
  return { ...order, status: statusAt(rank), memberState: memberStateAt(rank, order.fulfillment) };
}

/**
 * SQL with the filters that the indexes support. The query is not prepared, so the planner knows the values and drops
 * unused filters.
 */
const candidatesIn = (from: string): string => `
  SELECT p.* FROM ${from}
  WHERE ($2::text IS NULL OR p.state = $2)
    AND ($3::timestamptz IS NULL OR p.signalled_at >= $3)
    AND ($4::timestamptz IS NULL OR p.signalled_at < $4)
    AND ($5::timestamptz IS NULL OR (p.signalled_at, p.service_order_id) < ($5, $6::text))`;
const CANCELLED = `cancellations c
  CROSS JOIN LATERAL (SELECT * FROM placements WHERE service_order_id = c.service_order_id OFFSET 0) AS p`;
const ORDERS = `orders o
  CROSS JOIN LATERAL (SELECT * FROM placements WHERE service_order_id = o.service_order_id OFFSET 0) AS p`;
/** An order `o` that is late as the board says it. One that is retried, and a pickup that waits, is not. */
const LATE = `o.ended_at IS NULL AND coalesce(${ESTIMATED_AT}, o.requested_at) <= now() - interval '${LATE_MIN} min'
  AND p.state <> 'failed' AND NOT (p.state IN ('waiting', 'in_doubt') AND p.problem IS NOT NULL)
  AND NOT (o.fulfillment = 'pickup' AND o.rank::int <@ '${ranksWhere((step) => step.pickup === 'ready_for_pickup')}'::int4multirange)`;
const NEWEST_FIRST = 'ORDER BY p.signalled_at DESC, p.service_order_id DESC';

/** More locations than these are looked up one by one. A plan for each and each month of past orders takes too long. */
const PLANNED = 20;

/** SQL of orders by time, and of the last one if older ones may follow. */
type Scan = { candidates: string; last: string };

/** SQL that reads the newest placements of each kind or location, and merges them by time. */
function findCandidates({ locations, needs }: OrderFilter, from = 'placements p'): Scan {
  const all = candidatesIn(from);
  const scan = (sql: string): Scan => ({
    candidates: `${sql} LIMIT ${SCAN}`,
    last: `${sql} OFFSET ${SCAN - 1} LIMIT 1`,
  });
  const merge = (parts: string[]): Scan => {
    const newest = parts.map((each) => `(${each} ${NEWEST_FIRST} LIMIT ${SCAN})`);
    return scan(`SELECT * FROM (${newest.join(' UNION ALL ')}) AS p ${NEWEST_FIRST}`);
  };
  if (needs !== undefined) {
    const { held, in_doubt: inDoubt, cancel_by_phone: cancel, changed } = NEEDS;
    const others = `${candidatesIn(CANCELLED)} AND ${cancel} AND NOT ${held} AND NOT ${inDoubt}`;
    const ofOrders = candidatesIn(ORDERS);
    const kinds = [`${all} AND ${held}`, `${all} AND ${inDoubt}`, others, `${ofOrders} AND ${changed}`];
    const asked = needs === 'late' ? [`${ofOrders} AND ${LATE} AND NOT ${held} AND NOT ${inDoubt}`] : kinds;
    return merge(asked.map((each) => `${each} AND ($1::text[] IS NULL OR p.location_id = ANY ($1))`));
  }
  if (locations === undefined) return scan(`${all} AND $1::text[] IS NULL ${NEWEST_FIRST}`);
  if (locations.length > PLANNED) return lookUpEach(all, Math.max(PLANNED, Math.ceil(SCAN / locations.length)));
  // An empty list must match no placement. It gets one branch that compares with NULL.
  const each = locations.length === 0 ? [''] : locations;
  return merge(each.map((_, nth) => `${all} AND p.location_id = ($1::text[])[${nth + 1}]`));
}

/** Reads at most `most` of each location. Older ones may follow where one has so many, so all end there. */
function lookUpEach(all: string, most: number): Scan {
  const read = `WITH read AS MATERIALIZED (
      SELECT p.* FROM (SELECT DISTINCT unnest($1::text[]) AS id) AS l CROSS JOIN LATERAL (
        SELECT *, row_number() OVER (${NEWEST_FIRST}) AS nth
        FROM (${all} AND p.location_id = l.id ${NEWEST_FIRST} LIMIT ${most}) AS p) AS p
    ), last AS (SELECT * FROM read AS p WHERE nth = ${most} ${NEWEST_FIRST} LIMIT 1)`;
  const isOlder = '(p.signalled_at, p.service_order_id) < (last.signalled_at, last.service_order_id)';
  return {
    candidates: `${read} SELECT p.* FROM read AS p WHERE NOT EXISTS (SELECT FROM last WHERE ${isOlder}) ${NEWEST_FIRST}`,
    last: `${read} SELECT * FROM last`,
  };
}

function candidatesOf(filter: OrderFilter, after: Signal | undefined): unknown[] {
  return [
    filter.locations ?? null,
    filter.state ?? null,
    filter.since ?? null,
    filter.until ?? null,
    after?.signalledAt ?? null,
    after?.serviceOrderId ?? null,
  ];
}

type Signal = { serviceOrderId: string; signalledAt: string };
const SIGNAL = `service_order_id AS "serviceOrderId", to_json(signalled_at) AS "signalledAt"`;

/** Reads the time as text, because a Date has no microseconds. */
async function findSignal(pool: Pool, serviceOrderId: string, { locations }: OrderFilter): Promise<Signal | undefined> {
  const { rows } = await pool.query<Signal>(
    `SELECT service_order_id AS "serviceOrderId", signalled_at::text AS "signalledAt"
     FROM (SELECT service_order_id, signalled_at, location_id FROM placements WHERE service_order_id = $1
           UNION ALL SELECT service_order_id, signalled_at, location_id FROM past_orders WHERE service_order_id = $1) AS p
     WHERE $2::text[] IS NULL OR location_id = ANY ($2) LIMIT 1`,
    [serviceOrderId, locations ?? null],
  );
  return rows[0];
}

const ranksOf = (status: Status | undefined): string | null =>
  status === undefined ? null : ranksWhere((step) => step.status === status);

/** Makes rank ranges for SQL. A range ends at the next step, because a newer version may have ranks in between. */
function ranksWhere(isMeant: (step: Step) => boolean): string {
  const ranges = LIFECYCLE.flatMap((step, nth) =>
    isMeant(step) ? [`[${step.rank},${LIFECYCLE[nth + 1]?.rank ?? ''})`] : [],
  );
  return `{${ranges.join(',')}}`;
}
