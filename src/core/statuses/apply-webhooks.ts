import type { ClientBase } from 'pg';
import { RANK_END, RANK_FAILED, RANK_SENT, rankOf } from '../domain/lifecycle.ts';
import {
  EVENT_OUTCOMES,
  type ArrivedEvent,
  type Conflict,
  type TranslatedWebhook,
  type WebhookOutcome,
  type EventOutcome,
  type PosId,
} from '../domain/webhook.ts';
import { insertOutbox } from '../live/outbox.ts';
import { nextSequence } from '../live/sequence-floor.ts';
import { unnestRows, type Column } from '../postgres/unnest-rows.ts';

export type Applied = {
  /** Outcomes by webhook, in order. */
  webhooks: WebhookOutcome[];
  /** Outcomes by event, in order. */
  events: EventOutcome[];
  /** Our order by event, in order. */
  serviceOrderIds: (string | undefined)[];
  /** Events that contradict what we know: a person should look. */
  conflicts: Conflict[];
  /** POS ids that became ours. Events parked under them can continue. */
  newPosIds: PosId[];
};

/** The number of an outcome in the statement: its place in the list, so that a webhook's outcome is the lowest. */
const codeOf = (outcome: EventOutcome): number => EVENT_OUTCOMES.indexOf(outcome) + 1;
const APPLIED = codeOf('applied');
const PARKED = codeOf('parked');
const DUPLICATE = codeOf('duplicate');
const STALE = codeOf('stale');
const UNMATCHED = codeOf('unmatched');
const OUTCOME_BY_CODE = `(ARRAY[${EVENT_OUTCOMES.map((outcome) => `'${outcome}'`).join(', ')}])`;

/** The stored columns of a webhook. */
const STORED: readonly Column<TranslatedWebhook>[] = [
  ['id', 'uuid', (webhook) => webhook.id],
  ['location_id', 'text', (webhook) => webhook.locationId],
  ['integration', 'text', (webhook) => webhook.integration],
  ['received_at', 'timestamptz', (webhook) => webhook.receivedAt],
  [
    'headers',
    'text',
    (webhook) => JSON.stringify(webhook.headers),
    `CASE WHEN erased THEN '{}' ELSE d.headers::jsonb END`,
  ],
  ['sealed', 'text', (webhook) => webhook.sealed],
  ['body', 'bytea', (webhook) => webhook.body, `CASE WHEN erased THEN '' ELSE d.body END`],
  ['truncated', 'boolean', (webhook) => webhook.truncated],
  ['events', 'smallint', (webhook) => webhook.events.length],
  ['reason', 'text', ({ dropped }) => dropped?.reason],
  ['cause', 'text', ({ dropped }) => dropped && JSON.stringify(dropped.cause), 'd.cause::jsonb'],
  ['replay_of', 'uuid', (webhook) => webhook.replayOf?.webhookId],
  ['first_received_at', 'timestamptz', (webhook) => webhook.replayOf?.receivedAt],
];
const WEBHOOKS = unnestRows(STORED);

/** An event with the number of its webhook in this batch; 0 if the webhook is stored already. */
type PlacedEvent = ArrivedEvent & { nth: number };

const EVENTS = unnestRows<PlacedEvent>(
  [
    ['webhook_nth', 'integer', (item) => item.nth],
    ['webhook_id', 'uuid', (item) => item.webhookId],
    ['location_id', 'text', (item) => item.locationId],
    ['integration', 'text', (item) => item.integration],
    ['service_order_id', 'text', (item) => item.event.serviceOrderId],
    ['provider_order_id', 'text', (item) => item.event.providerOrderId],
    ['rank', 'smallint', (item) => item.rank],
    ['status', 'text', (item) => item.event.status],
    ['native_status', 'text', (item) => item.event.nativeStatus],
    ['reason', 'text', (item) => item.event.reason],
    ['occurred_at', 'text', (item) => item.event.occurredAt],
  ],
  WEBHOOKS.next,
);
const PARK_TTL_S = `$${EVENTS.next}::int`;

/**
 * Applies webhooks in one statement and so in one commit: webhooks, history, orders, POS ids, placements, outbox.
 *
 * Events of an order are applied in the order of arrival. An event moves its order exactly if its rank is above the
 * highest reached before, by the row or by earlier events of the batch. This running maximum is the whole life of an
 * order, and allows any number of events of one order in one batch.
 *
 * Orders are looked up and locked one by one in the order of their keys, so that two batches cannot deadlock. Nothing
 * is joined to the batch's own rows: Postgres expects ten of them, and would compare each with all.
 *
 * Sequence numbers are assigned under that lock, so they commit in order, without gaps but the one that `raiseSequences` makes.
 */
const APPLY = `
WITH event AS (
  SELECT e.*, coalesce(e.service_order_id, known.service_order_id) AS target
  FROM ${EVENTS.as('e')}
  CROSS JOIN LATERAL (
    SELECT (SELECT p.service_order_id FROM provider_orders p
            WHERE e.service_order_id IS NULL AND p.location_id = e.location_id AND p.integration = e.integration
              AND p.provider_order_id = e.provider_order_id) AS service_order_id
    OFFSET 0 -- looked up once, not once for every mention
  ) AS known
  ORDER BY target, location_id, nth -- and locked so
), matched AS (
  SELECT event.*,
         o.service_order_id IS NOT NULL AS ours,
         o.rank AS order_rank, o.sequence AS order_sequence, o.failed_by_us AS order_failed_by_us,
         o.provider_order_id AS order_pos_id, o.reason AS order_reason, o.erased_at IS NOT NULL AS order_erased,
         -- Whose is the POS id? Mostly it is the one that the order's own row names, and need not be looked up.
         CASE WHEN event.service_order_id IS NULL THEN target
              WHEN event.provider_order_id = o.provider_order_id AND event.integration = o.integration THEN target
              WHEN event.provider_order_id IS NOT NULL THEN (
                SELECT p.service_order_id FROM provider_orders p
                WHERE p.location_id = event.location_id AND p.integration = event.integration
                  AND p.provider_order_id = event.provider_order_id) END AS mapped,
         greatest(o.rank, max(event.rank) OVER (PARTITION BY target, event.location_id ORDER BY nth
                                                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS reached
  FROM event
  LEFT JOIN LATERAL (
    SELECT * FROM orders
    WHERE orders.service_order_id = event.target AND orders.location_id = event.location_id
    FOR UPDATE
  ) AS o ON true
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
                  AND p.requested_at > now() - make_interval(secs => ${PARK_TTL_S})) THEN ${PARKED}
              ELSE ${UNMATCHED} END AS outcome,
         foreign_id OR ours AND (reached >= ${RANK_END} AND reached < ${RANK_FAILED} AND rank >= ${RANK_FAILED}
                                 OR order_failed_by_us AND rank < ${RANK_FAILED}) AS conflict
  FROM matched
  CROSS JOIN LATERAL (SELECT ours AND rank > reached AS moves,
                             coalesce(mapped <> service_order_id, false) AS foreign_id) AS what
), ruled AS MATERIALIZED (
  -- What is asked of every event comes first: Postgres reads a row up to the last column that it needs.
  SELECT nth, webhook_nth, outcome, ours, conflict, order_erased, rank, service_order_id IS NULL AS by_pos_id, target,
         ${nextSequence('order_sequence')} - 1
           + (count(*) FILTER (WHERE moves) OVER (PARTITION BY target, location_id ORDER BY nth))::int AS new_sequence,
         order_rank, foreign_id, webhook_id, occurred_at::timestamptz AS occurred_at, location_id, provider_order_id,
         order_pos_id,
         CASE WHEN order_erased THEN NULL ELSE reason END AS reason, -- it may tell of the member
         status, native_status, order_reason, integration, mapped
  FROM judged
), moved AS MATERIALIZED (
  SELECT target AS service_order_id,
         max(rank) FILTER (WHERE outcome = ${APPLIED}) AS rank,
         max(new_sequence) FILTER (WHERE outcome = ${APPLIED}) AS sequence,
         bool_or(order_rank < ${RANK_SENT}) AS proves_ticket,
         min(provider_order_id) FILTER (WHERE order_pos_id IS NULL AND NOT foreign_id) AS pos_id,
         array_agg(reason ORDER BY nth) FILTER (WHERE reason IS NOT NULL AND outcome = ${APPLIED}) AS reasons,
         array_agg(reason ORDER BY nth) FILTER (
           WHERE reason IS NOT NULL AND outcome = ${DUPLICATE} AND order_reason IS NULL) AS late_reasons
  FROM ruled
  WHERE ours
  GROUP BY target, location_id
), history AS (
  INSERT INTO status_events (service_order_id, webhook_id, status, native_status, outcome, conflict, sequence,
                             provider_order_id, reason, occurred_at)
  SELECT target, webhook_id, status, native_status, ${OUTCOME_BY_CODE}[outcome], conflict,
         CASE WHEN outcome = ${APPLIED} THEN new_sequence END, provider_order_id, reason, occurred_at
  FROM ruled
  WHERE ours
  ORDER BY target, location_id, nth -- as they lie already
), updated AS (
  UPDATE orders o
  SET rank = coalesce(m.rank, o.rank),
      sequence = coalesce(m.sequence, o.sequence),
      provider_order_id = coalesce(o.provider_order_id, m.pos_id),
      reason = coalesce(m.reasons[cardinality(m.reasons)], o.reason, m.late_reasons[1]),
      updated_at = now(),
      ended_at = CASE WHEN m.rank >= ${RANK_END} THEN coalesce(o.ended_at, now()) ELSE o.ended_at END
  FROM moved m
  WHERE o.service_order_id = m.service_order_id
    AND (m.rank IS NOT NULL OR m.pos_id IS NOT NULL OR m.late_reasons IS NOT NULL)
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
  INSERT INTO parked_events (location_id, integration, provider_order_id, outcome, webhook_day, webhook_id, rank,
                             native_status, reason, occurred_at)
  SELECT location_id, integration, provider_order_id, ${OUTCOME_BY_CODE}[outcome],
         (${WEBHOOKS.array('received_at')}[webhook_nth] AT TIME ZONE 'UTC')::date, webhook_id, rank, native_status,
         reason, occurred_at
  FROM ruled
  -- One that names an order by our id is about that order, whoever's the POS id may become.
  WHERE NOT ours AND by_pos_id AND webhook_nth > 0
  ORDER BY nth
), live AS (
  ${insertOutbox({
    serviceOrderId: 'target',
    sequence: 'new_sequence',
    rank: 'rank',
    providerOrderId: 'CASE WHEN foreign_id THEN order_pos_id ELSE coalesce(provider_order_id, order_pos_id) END',
    reason: 'reason',
    occurredAt: 'occurred_at',
  })}
  FROM ruled
  WHERE outcome = ${APPLIED}
), best AS MATERIALIZED (
  SELECT array_agg(outcome ORDER BY webhook_nth) AS outcomes, array_agg(erased ORDER BY webhook_nth) AS erased
  FROM (SELECT webhook_nth, min(outcome) AS outcome, bool_or(order_erased) AS erased
        FROM ruled WHERE webhook_nth > 0 GROUP BY webhook_nth) AS each
), kept AS (
  INSERT INTO webhooks (day, outcome, ${STORED.map(([name]) => name).join(', ')})
  SELECT (d.received_at AT TIME ZONE 'UTC')::date,
         CASE WHEN d.reason IS NOT NULL THEN 'dropped'
              WHEN d.events = 0 THEN 'ignored'
              ELSE ${OUTCOME_BY_CODE}[(SELECT outcomes FROM best)[d.nth]] END,
         ${STORED.map(([name, , , stored]) => stored ?? `d.${name}`).join(', ')}
  FROM ${WEBHOOKS.as('d')}
  CROSS JOIN LATERAL (SELECT coalesce((SELECT erased FROM best)[d.nth], false) AS erased) AS about
)
SELECT (SELECT outcomes FROM best) AS best,
       array_agg(outcome ORDER BY nth) AS outcomes,
       array_agg(nth::int ORDER BY nth) FILTER (WHERE conflict) AS conflicts,
       jsonb_object_agg(nth, target) FILTER (WHERE ours AND by_pos_id) AS found,
       (SELECT jsonb_agg(jsonb_build_object('locationId', location_id, 'integration', integration,
                                            'providerOrderId', provider_order_id)) FROM pos_ids) AS new_pos_ids
FROM ruled`;

/**
 * @param webhooks webhooks to store, with their events
 * @param redriven events of webhooks that are stored already
 * @param parkTtlS seconds for which an unknown POS id may still become ours
 */
export async function applyWebhooks(
  client: ClientBase,
  webhooks: readonly TranslatedWebhook[],
  redriven: readonly ArrivedEvent[],
  parkTtlS: number,
): Promise<Applied> {
  // Webhooks with events come first, so that their outcomes are an array without gaps.
  const withEvents = webhooks.filter((webhook) => webhook.events.length > 0);
  const without = webhooks.filter((webhook) => webhook.events.length === 0);
  const stored = [...withEvents, ...without];
  const arrived: PlacedEvent[] = [
    ...withEvents.flatMap(({ id, locationId, integration, events }, index) =>
      events.map((event) => ({
        nth: index + 1,
        webhookId: id,
        locationId,
        integration,
        event,
        rank: rankOf(event.status),
      })),
    ),
    ...redriven.map((event) => ({ nth: 0, ...event })),
  ];
  const { rows } = await client.query<{
    best: number[] | null;
    outcomes: number[] | null;
    conflicts: number[] | null;
    found: Record<string, string> | null;
    new_pos_ids: PosId[] | null;
  }>({
    name: 'apply-webhooks',
    text: APPLY,
    values: [...WEBHOOKS.values(stored), ...EVENTS.values(arrived), parkTtlS],
  });
  const row = rows[0];
  const named = (code: number): EventOutcome => EVENT_OUTCOMES[code - 1] ?? 'unmatched';
  const outcomeOf = new Map<TranslatedWebhook, WebhookOutcome>(
    withEvents.map((webhook, i) => [webhook, named(row?.best?.[i] ?? 0)]),
  );
  const events = (row?.outcomes ?? []).map(named);
  const serviceOrderIds = events.map((outcome, i) =>
    outcome === 'parked' || outcome === 'unmatched'
      ? undefined
      : (arrived[i]?.event.serviceOrderId ?? row?.found?.[i + 1]),
  );
  return {
    webhooks: webhooks.map(
      (webhook) => outcomeOf.get(webhook) ?? (webhook.dropped === undefined ? 'ignored' : 'dropped'),
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
