import type { ClientBase } from 'pg';
import { LIFECYCLE, RANK_END, RANK_PLACED, rankOf } from './lifecycle.ts';
import type { StatusEvent } from './order.ts';

/** What became of an event; of a delivery, the first of its events' outcomes in this order. */
export const EVENT_OUTCOMES = ['applied', 'parked', 'duplicate', 'stale', 'unmatched'] as const;
export type EventOutcome = (typeof EVENT_OUTCOMES)[number];
export const DELIVERY_OUTCOMES = [...EVENT_OUTCOMES, 'ignored', 'dropped'] as const;
export type DeliveryOutcome = (typeof DELIVERY_OUTCOMES)[number];

/** One authenticated webhook as it arrived, translated. */
export type Delivery = {
  id: string;
  locationId: string;
  integration: string;
  receivedAt: Date;
  /** Without `authorization` and `cookie`. */
  headers: Record<string, string>;
  /** Those two and the request target, sealed; of a dropped delivery only, which a replay verifies again. */
  sealed?: string | undefined;
  body: Buffer;
  /** The body was over the limit and only its beginning is kept. */
  truncated: boolean;
  events: readonly StatusEvent[];
  /** Why nothing of it could be used. */
  dropped?: string | undefined;
  /** Of a replay: the webhook itself, and when that came. */
  replayOf?: { deliveryId: string; receivedAt: Date } | undefined;
};

/** An event on its way to its order, and whose delivery it came with. */
export type ArrivedEvent = {
  deliveryId: string;
  locationId: string;
  integration: string;
  event: StatusEvent;
};

export type Conflict = ArrivedEvent & { serviceOrderId: string | undefined };

export type PosId = { locationId: string; integration: string; providerOrderId: string };

export type Applied = {
  /** One per delivery, in order. */
  deliveries: DeliveryOutcome[];
  /** One per event, in order. */
  events: EventOutcome[];
  /** One per event, in order: the order of ours that it is about. */
  serviceOrderIds: (string | undefined)[];
  /** Those that contradict what we know: a person should look. */
  conflicts: Conflict[];
  /** POS ids that became ours: events parked under them can go on. */
  newPosIds: PosId[];
};

/**
 * Applies webhooks in one statement and so in one commit: deliveries, history, orders, POS ids, placements, outbox.
 *
 * The order's own row and the events about it are laid in one sequence, the order first; a running maximum over it
 * tells for each event whether it moves the order. That one window function is the whole life of an order, it takes
 * any number of events of one order in one batch, and it needs no join, which Postgres would do as a nested loop.
 * Orders are locked in the order of their key, so that two batches never wait for each other in a circle.
 *
 * Sequence numbers are given under that lock, hence commit in order, without gaps.
 */
const APPLY = `
WITH event AS MATERIALIZED (
  SELECT e.*, coalesce(e.service_order_id, known.service_order_id) AS target
  FROM unnest($11::int[], $12::uuid[], $13::text[], $14::text[], $15::text[], $16::text[], $17::smallint[],
              $18::text[], $19::text[], $20::timestamptz[])
       WITH ORDINALITY AS e(delivery_nth, delivery_id, location_id, integration, service_order_id, provider_order_id,
                            rank, native_status, reason, occurred_at, nth)
  CROSS JOIN LATERAL (
    SELECT (SELECT p.service_order_id FROM provider_orders p
            WHERE e.service_order_id IS NULL AND p.location_id = e.location_id AND p.integration = e.integration
              AND p.provider_order_id = e.provider_order_id) AS service_order_id
    OFFSET 0 -- looked up once, not once for every mention
  ) AS known
), locked AS MATERIALIZED (
  SELECT o.service_order_id, o.location_id, o.fulfillment, o.rank, o.sequence, o.failed_by_us, o.provider_order_id,
         o.integration, o.reason, o.erased_at IS NOT NULL AS erased
  FROM orders o
  WHERE o.service_order_id = ANY (ARRAY(SELECT target FROM event WHERE target IS NOT NULL))
  ORDER BY o.service_order_id
  FOR UPDATE
), line AS (
  SELECT service_order_id AS target, location_id, 0::bigint AS nth, rank, fulfillment, sequence, failed_by_us,
         provider_order_id AS known_pos_id, integration AS known_integration, reason AS known_reason, erased,
         NULL::int AS delivery_nth, NULL::uuid AS delivery_id, NULL AS integration, NULL AS service_order_id,
         NULL AS provider_order_id, NULL AS native_status, NULL AS said, NULL::timestamptz AS occurred_at
  FROM locked
  UNION ALL
  SELECT target, location_id, nth, rank, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
         delivery_nth, delivery_id, integration, service_order_id, provider_order_id, native_status, reason,
         occurred_at
  FROM event
), seen AS (
  SELECT line.*,
         first_value(nth) OVER course = 0 AND target IS NOT NULL AS ours,
         -- Whose is the POS id? Mostly it is the one that the order's own row names, and need not be looked up.
         CASE WHEN service_order_id IS NULL THEN target
              WHEN provider_order_id = first_value(known_pos_id) OVER course
               AND integration = first_value(known_integration) OVER course THEN target
              WHEN provider_order_id IS NOT NULL THEN (
                SELECT p.service_order_id FROM provider_orders p
                WHERE p.location_id = line.location_id AND p.integration = line.integration
                  AND p.provider_order_id = line.provider_order_id) END AS mapped,
         first_value(rank) OVER course AS order_rank,
         first_value(sequence) OVER course AS order_sequence,
         first_value(fulfillment) OVER course AS order_fulfillment,
         first_value(failed_by_us) OVER course AS order_failed_by_us,
         first_value(known_pos_id) OVER course AS order_pos_id,
         first_value(known_reason) OVER course AS order_reason,
         first_value(erased) OVER course AS order_erased,
         CASE WHEN first_value(erased) OVER course THEN NULL ELSE said END AS reason, -- it may tell of the member
         max(rank) OVER (course ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
  FROM line
  WINDOW course AS (PARTITION BY target, location_id ORDER BY nth)
), judged AS (
  SELECT seen.*,
         CASE WHEN ours AND rank > reached THEN 1
              WHEN ours AND rank = reached THEN 3
              WHEN ours THEN 4
              WHEN service_order_id IS NULL AND EXISTS (
                SELECT FROM placements p
                WHERE p.location_id = seen.location_id AND p.provider_order_id IS NULL
                  AND p.requested_at > now() - make_interval(secs => $21::int)) THEN 2
              ELSE 5 END AS outcome,
         foreign_id,
         foreign_id OR ours AND (reached = $22::int AND rank > $22::int
                                 OR order_failed_by_us AND rank BETWEEN 2 AND $22::int) AS conflict
  FROM seen
  CROSS JOIN LATERAL (SELECT coalesce(mapped <> service_order_id, false) AS foreign_id) AS whose
  WHERE nth > 0
), ruled AS MATERIALIZED (
  SELECT judged.*,
         order_sequence + (count(*) FILTER (WHERE outcome = 1) OVER (PARTITION BY target, location_id ORDER BY nth))::int
           AS new_sequence
  FROM judged
), moved AS MATERIALIZED (
  SELECT target AS service_order_id,
         max(rank) FILTER (WHERE outcome = 1) AS rank,
         max(new_sequence) AS sequence,
         bool_or(order_rank = ${RANK_PLACED}) AS proves_ticket,
         min(provider_order_id) FILTER (WHERE order_pos_id IS NULL AND NOT foreign_id) AS pos_id,
         (array_agg(reason ORDER BY rank DESC, nth) FILTER (WHERE reason IS NOT NULL AND outcome = 1))[1] AS reason,
         (array_agg(reason ORDER BY nth) FILTER (WHERE reason IS NOT NULL AND outcome = 3 AND order_reason IS NULL))[1]
           AS late_reason
  FROM ruled
  WHERE ours
  GROUP BY target
), history AS (
  INSERT INTO status_events (service_order_id, delivery_id, status, native_status, outcome, conflict, sequence,
                             provider_order_id, reason, occurred_at)
  SELECT target, delivery_id, ($23::text[])[rank + 1], native_status, ($24::text[])[outcome], conflict,
         CASE WHEN outcome = 1 THEN new_sequence END, provider_order_id, reason, occurred_at
  FROM ruled
  WHERE ours
  ORDER BY nth
), updated AS (
  UPDATE orders o
  SET rank = coalesce(m.rank, o.rank),
      status = coalesce(($23::text[])[m.rank + 1], o.status),
      sequence = m.sequence,
      provider_order_id = coalesce(o.provider_order_id, m.pos_id),
      reason = coalesce(m.reason, o.reason, m.late_reason),
      updated_at = now(),
      ended_at = CASE WHEN m.rank >= $22::int THEN coalesce(o.ended_at, now()) ELSE o.ended_at END
  FROM moved m
  WHERE o.service_order_id = m.service_order_id
    AND (m.rank IS NOT NULL OR m.pos_id IS NOT NULL OR m.late_reason IS NOT NULL)
), settled AS (
  UPDATE placements p
  SET state = CASE WHEN p.finished_at IS NULL THEN 'sent' ELSE p.state END,
      problem = CASE WHEN p.finished_at IS NULL THEN NULL ELSE p.problem END,
      lease_id = NULL,
      lease_until = NULL,
      provider_order_id = coalesce(p.provider_order_id, (SELECT m.pos_id FROM moved m
                                                         WHERE m.service_order_id = p.service_order_id)),
      finished_at = coalesce(p.finished_at, now())
  -- Not a join: planned while the table was small, it would read all of it.
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
), waiting AS (
  INSERT INTO parked_events (location_id, integration, provider_order_id, outcome, delivery_day, delivery_id, rank,
                             native_status, reason, occurred_at)
  SELECT location_id, integration, provider_order_id, ($24::text[])[outcome],
         (($4::timestamptz[])[delivery_nth] AT TIME ZONE 'UTC')::date, delivery_id, rank, native_status, reason,
         occurred_at
  FROM ruled
  -- One that names an order by our id is about that order, whoever's the POS id may become.
  WHERE NOT ours AND service_order_id IS NULL AND delivery_nth > 0
  ORDER BY nth
), live AS (
  INSERT INTO outbox (service_order_id, sequence, location_id, fulfillment, rank, provider_order_id, reason,
                      occurred_at)
  SELECT target, new_sequence, location_id, order_fulfillment, rank,
         CASE WHEN foreign_id THEN order_pos_id ELSE coalesce(provider_order_id, order_pos_id) END, reason, occurred_at
  FROM ruled
  WHERE outcome = 1
), best AS MATERIALIZED (
  SELECT array_agg(outcome ORDER BY delivery_nth) AS outcomes, array_agg(erased ORDER BY delivery_nth) AS erased
  FROM (SELECT delivery_nth, min(outcome) AS outcome, bool_or(order_erased) IS TRUE AS erased
        FROM ruled WHERE delivery_nth > 0 GROUP BY delivery_nth) AS each
), kept AS (
  INSERT INTO deliveries (day, location_id, id, integration, received_at, headers, sealed, body, truncated, events,
                          outcome, reason, replay_of, first_received_at)
  SELECT (d.received_at AT TIME ZONE 'UTC')::date, d.location_id, d.id, d.integration, d.received_at,
         CASE WHEN erased THEN '{}' ELSE d.headers::jsonb END, d.sealed,
         CASE WHEN erased THEN '' ELSE substring($7::bytea FROM d.body_from FOR d.body_length) END,
         d.truncated, d.events,
         CASE WHEN d.reason IS NOT NULL THEN 'dropped'
              WHEN d.events = 0 THEN 'ignored'
              ELSE ($24::text[])[(SELECT outcomes FROM best)[d.nth]] END,
         d.reason, d.replay_of, d.first_received_at
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $27::int[], $28::int[],
              $8::boolean[], $9::smallint[], $10::text[], $25::uuid[], $26::timestamptz[])
       WITH ORDINALITY AS d(id, location_id, integration, received_at, headers, sealed, body_from, body_length, truncated,
                            events, reason, replay_of, first_received_at, nth)
  CROSS JOIN LATERAL (SELECT coalesce((SELECT erased FROM best)[d.nth], false) AS erased) AS about
)
SELECT (SELECT outcomes FROM best) AS best,
       (SELECT array_agg(outcome ORDER BY nth) FROM ruled) AS outcomes,
       (SELECT array_agg(nth::int ORDER BY nth) FROM ruled WHERE conflict) AS conflicts,
       (SELECT jsonb_object_agg(nth, target) FROM ruled WHERE ours AND service_order_id IS NULL) AS found,
       (SELECT jsonb_agg(jsonb_build_object('locationId', location_id, 'integration', integration,
                                            'providerOrderId', provider_order_id)) FROM pos_ids) AS new_pos_ids`;

const STATUS_BY_RANK = LIFECYCLE.map((step) => step.status);

/**
 * @param deliveries webhooks to keep, with their events
 * @param redriven events of deliveries that are kept already
 * @param parkTtlS seconds for which a POS id we do not know may still become ours
 */
export async function applyDeliveries(
  client: ClientBase,
  deliveries: readonly Delivery[],
  redriven: readonly ArrivedEvent[],
  parkTtlS: number,
): Promise<Applied> {
  // Those with events come first, so that their outcomes are an array without holes.
  const withEvents = deliveries.filter((delivery) => delivery.events.length > 0);
  const without = deliveries.filter((delivery) => delivery.events.length === 0);
  const stored = [...withEvents, ...without];
  const arrived = [
    ...withEvents.flatMap(({ id, locationId, integration, events }, index) =>
      events.map((event) => ({ nth: index + 1, deliveryId: id, locationId, integration, event })),
    ),
    ...redriven.map((event) => ({ nth: 0, ...event })),
  ];
  // All in one, which travels as it is; an array of them would go as text, in hexadecimal, and hold everybody up.
  const bodies = stored.map((delivery) => delivery.body);
  let end = 0;
  const ends = bodies.map((body) => (end += body.length));
  const { rows } = await client.query<{
    best: number[] | null;
    outcomes: number[] | null;
    conflicts: number[] | null;
    found: Record<string, string> | null;
    new_pos_ids: PosId[] | null;
  }>({
    name: 'apply-deliveries',
    text: APPLY,
    values: [
      stored.map((delivery) => delivery.id),
      stored.map((delivery) => delivery.locationId),
      stored.map((delivery) => delivery.integration),
      stored.map((delivery) => delivery.receivedAt.toISOString()),
      stored.map((delivery) => JSON.stringify(delivery.headers)),
      stored.map((delivery) => delivery.sealed ?? null),
      Buffer.concat(bodies),
      stored.map((delivery) => delivery.truncated),
      stored.map((delivery) => delivery.events.length),
      stored.map((delivery) => delivery.dropped ?? null),
      arrived.map((item) => item.nth),
      arrived.map((item) => item.deliveryId),
      arrived.map((item) => item.locationId),
      arrived.map((item) => item.integration),
      arrived.map((item) => item.event.serviceOrderId ?? null),
      arrived.map((item) => item.event.providerOrderId ?? null),
      arrived.map((item) => rankOf(item.event.status)),
      arrived.map((item) => item.event.nativeStatus),
      arrived.map((item) => item.event.reason ?? null),
      arrived.map((item) => item.event.occurredAt ?? null),
      parkTtlS,
      RANK_END,
      STATUS_BY_RANK,
      EVENT_OUTCOMES,
      stored.map((delivery) => delivery.replayOf?.deliveryId ?? null),
      stored.map((delivery) => delivery.replayOf?.receivedAt.toISOString() ?? null),
      bodies.map((body, nth) => (ends[nth] ?? 0) - body.length + 1),
      bodies.map((body) => body.length),
    ],
  });
  const row = rows[0];
  const named = (code: number): EventOutcome => EVENT_OUTCOMES[code - 1] ?? 'unmatched';
  const outcomeOf = new Map<Delivery, DeliveryOutcome>(
    withEvents.map((delivery, i) => [delivery, named(row?.best?.[i] ?? 0)]),
  );
  const events = (row?.outcomes ?? []).map(named);
  const serviceOrderIds = events.map((outcome, i) =>
    outcome === 'parked' || outcome === 'unmatched'
      ? undefined
      : (arrived[i]?.event.serviceOrderId ?? row?.found?.[i + 1]),
  );
  return {
    deliveries: deliveries.map(
      (delivery) => outcomeOf.get(delivery) ?? (delivery.dropped === undefined ? 'ignored' : 'dropped'),
    ),
    events,
    serviceOrderIds,
    conflicts: (row?.conflicts ?? []).flatMap((nth) => {
      const event = arrived[nth - 1];
      return event === undefined ? [] : { ...event, serviceOrderId: serviceOrderIds[nth - 1] };
    }),
    newPosIds: row?.new_pos_ids ?? [],
  };
}
