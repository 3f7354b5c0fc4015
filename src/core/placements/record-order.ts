import type { Pool } from 'pg';
import { CANCEL_WITHIN_S, type Claim } from '../domain/placement.ts';
import { RANK_PLACED } from '../domain/lifecycle.ts';
import type { CanonicalOrder, KitchenOrder } from '../domain/order.ts';
import type { ReadOrder } from '../domain/read-canonical-order.ts';
import { STORED_LOCATION, type StoredLocation } from '../locations/locations.ts';
import { insertOutbox, nextSequence } from '../live/outbox.ts';
import { IS_UNFINISHED } from '../transitions/placement-sql.ts';

/**
 * The code by which staff call out an order, such as K472. Vowels are excluded, so no code spells a word. Letters that
 * look like a digit (O 0, I 1, Z 2, S 5, G 6, B 8) are excluded. Of two letters that sound alike in a noisy kitchen
 * (M N, P T), one is excluded.
 *
 * Each location counts its own codes, so a code repeats only after all others were used. The count is not reset daily,
 * because midnight UTC falls into opening hours somewhere, and codes of the same evening would repeat.
 */
const LETTERS = 'FHKMRTWX';
const DIGITS = '23456789';

/** The number of codes. It must be a power of two, because `mix` relies on that. */
export const CODES = LETTERS.length * DIGITS.length ** 3;

/**
 * SQL that increments the location's count and returns a row with `given` and `seed`. It locks the location's row, so
 * that orders of one location wait for each other's transactions.
 * @param locationId an SQL expression over the tables in `from`
 */
export function countCode(locationId: string, from: string): string {
  return `INSERT INTO call_outs AS c (location_id) SELECT ${locationId} FROM ${from}
    ON CONFLICT (location_id) DO UPDATE SET given = c.given + 1
    RETURNING c.given, c.seed`;
}

/** SQL that computes the code from the columns `given` and `seed`. */
export const CODE_OF_COUNT = `(SELECT substr('${LETTERS}', (i >> 9) + 1, 1) || ${[6, 3, 0]
  .map((bits) => `substr('${DIGITS}', ((i >> ${bits}) & 7) + 1, 1)`)
  .join(' || ')} FROM (${mix()}) AS mixed(i))`;

/**
 * SQL that permutes the counts, so that a code does not reveal the number of orders. `a n + b n² + c` is a permutation
 * modulo a power of two if `a` is odd and `b` even (R. Rivest, Permutation polynomials modulo 2^w, 2001). The last
 * digit of the code differs between any eight consecutive orders. The seed determines a, b and c.
 */
function mix(): string {
  const last = CODES - 1;
  const a = `(2 * ((seed >> 12) & 2047) + 1)`;
  const b = `(2 * (seed >> 23))`;
  return `SELECT ((seed & ${last}) + n * ((${a} + ${b} * n) & ${last})) & ${last} FROM (SELECT given & ${last}) AS each(n)`;
}

/** The contents of an ended order are not returned, because they may have been erased. */
type KnownOrder = { ended: true } | ActiveOrder;
export type ActiveOrder = {
  ended: false;
  order: KitchenOrder;
  /** True if the order is to be cancelled. Then it must not be sent again. */
  cancelled: boolean;
  /** The integration that the last attempt called. Null if there was no attempt. */
  integration: string | null;
  /** The current location; undefined if it is not configured. */
  location: StoredLocation | undefined;
};

type LocationColumns = StoredLocation | Record<keyof StoredLocation, null>;

/**
 * Stores a fetched order and its live message `placed` in one commit. Sets the placement's location and, for a
 * scheduled order, a later deadline. Sequence numbers continue after the last one sent to the member. Assigns the
 * call-out code.
 * @param deadlineS seconds after `requestedAt` during which the order is worth placing
 * @returns the order to send and its location, or undefined if the claim was lost meanwhile
 */
export async function recordOrder(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId'>,
  { order, leftOut }: ReadOrder,
  deadlineS: number,
): Promise<ActiveOrder | undefined> {
  const cancelled = order.cancelledAt !== undefined;
  const { rows } = await pool.query<{ callOutCode: string; sentTo: string | null; at: string } & LocationColumns>({
    name: 'record-order',
    text: `
      WITH p AS (
        UPDATE placements
        -- After a restore, its POS may have the order, and the platform may have moved it since.
        -- guard: doubt-stays-there
        SET location_id = coalesce(location_id, $3), failures = 0, missing_since = NULL,
            deadline_at = greatest(deadline_at, $5::timestamptz + make_interval(secs => $6::int))
        -- A signal of a cancel refreshes an unread order only while its lease is valid.
        -- guard: fetched-under-lease
        WHERE service_order_id = $1 AND lease_id = $2 AND ${IS_UNFINISHED} AND lease_until > now()
        RETURNING service_order_id, location_id, last_notified_sequence, state
      ), n AS (
        ${countCode('location_id', 'p')}
      ), o AS (
        INSERT INTO orders (service_order_id, location_id, fulfillment, requested_at, left_out, call_out_code, rank,
                            sequence, cancellation, integration)
        SELECT $1, p.location_id, $4, $5::timestamptz, $8::jsonb, ${CODE_OF_COUNT}, ${RANK_PLACED}, ${nextSequence('last_notified_sequence')},
               CASE WHEN $9::boolean THEN 'requested' END,
               CASE WHEN p.state = 'in_doubt' THEN (SELECT l.integration FROM locations l WHERE l.location_id = p.location_id) END
        FROM p, n
        ON CONFLICT DO NOTHING
        RETURNING service_order_id, location_id, sequence, call_out_code, integration
      ), c AS (
        INSERT INTO order_contents (service_order_id, contents) SELECT $1, jsonb_set($7::jsonb, '{locationId}', to_jsonb(location_id)) FROM o
      ), to_cancel AS (
        INSERT INTO cancellations (service_order_id, location_id, requested_by, deadline_at)
        SELECT $1, location_id, 'platform', now() + make_interval(secs => ${CANCEL_WITHIN_S}) FROM o WHERE $9
      ), elsewhere AS (
        INSERT INTO refreshes (service_order_id) SELECT $1 FROM o WHERE location_id <> $3 ON CONFLICT DO NOTHING
      ), x AS (
        ${insertOutbox({ serviceOrderId: '$1', sequence: 'sequence', rank: RANK_PLACED })} FROM o
      )
      SELECT o.call_out_code AS "callOutCode", o.integration AS "sentTo", p.location_id AS at, ${STORED_LOCATION}
      FROM p LEFT JOIN o USING (service_order_id) LEFT JOIN locations l ON l.location_id = p.location_id`,
    values: [
      claim.serviceOrderId,
      claim.leaseId,
      order.locationId,
      order.fulfillment.type,
      order.fulfillment.requestedAt ?? null,
      deadlineS,
      JSON.stringify(order),
      leftOut.length === 0 ? null : JSON.stringify(leftOut),
      cancelled,
    ],
  });
  const row = rows[0];
  return row && activeOrder({ ...order, locationId: row.at }, { ...row, cancelled });
}

type OrderColumns = { callOutCode: string; sentTo: string | null; cancelled: boolean };

function activeOrder(
  { cancelledAt: _cancelledAt, cancelReason: _cancelReason, ...order }: CanonicalOrder,
  { callOutCode, sentTo, cancelled, ...location }: OrderColumns & LocationColumns,
): ActiveOrder {
  return {
    ended: false,
    order: { ...order, callOutCode },
    cancelled,
    integration: sentTo,
    location: location.locationId === null ? undefined : location,
  };
}

/**
 * Reads an order stored by an earlier try, with its location. Returns undefined if none is stored. An order
 * without contents counts as ended and is never fetched again.
 */
export async function readOrder(pool: Pool, serviceOrderId: string): Promise<KnownOrder | undefined> {
  const { rows } = await pool.query<
    { contents: CanonicalOrder | null; ended: boolean } & OrderColumns & LocationColumns
  >({
    name: 'read-order',
    text: `SELECT c.contents, o.ended_at IS NOT NULL AS ended, o.integration AS "sentTo",
                  o.call_out_code AS "callOutCode", o.cancellation IS NOT NULL AS cancelled, ${STORED_LOCATION}
           FROM orders o LEFT JOIN order_contents c USING (service_order_id)
           LEFT JOIN locations l ON l.location_id = o.location_id
           WHERE o.service_order_id = $1`,
    values: [serviceOrderId],
  });
  if (rows[0] === undefined) return undefined;
  const { contents, ended, ...about } = rows[0];
  return ended || contents === null ? { ended: true } : activeOrder(contents, about);
}
