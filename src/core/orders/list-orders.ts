import type { Pool } from 'pg';
import { z } from 'zod';
import { PlacementState } from '../domain/placement.ts';
import { StoredPlacementCause } from '../domain/placement-cause.ts';
import {
  FulfillmentType,
  LIFECYCLE,
  MemberState,
  RANK_FAILED,
  Status,
  memberStateAt,
  statusAt,
  type Step,
} from '../domain/lifecycle.ts';
import { StoredLeftOut } from '../domain/left-out.ts';
import { Next } from '../domain/next.ts';
import { Instant } from '../domain/order.ts';
import { RecordedReasonCode } from '../domain/reason-code.ts';
import { reasonCodeAt } from '../live/outbox.ts';

export type OrderFilter = {
  /** At these locations. Undefined for all locations, and for orders without a location. */
  locations?: readonly string[] | undefined;
  /** The order's last integration. */
  integration?: string | undefined;
  state?: PlacementState | undefined;
  /** In doubt, without further attempts until a person states whether the ticket exists. */
  needsOperator?: boolean | undefined;
  /** Not ended. An order that was never fetched is open while its placement is unfinished. */
  open?: boolean | undefined;
  status?: Status | undefined;
  memberState?: MemberState | undefined;
  /** Signalled at this time or later. */
  since?: Date | undefined;
  /** Signalled before this time. */
  until?: Date | undefined;
};

/** One order of a list: no member, no items. */
export const ListedOrder = z
  .object({
    serviceOrderId: z.string(),
    locationId: z.string().nullable().meta({ description: 'Null until the order was fetched for the first time.' }),
    integration: z.string().nullable().meta({ description: 'At the last attempt.' }),
    fulfillment: FulfillmentType.nullable(),
    callOutCode: z
      .string()
      .nullable()
      .meta({ description: 'The code that the staff call out and the member shows, such as K472.' }),
    placement: PlacementState,
    needsOperator: z.boolean().meta({ description: 'It waits until an operator calls `resolve`.' }),
    problem: z.string().nullable().meta({ description: 'Why it waits, is held, is in doubt or failed.' }),
    cause: StoredPlacementCause.nullable(),
    status: Status.nullable(),
    memberState: MemberState.nullable().meta({
      description: 'The last state that the member was notified of; null for none.',
    }),
    cancellation: z
      .enum(['requested', 'refused'])
      .nullable()
      .meta({ description: "The member's last notification of it. Also null once the status is cancelled." }),
    reasonCode: RecordedReasonCode.nullable().meta({ description: 'Why it failed or was cancelled, for programs.' }),
    leftOut: z
      .array(StoredLeftOut)
      .meta({ description: 'Parts of the order that were left out because they cannot be used.' }),
    providerOrderId: z.string().nullable().meta({ description: "The ticket's id at the POS." }),
    signalledAt: Instant,
    nextAttemptAt: Instant.nullable().meta({ description: 'Null if there is no further automatic attempt.' }),
    finishedAt: Instant.nullable(),
    updatedAt: Instant.nullable(),
    endedAt: Instant.nullable(),
  })
  .meta({
    id: 'ListedOrder',
    examples: [
      {
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
        reasonCode: null,
        leftOut: [],
        providerOrderId: null,
        signalledAt: '2027-01-31T18:00:00.123456+00:00',
        nextAttemptAt: null,
        finishedAt: null,
        updatedAt: '2027-01-31T18:00:00.223456+00:00',
        endedAt: null,
      },
    ],
  });
export type ListedOrder = z.infer<typeof ListedOrder>;

export const ListedOrders = z.object({ orders: z.array(ListedOrder), next: Next });
export type ListedOrders = z.infer<typeof ListedOrders>;

/** Maximum of placements scanned for one page, however few match. */
const SCAN = 2_000;

type Row = Ranked<ListedOrder>;

const NEEDS_OPERATOR = `(p.state = 'in_doubt' AND p.next_attempt_at = 'infinity' AND p.finished_at IS NULL)`;

/** SQL for the rank last notified to the member, also for an order that failed before it was read; NULL for none. */
const NOTIFIED_RANK = `coalesce(o.rank::int, CASE WHEN p.last_notified_sequence > 0 THEN ${RANK_FAILED} END)`;

/** SQL for `json_build_object`: the fields of an order in any list, from `placements p` and `orders o`. */
export const ORDER_FIELDS = `
  'serviceOrderId', p.service_order_id, 'locationId', p.location_id, 'integration', o.integration,
  'fulfillment', o.fulfillment, 'callOutCode', o.call_out_code, 'placement', p.state, 'needsOperator', ${NEEDS_OPERATOR}, 'problem', p.problem,
  'cause', p.cause, 'rank', ${NOTIFIED_RANK}, 'cancellation', o.cancellation, 'leftOut', coalesce(o.left_out, '[]'), 'providerOrderId', coalesce(o.provider_order_id, p.provider_order_id),
  'signalledAt', p.signalled_at,
  'nextAttemptAt', CASE WHEN p.finished_at IS NULL THEN nullif(p.next_attempt_at, 'infinity') END,
  'updatedAt', o.updated_at`;

/** SQL for the end of an order, or of a placement without an order; NULL while it is open. */
export const ENDED_AT = 'coalesce(o.ended_at, CASE WHEN o.rank IS NULL THEN p.finished_at END)';

/**
 * Lists orders by their first signal, newest first, after `after`. The cost of a page is bounded for any filter, so a
 * page with a `next` may have fewer orders than `limit`, even none.
 * @returns undefined if no signal ever named `after`, or if that order is at another location
 */
export async function listOrders(
  pool: Pool,
  filter: OrderFilter,
  page: { after?: string | undefined; limit: number },
): Promise<ListedOrders | undefined> {
  const after = page.after === undefined ? undefined : await findSignal(pool, page.after, filter);
  if (page.after !== undefined && after === undefined) return undefined;
  const values = candidatesOf(filter, after);
  const candidates = findCandidates(filter);
  const { rows } = await pool.query<{ order: Row }>(
    `SELECT json_build_object(${ORDER_FIELDS}, 'reasonCode', ${reasonCodeAt('o.rank')}, 'finishedAt', p.finished_at,
                              'endedAt', o.ended_at) AS "order"
     FROM (${candidates} LIMIT ${SCAN}) AS p
     LEFT JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = p.service_order_id OFFSET 0) AS o ON true
     WHERE ($8::boolean IS NULL OR $8 = (${ENDED_AT} IS NULL))
       AND ($9::int4multirange IS NULL OR ${NOTIFIED_RANK} <@ $9)
       AND ($10::int4multirange IS NULL
            OR ${NOTIFIED_RANK} <@ CASE o.fulfillment WHEN 'pickup' THEN $10 ELSE $11::int4multirange END)
       AND ($12::text IS NULL OR o.integration = $12)
     ORDER BY p.signalled_at DESC, p.service_order_id DESC
     LIMIT $13::int`,
    [
      ...values,
      filter.open ?? null,
      filter.status === undefined ? null : ranksWhere((step) => step.status === filter.status),
      filter.memberState === undefined ? null : ranksWhere((step) => step.pickup === filter.memberState),
      filter.memberState === undefined ? null : ranksWhere((step) => step.delivery === filter.memberState),
      filter.integration ?? null,
      page.limit,
    ],
  );
  const orders = rows.map(({ order }) => withStep(order));
  if (orders.length === page.limit) return { orders, next: orders.at(-1)?.serviceOrderId ?? null };
  const { rows: last } = await pool.query<{ serviceOrderId: string }>(
    `SELECT service_order_id AS "serviceOrderId" FROM (${candidates} OFFSET ${SCAN - 1} LIMIT 1) AS p`,
    values,
  );
  return { orders, next: last[0]?.serviceOrderId ?? null };
}

/** A stored order, with its rank. */
export type Ranked<Order> = Omit<Order, 'status' | 'memberState'> & { rank: number | null };

/** Replaces a rank by its names; null before the member's first notification. */
export function withStep<Order extends { rank: number | null; fulfillment: FulfillmentType | null }>({
  rank,
  ...order
}: Order): Omit<Order, 'rank'> & { status: Status | null; memberState: MemberState | null } {
  if (rank === null) return { ...order, status: null, memberState: null };
  return { ...order, status: statusAt(rank), memberState: memberStateAt(rank, order.fulfillment) };
}

/**
 * Filters that the indexes support, in index order. The planner knows the values, so unused filters are not in the
 * plan.
 */
const CANDIDATES = `
  SELECT * FROM placements p
  WHERE ($2::text IS NULL OR p.state = $2)
    AND ($3::boolean IS NOT TRUE OR ${NEEDS_OPERATOR})
    AND ($4::timestamptz IS NULL OR p.signalled_at >= $4)
    AND ($5::timestamptz IS NULL OR p.signalled_at < $5)
    AND ($6::timestamptz IS NULL OR (p.signalled_at, p.service_order_id) < ($6, $7::text))`;
const NEWEST_FIRST = 'ORDER BY p.signalled_at DESC, p.service_order_id DESC';

/** Reads each location's placements in order and merges them, at most `SCAN` for each location. */
function findCandidates({ locations }: OrderFilter): string {
  if (locations === undefined) return `${CANDIDATES} AND $1::text[] IS NULL ${NEWEST_FIRST}`;
  // No locations match no placement.
  const each = (locations.length === 0 ? [''] : locations).map(
    (_, nth) => `(${CANDIDATES} AND p.location_id = ($1::text[])[${nth + 1}] ${NEWEST_FIRST} LIMIT ${SCAN})`,
  );
  return `SELECT * FROM (${each.join(' UNION ALL ')}) AS p ${NEWEST_FIRST}`;
}

function candidatesOf(filter: OrderFilter, after: Signal | undefined): unknown[] {
  return [
    filter.locations ?? null,
    filter.state ?? null,
    filter.needsOperator ?? null,
    filter.since ?? null,
    filter.until ?? null,
    after?.signalledAt ?? null,
    after?.serviceOrderId ?? null,
  ];
}

type Signal = { serviceOrderId: string; signalledAt: string };

/** Reads the time in microseconds, which a Date does not hold. */
async function findSignal(pool: Pool, serviceOrderId: string, { locations }: OrderFilter): Promise<Signal | undefined> {
  const { rows } = await pool.query<Signal>(
    `SELECT service_order_id AS "serviceOrderId", signalled_at::text AS "signalledAt"
     FROM placements WHERE service_order_id = $1 AND ($2::text[] IS NULL OR location_id = ANY ($2))`,
    [serviceOrderId, locations ?? null],
  );
  return rows[0];
}

/** Rank ranges for Postgres. A range ends at the next step, because a newer version may have ranks in between. */
function ranksWhere(isMeant: (step: Step) => boolean): string {
  const ranges = LIFECYCLE.flatMap((step, nth) =>
    isMeant(step) ? [`[${step.rank},${LIFECYCLE[nth + 1]?.rank ?? ''})`] : [],
  );
  return `{${ranges.join(',')}}`;
}
