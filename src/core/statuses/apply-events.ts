import { RANK_CANCELLED, RANK_END, RANK_FAILED, RANK_SENT, rankOf } from '../domain/lifecycle.ts';
import { EVENT_OUTCOMES, type EventOutcome } from '../domain/webhook.ts';
import { insertOutbox, nextSequence } from '../live/outbox.ts';

/** An outcome's number in the SQL. A webhook gets the outcome with the lowest number among its events. */
const codeOf = (outcome: EventOutcome): number => EVENT_OUTCOMES.indexOf(outcome) + 1;
export const APPLIED = codeOf('applied');
const PARKED = codeOf('parked');
export const DUPLICATE = codeOf('duplicate');
export const STALE = codeOf('stale');
const UNMATCHED = codeOf('unmatched');
/** SQL array of all outcomes. An outcome's number is its index. */
export const OUTCOME_BY_CODE = `(ARRAY[${EVENT_OUTCOMES.map((outcome) => `'${outcome}'`).join(', ')}])`;

/** Converts a number from the SQL's result to its outcome. */
export const outcomeOf = (code: number | undefined): EventOutcome => EVENT_OUTCOMES[(code ?? 0) - 1] ?? 'unmatched';

/** An unknown POS id may belong to an order sent at most this many seconds ago. Most POS ids come in seconds. */
export const PARK_TTL_S = 3_600;

/** SQL of the window with all events of the batch that come before this one and are about the same order. */
const EARLIER = 'PARTITION BY target, event.location_id ORDER BY nth ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING';

/** SQL of when the POS says that its order failed or was cancelled, in the row set `event` with the window `earlier`. */
const FAILED_AT = `greatest(
  max(event.occurred_at::timestamptz) FILTER (WHERE event.rank >= ${RANK_FAILED}) OVER earlier,
  CASE WHEN o.rank >= ${RANK_FAILED} AND event.occurred_at IS NOT NULL THEN
    (SELECT max(s.occurred_at) FROM status_events s
     WHERE s.service_order_id = target AND s.status IN ('failed', 'cancelled')) END)`;

/**
 * SQL that is true if the kitchen goes on after the POS's own end. An older report is only late, and a till may close the
 * check of a cancelled order.
 */
const GOES_ON = `
  -- guard: goes-on-after-its-end
  failed_at IS NOT NULL AND occurred_at IS NOT NULL AND occurred_at::timestamptz > failed_at
  AND rank >= ${rankOf('in_progress')} AND rank < ${RANK_FAILED} AND (rank < ${RANK_END} OR reached < ${RANK_CANCELLED})`;

/**
 * SQL that follows WITH and applies events. It writes history, orders, POS ids, placements and outbox. The row set
 * `ruled` has each event with its outcome; `pos_ids` has the POS ids that were linked to our orders.
 *
 * Events of an order are applied in sequence. An event moves its order only if its rank is above the highest rank in
 * the order's row and in earlier events. A batch can hold any number of events of one order.
 *
 * Orders are looked up and locked one by one in key order, so two batches cannot deadlock. The SQL avoids joins between
 * the batch's own rows: Postgres expects only ten rows, and would compare each row with all others.
 *
 * The estimate and the tracking link with the newest time from the POS win, even if their event does not move the
 * order. `notifyEstimates` sends them if no status message does.
 *
 * Sequence numbers are assigned under the order's lock, so they commit in order. Only `raiseSequences` leaves a gap.
 * @param source a function that returns SQL of the events: rows with the given alias, numbered by `nth`
 * @param firstReceivedAt SQL of the time when the webhook of a row of `ruled` was first received. NULL means now.
 * @param about.linksIds true if an event may need an id from another event of the batch: the order of its POS id, or
 *   the POS id of its order. Each event then sees the ids of earlier events as if they were committed. This is rare.
 * @param about.parkTtlS seconds after sending in which an event may be parked for an order; 0 if none may be parked
 * @param about.hasDetails true if an event has a reason code, item ids, an estimate or a link. Most batches have none.
 */
export function applyingEvents(
  source: (alias: string) => string,
  firstReceivedAt: string,
  { linksIds, hasDetails, parkTtlS = PARK_TTL_S }: { linksIds: boolean; hasDetails: boolean; parkTtlS?: number },
): string {
  const more = hasDetails ? MORE : LESS;
  const linked = linksIds ? idsLinkedBefore(source) : '';
  return `${linked}${judging(source, { more, linksIds, parkTtlS })}, ${writing(firstReceivedAt, more)}`;
}

/** SQL that locks the orders, decides about each event, and makes the row set `ruled`. */
function judging(
  source: (alias: string) => string,
  { more, linksIds, parkTtlS }: { more: Details; linksIds: boolean; parkTtlS: number },
): string {
  return `event AS (
  SELECT e.*, coalesce(e.service_order_id, known.service_order_id) AS target
  FROM ${source('e')}
  CROSS JOIN LATERAL (
    SELECT coalesce((SELECT p.service_order_id FROM provider_orders p
                     WHERE e.service_order_id IS NULL AND p.location_id = e.location_id
                       AND p.integration = e.integration AND p.provider_order_id = e.provider_order_id),
                    ${linksIds ? EARLIER_ORDER('e') : 'NULL'}) AS service_order_id
    OFFSET 0 -- prevents one look-up for each use of the column
  ) AS known
  -- guard: locked-by-key
  ORDER BY target, location_id, nth -- rows are locked in this order
), matched AS (
  SELECT event.*,
         o.service_order_id IS NOT NULL AS ours,
         o.rank AS order_rank, o.sequence AS order_sequence, o.failed_by_us AS order_failed_by_us,
         o.provider_order_id AS order_pos_id, o.reason AS order_reason, o.erased_at IS NOT NULL AS order_erased,
         ${more.matched}
         -- mapped is the order that has the POS id. Mostly the order's own row has that id, which saves the look-up.
         CASE WHEN event.service_order_id IS NULL THEN target
              WHEN event.provider_order_id = o.provider_order_id AND event.integration = o.integration THEN target
              WHEN event.provider_order_id IS NOT NULL THEN coalesce(
                (SELECT p.service_order_id FROM provider_orders p
                 WHERE p.location_id = event.location_id AND p.integration = event.integration
                   AND p.provider_order_id = event.provider_order_id),
                ${linksIds ? EARLIER_ORDER('event') : 'NULL'}) END AS mapped,
         greatest(o.rank, max(event.rank) OVER earlier) AS reached,
         ${FAILED_AT} AS failed_at
  FROM event
  LEFT JOIN LATERAL (
    SELECT * FROM orders
    -- guard: event-location
    WHERE orders.service_order_id = event.target AND orders.location_id = event.location_id
    -- guard: order-lock
    FOR UPDATE
  ) AS o ON true WINDOW earlier AS (${EARLIER})
), judged AS (
  SELECT matched.*,
         moves,
         foreign_id,
         CASE WHEN moves THEN ${APPLIED}
              WHEN ours AND rank = reached THEN ${DUPLICATE}
              WHEN ours THEN ${STALE}
              WHEN service_order_id IS NULL AND EXISTS (
                SELECT FROM placements p
                WHERE p.location_id = matched.location_id AND p.provider_order_id IS NULL
                  AND p.requested_at > now() - make_interval(secs => ${parkTtlS})) THEN ${PARKED}
              ELSE ${UNMATCHED} END AS outcome,
         foreign_id OR ours AND (reached >= ${RANK_END} AND reached < ${RANK_FAILED} AND rank >= ${RANK_FAILED}
                                 OR order_failed_by_us AND rank < ${RANK_FAILED} OR goes_on) AS conflict
  FROM matched
  -- guard: higher-rank
  CROSS JOIN LATERAL (SELECT ours AND rank > reached AS moves,
                             ${GOES_ON} AS goes_on,
                             coalesce(mapped <> service_order_id, false) AS foreign_id) AS what
), ruled AS MATERIALIZED (
  -- Columns that every event needs come first: Postgres decodes a row only up to the last column that is used.
  SELECT nth, webhook_nth, outcome, ours, conflict, order_erased, rank, service_order_id IS NULL AS by_pos_id, target,
         ${nextSequence('order_sequence')} - 1
           + (count(*) FILTER (WHERE moves) OVER (PARTITION BY target, location_id ORDER BY nth))::int AS new_sequence,
         order_rank, foreign_id, webhook_id, occurred_at::timestamptz AS occurred_at, location_id, provider_order_id,
         ${linksIds ? POS_ID_BEFORE : 'order_pos_id'},
         CASE WHEN order_erased THEN NULL ELSE reason END AS reason, -- reasons and item ids may hold the member's data
         status, native_status, order_reason, integration, mapped ${more.ruled}
  FROM judged
)`;
}

/** SQL that writes what follows from `ruled`, which has the orders' locks. */
function writing(firstReceivedAt: string, more: Details): string {
  return `moved AS MATERIALIZED (
  SELECT target AS service_order_id,
         max(rank) FILTER (WHERE outcome = ${APPLIED}) AS rank,
         max(new_sequence) FILTER (WHERE outcome = ${APPLIED}) AS sequence,
         bool_or(order_rank < ${RANK_SENT}) AS proves_ticket,
         min(provider_order_id) FILTER (WHERE order_pos_id IS NULL AND NOT foreign_id) AS pos_id,
         array_agg(reason ORDER BY nth) FILTER (WHERE reason IS NOT NULL AND outcome = ${APPLIED}) AS reasons,
         array_agg(reason ORDER BY nth) FILTER (
           WHERE reason IS NOT NULL AND outcome = ${DUPLICATE} AND order_reason IS NULL) AS late_reasons
         ${more.moved}
  FROM ruled
  WHERE ours
  GROUP BY target, location_id
), history AS (
  INSERT INTO status_events (service_order_id, webhook_id, status, native_status, outcome, conflict, sequence,
                             provider_order_id, reason, occurred_at ${more.columns})
  SELECT target, webhook_id, status, native_status, ${OUTCOME_BY_CODE}[outcome], conflict,
         CASE WHEN outcome = ${APPLIED} THEN new_sequence END, provider_order_id, reason, occurred_at
         ${more.values}
  FROM ruled
  WHERE ours
  ORDER BY target, location_id, nth -- costs no sort: ruled already has this order
), updated AS (
  UPDATE orders o
  SET rank = coalesce(m.rank, o.rank),
      sequence = coalesce(m.sequence, o.sequence),
      provider_order_id = coalesce(o.provider_order_id, m.pos_id),
      reason = coalesce(m.reasons[cardinality(m.reasons)], o.reason, m.late_reasons[1]),
      updated_at = ${more.updatedAt},
      ended_at = CASE WHEN m.rank >= ${RANK_END} THEN now() ELSE o.ended_at END
      ${more.updated}
  FROM moved m
  WHERE o.service_order_id = m.service_order_id
    AND (${IS_NEWS} ${more.due}
), settled AS (
  UPDATE placements p
  SET state = CASE WHEN p.finished_at IS NULL THEN 'sent' ELSE p.state END,
      problem = CASE WHEN p.finished_at IS NULL THEN NULL ELSE p.problem END,
      cause = CASE WHEN p.finished_at IS NULL THEN NULL ELSE p.cause END,
      lease_id = NULL,
      lease_until = NULL,
      provider_order_id = coalesce(p.provider_order_id, (SELECT m.pos_id FROM moved m
                                                         WHERE m.service_order_id = p.service_order_id)),
      finished_at = coalesce(p.finished_at, now())
  -- An array replaces a join. A join's plan, cached while the table was small, would scan the whole table.
  WHERE p.service_order_id = ANY (ARRAY(SELECT m.service_order_id FROM moved m
                                        WHERE m.proves_ticket OR m.pos_id IS NOT NULL))
), pos_ids AS (
  INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
  SELECT location_id, integration, provider_order_id, target
  FROM ruled
  WHERE ours AND provider_order_id IS NOT NULL AND mapped IS NULL
  ORDER BY location_id, integration, provider_order_id, nth
  ON CONFLICT DO NOTHING
  RETURNING location_id, integration, provider_order_id
), live AS (
  ${insertOutbox({
    serviceOrderId: 'target',
    sequence: 'new_sequence',
    rank: 'rank',
    providerOrderId: 'CASE WHEN foreign_id THEN order_pos_id ELSE coalesce(provider_order_id, order_pos_id) END',
    reason: 'reason',
    occurredAt: 'occurred_at',
    firstReceivedAt,
  })}
  FROM ruled
  WHERE outcome = ${APPLIED}
)`;
}

/** SQL of the POS ids that this batch links to our orders. Each is linked to the first order that is named with it. */
function idsLinkedBefore(source: (alias: string) => string): string {
  return `linked AS MATERIALIZED (
  SELECT DISTINCT ON (location_id, integration, provider_order_id)
         location_id, integration, provider_order_id, nth, service_order_id
  FROM ${source('t')}
  WHERE service_order_id IS NOT NULL AND provider_order_id IS NOT NULL
    AND (SELECT true FROM orders o WHERE o.service_order_id = t.service_order_id AND o.location_id = t.location_id)
    AND (SELECT true FROM provider_orders p
         WHERE p.location_id = t.location_id AND p.integration = t.integration
           AND p.provider_order_id = t.provider_order_id) IS NULL
  ORDER BY location_id, integration, provider_order_id, nth
), `;
}

/** SQL of the order that an earlier event of the batch named together with this event's POS id. */
const EARLIER_ORDER = (event: string): string => `(
  SELECT linked.service_order_id FROM linked
  WHERE linked.location_id = ${event}.location_id AND linked.integration = ${event}.integration
    AND linked.provider_order_id = ${event}.provider_order_id AND linked.nth < ${event}.nth)`;

const IS_NEWS = 'm.rank IS NOT NULL OR m.pos_id IS NOT NULL OR m.late_reasons IS NOT NULL';
/** SQL that makes estimates comparable. If two have the same report time, one without NULLs counts as newer. */
export const asCompared = (estimate: string): string => `array_replace(${estimate}, NULL, '-infinity')`;
/** SQL that converts an estimate back from `asCompared`, for storing. */
export const asStored = (estimate: string): string => `array_replace(${estimate}, '-infinity', NULL)`;
/** SQL that is true if an event's value is newer than the order's. It is false if the POS id is another order's. */
const isNewer = (column: string): string => `${column} > coalesce(order_${column}, '{}') AND NOT foreign_id`;

/** SQL that only events with details need: a reason code, item ids, an estimate or a link. */
const MORE = {
  matched: `${asCompared('o.estimate')} AS order_estimate, o.tracking AS order_tracking,`,
  ruled: `, CASE WHEN order_erased THEN reason_details::jsonb - 'itemIds' ELSE reason_details::jsonb END AS reason_details, -- may be member data
         ${asCompared('estimate::timestamptz[]')} AS estimate, order_estimate,
         CASE WHEN order_erased THEN NULL ELSE tracking::text[] END COLLATE "C" AS tracking, order_tracking`,
  moved: `, array_agg(reason_details ORDER BY nth) FILTER (WHERE reason_details IS NOT NULL AND outcome IN (${APPLIED}, ${DUPLICATE})) AS details,
         max(estimate) FILTER (WHERE ${isNewer('estimate')}) AS estimate,
         max(tracking) FILTER (WHERE ${isNewer('tracking')}) AS tracking,
         bool_or(${isNewer('estimate')} AND estimate[2:3] IS DISTINCT FROM order_estimate[2:3]
                 OR ${isNewer('tracking')} AND tracking[2] IS DISTINCT FROM order_tracking[2]) AS says_more`,
  columns: ', reason_code, item_ids, estimate',
  values: `, reason_details ->> 'reasonCode', reason_details -> 'itemIds', ${asStored('estimate')}`,
  // `updated_at` does not change if the events bring only an estimate, a link or a reason code.
  updatedAt: `CASE WHEN ${IS_NEWS} THEN now() ELSE o.updated_at END`,
  updated: `, reason_code = coalesce(m.details[cardinality(m.details)] ->> 'reasonCode', o.reason_code),
      item_ids = CASE WHEN m.details IS NULL THEN o.item_ids ELSE m.details[cardinality(m.details)] -> 'itemIds' END,
      estimate = coalesce(${asStored('m.estimate')}, o.estimate), tracking = coalesce(m.tracking, o.tracking)`,
  due: `OR m.details IS NOT NULL OR m.estimate IS NOT NULL OR m.tracking IS NOT NULL)
  RETURNING o.service_order_id, o.sequence, m.rank IS NULL AND m.says_more AS is_unnotified
), due AS (
  INSERT INTO estimates_due (service_order_id, sequence)
  SELECT service_order_id, sequence FROM updated WHERE is_unnotified
  ON CONFLICT (service_order_id) DO UPDATE SET sequence = excluded.sequence`,
};
type Details = typeof MORE;
const LESS: Details = {
  matched: '',
  ruled: '',
  moved: '',
  columns: '',
  values: '',
  updatedAt: 'now()',
  updated: '',
  due: ')',
};

/** SQL of the order's own POS id. An earlier event of the batch may have brought it. */
const POS_ID_BEFORE = `coalesce(order_pos_id, (
           array_agg(provider_order_id) FILTER (WHERE provider_order_id IS NOT NULL AND NOT foreign_id)
             OVER (PARTITION BY target, location_id ORDER BY nth ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
         )[1]) AS order_pos_id`;
