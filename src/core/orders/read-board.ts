import type { Pool } from 'pg';
import { z } from 'zod';
import { Instant } from '../domain/order.ts';
import { ESTIMATED_AT } from '../live/outbox.ts';
import { EXAMPLE_ORDER, ORDER_FIELDS, ListedOrder, withStep, type Ranked } from './list-orders.ts';
import { jsonObject, type SqlOf } from '../postgres/sql-rows.ts';
import { ENDED_AT } from './needs-operator.ts';

/** Maximum of items per order, and of characters per name. Both are low because the board sends thousands of orders. */
const ITEMS = 3;
const NAME = 60;

const { reasonCode: _code, changes: _changes, finishedAt: _at, ...EXAMPLE } = EXAMPLE_ORDER;

/** One order of the board, without its member. If it was never fetched, `endedAt` is when its placement ended. */
export const BoardOrder = ListedOrder.omit({ reasonCode: true, changes: true, finishedAt: true })
  .extend({
    requestedAt: Instant.nullable().meta({ description: 'When the member wants it; null for as soon as possible.' }),
    estimatedAt: Instant.nullable().meta({
      description:
        "The POS's last estimate of when it is ready, or for a delivery when it reaches the member; null for none.",
    }),
    ordered: z
      .object({
        items: z.array(z.object({ name: z.string(), quantity: z.int() })).meta({ description: `The first ${ITEMS}.` }),
        lines: z.int().meta({ description: 'Number of items in all.' }),
        total: z.int().meta({ description: 'Minor units.' }),
        currency: z.string(),
      })
      .nullable()
      .meta({ description: 'Null until the order is fetched, and after its member is erased.' }),
  })
  .meta({
    id: 'BoardOrder',
    examples: [
      {
        ...EXAMPLE,
        placement: 'sent',
        needsOperator: false,
        problem: null,
        cause: null,
        status: 'in_progress',
        memberState: 'preparing',
        providerOrderId: '8F2K',
        requestedAt: '2027-01-31T18:45:00+00:00',
        estimatedAt: null,
        ordered: { items: [{ name: 'Classic Burger', quantity: 2 }], lines: 1, total: 2580, currency: 'EUR' },
        updatedAt: '2027-01-31T18:07:12.223456+00:00',
      },
    ],
  });
export type BoardOrder = z.infer<typeof BoardOrder>;

export type BoardRead = {
  orders: BoardOrder[];
  /** Ids of orders that the next read must look up by id, because a search by indexes may miss their next change. */
  hidden: string[];
  /** The point from which the next read continues. */
  seen: Seen;
};

/** The point up to which a read has seen all changes: the lowest unfinished transaction number, and the time. */
export type Seen = { horizon: string; at: string };

/** Maximum of open orders, and of orders that ended within a day. The newest are shown. */
export const OPEN_MAX = 20_000;
export const ENDED_MAX = 2_000;

type Row = {
  horizon: string;
  at: string;
  order: Ranked<BoardOrder> | null;
  hidden: boolean | null;
};

/**
 * Reads the board, or its changes since an earlier read. The board has open orders, orders not fetched yet, and orders
 * that ended within a day. Changes are found by transaction number. A time would miss late commits and would need an
 * index. The result may include unchanged orders.
 * @param since the point of an earlier read. Undefined for the whole board, which may exceed each maximum by one
 * @param hidden ids that earlier reads returned as `hidden`
 */
export async function readBoard(pool: Pool, since?: Seen, hidden: readonly string[] = []): Promise<BoardRead> {
  const { rows } = await pool.query<Row>({
    name: since === undefined ? 'read-board' : 'read-board-changes',
    text: READ_BOARD,
    values: [since?.horizon ?? null, since?.at ?? null, hidden],
  });
  const [{ horizon, at } = { horizon: '', at: '' }] = rows;
  const found = rows.flatMap(({ order, hidden: isHidden }) =>
    order === null ? [] : [{ order: withStep(order), isHidden }],
  );
  return {
    orders: found.map(({ order }) => order),
    hidden: found.filter(({ isHidden }) => isHidden).map(({ order }) => order.serviceOrderId),
    seen: { horizon, at },
  };
}

/**
 * SQL that is true if the row's version may be newer than the earlier read. Transaction numbers wrap around, so their
 * ages are compared.
 */
const isFresh = (row: string): string => `($1::xid8 IS NULL OR age(${row}.xmin) <= age($1::xid8::xid))`;

/** Maximum duration of a transaction. Its timestamps are from its start, so they may be this old when it commits. */
const COMMITS_WITHIN = `interval '60 s'`;
const ENDED_SINCE = `coalesce($2::timestamptz - ${COMMITS_WITHIN}, now() - interval '24 h')`;

/** SQL that limits the whole board. Changes have no limit: an order whose end was missed would stay open forever. */
const atMost = (count: number): string => `LIMIT CASE WHEN $1::xid8 IS NULL THEN ${count + 1} END`;

/** SQL of the ordered items, field by field. The other contents are member data and must not leave the database. */
const ORDERED = `json_build_object(
  'items', (SELECT coalesce(json_agg(json_build_object('name', left(item ->> 'name', ${NAME}), 'quantity', item -> 'quantity')), '[]')
            FROM jsonb_path_query(contents, '$.items[0 to ${ITEMS - 1}]') AS item),
  'lines', jsonb_array_length(contents -> 'items'),
  'total', contents #> '{money,total}', 'currency', contents #>> '{money,currency}')`;

/** SQL of a board's order, from `placements p`, `orders o` and `ORDERED_OF`. */
export const BOARD_FIELDS: SqlOf<Ranked<BoardOrder>> = {
  ...ORDER_FIELDS,
  requestedAt: 'o.requested_at',
  estimatedAt: ESTIMATED_AT,
  endedAt: ENDED_AT,
  ordered: 'c.ordered',
};

export const ORDERED_OF = (id: string): string =>
  `LEFT JOIN LATERAL (SELECT ${ORDERED} AS ordered FROM order_contents
                      WHERE service_order_id = ${id} OFFSET 0) AS c ON true`;

/**
 * Finds changed orders. First an order's row in `placements` changes, later its row in `orders`. The latest ended
 * orders are included because late events may change them. `OFFSET 0` makes Postgres look up each order by its id. A
 * join would scan all orders. If no transaction has ended since the earlier read, no order is read.
 */
const READ_BOARD = `
  WITH changed AS (
    (SELECT o.service_order_id FROM orders o
     WHERE o.ended_at IS NULL AND ${isFresh('o')}
     ORDER BY o.created_at DESC ${atMost(OPEN_MAX)})
    UNION
    (SELECT o.service_order_id FROM orders o
     WHERE o.erased_at IS NULL AND o.ended_at > ${ENDED_SINCE} AND ${isFresh('o')}
     ORDER BY o.ended_at DESC ${atMost(ENDED_MAX)})
    UNION
    SELECT o.service_order_id
    FROM (SELECT service_order_id, xmin FROM orders
          WHERE erased_at IS NULL AND ended_at > now() - interval '24 h' AND $1::xid8 IS NOT NULL
          ORDER BY ended_at DESC LIMIT ${ENDED_MAX}) AS o
    WHERE ${isFresh('o')}
    UNION
    (SELECT p.service_order_id FROM placements p
     WHERE p.finished_at IS NULL AND ${isFresh('p')}
     ORDER BY coalesce(p.location_id, ''), p.next_attempt_at ${atMost(OPEN_MAX)})
    UNION
    (SELECT p.service_order_id FROM placements p
     WHERE p.location_id IS NULL AND p.problem IS NOT NULL AND p.finished_at > ${ENDED_SINCE} AND ${isFresh('p')}
       -- A platform may signal many orders that are not for us. They leave the board with the next full read.
       AND ($1::xid8 IS NOT NULL OR p.cause ->> 'code' IS DISTINCT FROM 'order_skipped')
     ORDER BY p.finished_at DESC ${atMost(ENDED_MAX)})
    UNION
    -- Whether only a person can cancel an order is in this row alone.
    SELECT c.service_order_id FROM cancellations c WHERE c.finished_at IS NULL AND ${isFresh('c')}
    UNION
    SELECT r.service_order_id FROM refreshes r WHERE r.failing_since IS NOT NULL AND ${isFresh('r')}
    UNION
    SELECT unnest($3::text[])
  )
  SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS horizon, to_json(now()) #>> '{}' AS at, each.*
  FROM (SELECT) AS once
  LEFT JOIN LATERAL (
    SELECT ${jsonObject(BOARD_FIELDS)} AS "order",
           o.ended_at IS NOT NULL AND p.finished_at IS NULL OR o.erased_at IS NOT NULL AND o.ended_at IS NULL
             -- The row of a refresh that succeeds is deleted.
             OR EXISTS (SELECT FROM refreshes r WHERE r.service_order_id = found.service_order_id
                                                  AND r.failing_since IS NOT NULL) AS hidden
    FROM (SELECT * FROM changed
          WHERE $1::xid8 IS NULL OR pg_snapshot_xmax(pg_current_snapshot()) > $1::xid8) AS found
    CROSS JOIN LATERAL (SELECT * FROM placements WHERE service_order_id = found.service_order_id OFFSET 0) AS p
    LEFT JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = found.service_order_id OFFSET 0) AS o ON true
    ${ORDERED_OF('found.service_order_id')}
  ) AS each ON true`;
