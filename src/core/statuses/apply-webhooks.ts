import type { ClientBase, DatabaseError } from 'pg';
import {
  type ArrivedEvent,
  closedUntil,
  type Conflict,
  type Drop,
  type EventOutcome,
  type PosId,
  type TranslatedWebhook,
  type WebhookOutcome,
} from '../domain/webhook.ts';
import { RANK_END, RANK_FAILED, RANK_SENT, rankOf } from '../domain/lifecycle.ts';
import type { StatusEvent } from '../domain/order.ts';
import { hearingReports } from '../kitchens/pos-pauses.ts';
import { insertOutbox, nextSequence } from '../live/outbox.ts';
import { columnOf, oneRow, unnestRows, type Column } from '../postgres/sql-rows.ts';
import {
  APPLIED,
  DUPLICATE,
  OUTCOME_BY_CODE,
  STALE,
  applyingEvents,
  asCompared,
  asStored,
  outcomeOf,
} from './apply-events.ts';
import { isAwaited } from './redrive-parked.ts';

export type Applied = {
  /** One outcome for each webhook, in the order of the parameter. */
  webhooks: WebhookOutcome[];
  /** One outcome for each event, in the same order. */
  events: EventOutcome[];
  /** The id of each event's order, in the same order. Undefined if the event matched none of our orders. */
  serviceOrderIds: (string | undefined)[];
  /** Events that contradict the stored order. A person should check them. */
  conflicts: Conflict[];
  /** POS ids that the batch linked to our orders and that may have parked events. */
  awaited: PosId[];
};

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
  // guard: erased-not-stored
  ['sealed', 'text', (webhook) => webhook.sealed, `CASE WHEN erased THEN NULL ELSE d.sealed END`],
  ['body', 'bytea', (webhook) => webhook.body, `CASE WHEN erased THEN '' ELSE d.body END`],
  ['zstd_of', 'integer', (webhook) => webhook.zstdOf],
  ['truncated', 'boolean', (webhook) => webhook.truncated],
  ['polled', 'boolean', (webhook) => webhook.polled === true],
  ['events', 'smallint', (webhook) => webhook.events.length],
  ['reason', 'text', ({ dropped }) => dropped?.reason],
  ['cause', 'text', ({ dropped }) => dropped && JSON.stringify(dropped.cause), 'd.cause::jsonb'],
  ['replay_of', 'uuid', (webhook) => webhook.replayOf?.webhookId],
  [
    'first_received_at',
    'timestamptz',
    ({ replayOf, receivedAt, isLate }) => replayOf?.receivedAt ?? (isLate === true ? receivedAt : undefined),
  ],
];
const STORED_NAMES = STORED.map(([name]) => name).join(', ');
/** SQL of a row's values, for rows `d` that say whether their order is `erased`. */
const STORED_VALUES = STORED.map(([name, , , stored]) => stored ?? `d.${name}`).join(', ');
const WEBHOOKS = unnestRows(STORED);

/** An event and its webhook's number in the batch. `reasonDetails`, `estimate` and `tracking` are texts for SQL. */
type PlacedEvent = ArrivedEvent & {
  nth: number;
  reasonDetails: string | null;
  estimate: string | null;
  tracking: string | null;
};

const EVENT_COLUMNS: readonly Column<PlacedEvent>[] = [
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
  ['reason_details', 'text', (item) => item.reasonDetails],
  ['estimate', 'text', (item) => item.estimate],
  ['tracking', 'text', (item) => item.tracking],
];
const EVENTS = unnestRows(EVENT_COLUMNS, WEBHOOKS.next);

/** A POS's report about its location (`kitchen` or `revokedAt`), and its webhook's number in the batch. */
type LocationReport = { nth: number; webhook: TranslatedWebhook };

const REPORTS = unnestRows<LocationReport>(
  [
    ['webhook_nth', 'integer', (report) => report.nth],
    ['location_id', 'text', (report) => report.webhook.locationId],
    ['integration', 'text', (report) => report.webhook.integration],
    ['said_at', 'timestamptz', ({ webhook }) => webhook.replayOf?.receivedAt ?? webhook.receivedAt],
    ['until', 'timestamptz', ({ webhook }) => webhook.kitchen && closedUntil(webhook.kitchen)],
    ['busy_until', 'timestamptz', ({ webhook: { kitchen } }) => (kitchen?.state === 'busy' ? kitchen.until : null)],
    [
      'busy_minutes',
      'integer',
      ({ webhook: { kitchen } }) => (kitchen?.state === 'busy' ? kitchen.extraMinutes : null),
    ],
    // A vendor's clock may be fast, and must not withdraw a later grant.
    [
      'revoked_at',
      'timestamptz',
      ({ webhook: { revokedAt, replayOf, receivedAt } }) =>
        revokedAt && earlier(revokedAt, replayOf?.receivedAt ?? receivedAt),
    ],
  ],
  EVENTS.next,
);
/** SQL that looks up the time by webhook number. Events lack it, because it is NULL for webhooks from the endpoint. */
const FIRST_RECEIVED_AT = `${WEBHOOKS.array('first_received_at')}[webhook_nth]`;

/** SQL that is true if `row` has a newer estimate than `than`. */
const isNewer = (row: string, than: string): string =>
  `${asCompared(`${row}.estimate`)} > coalesce(${asCompared(`${than}.estimate`)}, '{}')`;

/** SQL of a report's outcome. A report is stale if a newer one exists, or if its pause had already ended. */
const REPORT_OUTCOME = `CASE WHEN d.nth IN (SELECT webhook_nth FROM heard) THEN 'applied' ELSE 'stale' END`;

/**
 * Stores webhooks and applies their events in one statement, so both are in one commit. `parked_events` has one row for
 * each POS id and status. The first such event makes the row. A repeated event adds only values that the row lacks, or
 * a newer estimate or link.
 * @param about see `applyingEvents` for `linksIds` and `hasDetails`; `reports` is true if the batch has a report about a location
 */
const applyStatement = ({ linksIds = false, hasDetails = false, reports = false }): string => `
-- guard: outbox-in-commit
WITH ${reports ? `${hearingReports(REPORTS.as)}, ` : ''}${applyingEvents(EVENTS.as, FIRST_RECEIVED_AT, { linksIds, hasDetails })}, waiting AS (
  INSERT INTO parked_events AS w (location_id, integration, provider_order_id, rank, webhook_day, webhook_id,
                                  native_status, reason, occurred_at, ${hasDetails ? 'reason_details, estimate, tracking, ' : ''}parked_at)
  SELECT location_id, integration, provider_order_id, rank,
         (array_agg((${WEBHOOKS.array('received_at')}[webhook_nth] AT TIME ZONE 'UTC')::date ORDER BY nth))[1],
         (array_agg(webhook_id ORDER BY nth))[1],
         (array_agg(native_status ORDER BY nth))[1],
         (array_agg(reason ORDER BY nth) FILTER (WHERE reason IS NOT NULL))[1],
         (array_agg(occurred_at ORDER BY nth) FILTER (WHERE occurred_at IS NOT NULL))[1],
         ${hasDetails ? '(array_agg(reason_details ORDER BY nth) FILTER (WHERE reason_details IS NOT NULL))[1], ' + asStored('max(estimate)') + ', max(tracking),' : ''}
         now() + min(nth) * interval '1 us' -- distinct times preserve the order of the events
  FROM ruled
  -- Only events without our order id are parked. With our order id, an event never moves to another order.
  WHERE NOT ours AND by_pos_id
  GROUP BY location_id, integration, provider_order_id, rank
  ORDER BY location_id, integration, provider_order_id, rank -- the same order in all batches prevents deadlocks
  -- guard: one-of-each-status
  ON CONFLICT (location_id, integration, provider_order_id, rank) DO UPDATE
  SET reason = coalesce(w.reason, excluded.reason), occurred_at = coalesce(w.occurred_at, excluded.occurred_at)
      ${hasDetails ? ', reason_details = coalesce(w.reason_details, excluded.reason_details), estimate = CASE WHEN ' + isNewer('excluded', 'w') + ' THEN excluded.estimate ELSE w.estimate END, tracking = greatest(w.tracking, excluded.tracking)' : ''}
  WHERE w.reason IS NULL AND excluded.reason IS NOT NULL
     OR w.occurred_at IS NULL AND excluded.occurred_at IS NOT NULL
     ${hasDetails ? `OR w.reason_details IS NULL AND excluded.reason_details IS NOT NULL OR ${isNewer('excluded', 'w')} OR excluded.tracking > coalesce(w.tracking, '{}')` : ''}
-- guard: one-of-each-status-end
), best AS MATERIALIZED (
  SELECT array_agg(outcome ORDER BY webhook_nth) AS outcomes, array_agg(erased ORDER BY webhook_nth) AS erased,
         array_agg(service_order_id ORDER BY webhook_nth) AS orders
  FROM (SELECT webhook_nth, min(outcome) AS outcome, bool_or(order_erased) AS erased,
               min(target) FILTER (WHERE ours) AS service_order_id
        FROM ruled GROUP BY webhook_nth) AS each
), kept AS (
  INSERT INTO webhooks (day, service_order_id, outcome, ${STORED_NAMES})
  SELECT (d.received_at AT TIME ZONE 'UTC')::date, (SELECT orders FROM best)[d.nth],
         CASE WHEN d.reason IS NOT NULL THEN 'dropped'
              ${reports ? `WHEN d.nth = ANY (${REPORTS.array('webhook_nth')}) THEN ${REPORT_OUTCOME}` : ''}
              WHEN d.events = 0 THEN 'ignored'
              ELSE ${OUTCOME_BY_CODE}[(SELECT outcomes FROM best)[d.nth]] END,
         ${STORED_VALUES}
  FROM ${WEBHOOKS.as('d')}
  CROSS JOIN LATERAL (SELECT coalesce((SELECT erased FROM best)[d.nth], false) AS erased) AS about
)
SELECT (SELECT outcomes FROM best) AS best,
       ${reports ? 'ARRAY(SELECT webhook_nth FROM heard) AS heard,' : ''}
       array_agg(outcome ORDER BY nth) AS outcomes,
       array_agg(nth::int ORDER BY nth) FILTER (WHERE conflict) AS conflicts,
       jsonb_object_agg(nth, target) FILTER (WHERE ours AND by_pos_id) AS found,
       (SELECT jsonb_agg(jsonb_build_object('locationId', location_id, 'integration', integration,
                                            'providerOrderId', provider_order_id))
        FROM pos_ids WHERE ${linksIds ? 'true' : isAwaited('pos_ids')}) AS awaited,
       -- Divides by zero if a POS id was not linked: see ID_LEARNT_MEANWHILE. A constant 1 / 0 would fail at planning.
       -- guard: links-of-one-order
       1 / CASE WHEN EXISTS (SELECT FROM ruled r
                             WHERE ours AND provider_order_id IS NOT NULL AND mapped IS NULL AND NOT EXISTS (
                               SELECT FROM pos_ids t
                               WHERE t.location_id = r.location_id AND t.integration = r.integration
                                 AND t.provider_order_id = r.provider_order_id)) THEN 0 ELSE 1 END AS all_learnt
FROM ruled`;

/**
 * The error of a batch whose POS id was linked by another transaction while the batch ran, perhaps to another order. A
 * second try sees that link. The statement divides by zero, because SQL has hardly any other way to raise an error.
 */
export const ID_LEARNT_MEANWHILE = '22012';

/** Returns the drop for a webhook that has a value which Postgres refuses. */
export function refusedByPostgres({ code: sqlstate = '' }: DatabaseError): Drop {
  return { reason: `Postgres refused a value in it (${sqlstate})`, cause: { code: 'refused_by_postgres', sqlstate } };
}

const APPLY = applyStatement({});
const APPLY_DETAILED = applyStatement({ hasDetails: true });
/** Batches that link ids or have a report about a location are rare, so their statements always include the SQL for details. */
const APPLY_LINKING = applyStatement({ linksIds: true, hasDetails: true });
const APPLY_REPORTS = applyStatement({ linksIds: true, hasDetails: true, reports: true });

/** One webhook that is not plain makes all of its batch be applied by the long statement: in a large batch it is likely. */
const PLAIN_MAX = 16;

/** A webhook whose only event is plain. */
type PlainWebhook = { webhook: TranslatedWebhook; event: PlacedEvent };
const PLAIN_EVENT = [
  'service_order_id',
  'provider_order_id',
  'rank',
  'status',
  'native_status',
  'reason',
  'occurred_at',
];
const PLAIN_COLUMNS = [
  ...STORED.map((column) => columnOf(column, ({ webhook }: PlainWebhook) => webhook)),
  ...EVENT_COLUMNS.filter(([name]) => PLAIN_EVENT.includes(name)).map((column) =>
    columnOf(column, ({ event }: PlainWebhook) => event, 'event_'),
  ),
];
const PLAIN = unnestRows(PLAIN_COLUMNS);
const ONE_PLAIN = oneRow(PLAIN_COLUMNS);

/**
 * Stores webhooks with one event each, if that is all there is to do: each order is another, is open at the POS and named
 * by our id, and no POS id is learnt. Most small batches are so, and Postgres takes half as long to start this statement.
 * Its result is that of `applyStatement`; without a result it did nothing.
 * @param rows SQL of the webhooks, in the order in which their orders are locked
 * @param all SQL that is true if `o` has all of them. One row needs none: it is there or not
 */
const applyPlainStatement = (rows: string, all?: string): string => `
WITH o AS MATERIALIZED (
  SELECT d.*, o.*, ${nextSequence('order_sequence')} AS next,
         -- guard: higher-rank-of-plain
         CASE WHEN event_rank > order_rank THEN ${APPLIED} WHEN event_rank = order_rank THEN ${DUPLICATE} ELSE ${STALE} END AS outcome_code,
         event_reason IS NOT NULL AND order_reason IS NULL AS explains
  FROM ${rows} CROSS JOIN LATERAL (
    SELECT rank AS order_rank, sequence AS order_sequence, reason AS order_reason, provider_order_id AS order_pos_id
    FROM orders
    -- guard: event-location-of-plain
    WHERE service_order_id = event_service_order_id AND orders.location_id = d.location_id
      AND rank >= ${RANK_SENT} AND rank < ${RANK_END} AND ended_at IS NULL AND erased_at IS NULL
      AND (event_provider_order_id IS NULL
           OR provider_order_id = event_provider_order_id AND orders.integration = d.integration)
    -- guard: order-lock-of-plain
    FOR UPDATE
  ) AS o
), r AS ${all === undefined ? 'NOT ' : ''}MATERIALIZED (
  SELECT * FROM o ${all === undefined ? '' : `WHERE ${all}`}
), history AS (
  INSERT INTO status_events (service_order_id, webhook_id, status, native_status, outcome, sequence, provider_order_id, reason, occurred_at)
  SELECT event_service_order_id, id, event_status, event_native_status, ${OUTCOME_BY_CODE}[outcome_code],
         CASE WHEN outcome_code = ${APPLIED} THEN next END, event_provider_order_id, event_reason, event_occurred_at::timestamptz
  FROM r
), updated AS (
  UPDATE orders
  SET rank = greatest(orders.rank, event_rank), sequence = CASE WHEN outcome_code = ${APPLIED} THEN next ELSE sequence END,
      reason = CASE WHEN outcome_code = ${APPLIED} THEN coalesce(event_reason, orders.reason) ELSE event_reason END,
      updated_at = now(), ended_at = CASE WHEN event_rank >= ${RANK_END} THEN now() END
  FROM r
  WHERE service_order_id = event_service_order_id
    AND (outcome_code = ${APPLIED} OR outcome_code = ${DUPLICATE} AND explains)
), live AS (
  ${insertOutbox({
    serviceOrderId: 'event_service_order_id',
    sequence: 'next',
    rank: 'event_rank',
    providerOrderId: 'coalesce(event_provider_order_id, order_pos_id)',
    reason: 'event_reason',
    occurredAt: 'event_occurred_at::timestamptz',
    firstReceivedAt: 'first_received_at',
  })}
  -- guard: outbox-of-plain
  FROM r WHERE outcome_code = ${APPLIED}
), kept AS (
  INSERT INTO webhooks (day, service_order_id, outcome, ${STORED_NAMES})
  SELECT (received_at AT TIME ZONE 'UTC')::date, event_service_order_id, ${OUTCOME_BY_CODE}[outcome_code],
         ${STORED_VALUES}
  FROM (SELECT *, false AS erased FROM r) AS d
)
SELECT outcome_code FROM r ORDER BY nth`;

const APPLY_ONE = applyPlainStatement(ONE_PLAIN.as('d'));
const APPLY_PLAIN = applyPlainStatement(
  // guard: plain-locked-by-key
  `(SELECT * FROM ${PLAIN.as('d')} ORDER BY event_service_order_id) AS d`,
  // guard: all-plain
  `(SELECT count(*) FROM o) = cardinality(${PLAIN.array('id')})`,
);

/**
 * Prepares a connection for the usual batches, with a batch of nothing. The first statement of a new connection takes 40 ms
 * instead of 1 ms, and on a busy machine too long for the first webhooks of a process.
 */
export async function prepareToApply(client: ClientBase): Promise<void> {
  const ofNothing = PLAIN_COLUMNS.map(() => null);
  await client.query({ name: 'apply-one-webhook', text: APPLY_ONE, values: ofNothing });
  await client.query({ name: 'apply-webhooks', text: APPLY, values: [...WEBHOOKS.values([]), ...EVENTS.values([])] });
}

export async function applyWebhooks(client: ClientBase, webhooks: readonly TranslatedWebhook[]): Promise<Applied> {
  // Webhooks with events come first, so that the array of their outcomes, by webhook number, has no gaps.
  const withEvents = webhooks.filter((webhook) => webhook.events.length > 0);
  const without = webhooks.filter((webhook) => webhook.events.length === 0);
  const stored = [...withEvents, ...without];
  const arrived = withEvents.flatMap(({ id, locationId, integration, events, receivedAt, replayOf }, index) =>
    events.map((event): PlacedEvent => {
      const rank = rankOf(event.status);
      const reasonDetails = rank >= RANK_FAILED ? reasonDetailsOf(event) : null;
      const saidAt = saidAtOf(event, replayOf?.receivedAt ?? receivedAt);
      const about = { estimate: estimateOf(event, saidAt), tracking: trackingOf(event, saidAt) };
      return { nth: index + 1, webhookId: id, locationId, integration, event, rank, reasonDetails, ...about };
    }),
  );
  const reports = without.flatMap((webhook, index): LocationReport[] =>
    (webhook.kitchen ?? webhook.revokedAt) === undefined ? [] : [{ nth: withEvents.length + index + 1, webhook }],
  );
  const plain = plainOf(stored, arrived);
  if (plain !== undefined) {
    const [one] = plain;
    const query =
      plain.length === 1 && one !== undefined
        ? { name: 'apply-one-webhook', text: APPLY_ONE, values: ONE_PLAIN.values(one) }
        : { name: 'apply-plain-webhooks', text: APPLY_PLAIN, values: PLAIN.values(plain) };
    const { rows } = await client.query<{ outcome_code: number }>(query);
    const outcomes = rows.map((row) => outcomeOf(row.outcome_code));
    if (outcomes.length > 0) {
      return {
        webhooks: outcomes,
        events: outcomes,
        serviceOrderIds: arrived.map(({ event }) => event.serviceOrderId),
        conflicts: [],
        awaited: [],
      };
    }
  }
  const { rows } = await client.query<{
    best: number[] | null;
    outcomes: number[] | null;
    conflicts: number[] | null;
    found: Record<string, string> | null;
    awaited: PosId[] | null;
    heard?: number[];
  }>({
    // guard: linked-in-batch
    ...(reports.length > 0
      ? { name: 'apply-reporting-webhooks', text: APPLY_REPORTS }
      : mayLinkIds(arrived)
        ? { name: 'apply-linking-webhooks', text: APPLY_LINKING }
        : arrived.some(hasDetails)
          ? { name: 'apply-detailed-webhooks', text: APPLY_DETAILED }
          : { name: 'apply-webhooks', text: APPLY }),
    values: [
      ...WEBHOOKS.values(stored),
      ...EVENTS.values(arrived),
      ...(reports.length > 0 ? REPORTS.values(reports) : []),
    ],
  });
  // guard: outbox-later
  const row = rows[0];
  const best = new Map<TranslatedWebhook, WebhookOutcome>(
    withEvents.map((webhook, i) => [webhook, outcomeOf(row?.best?.[i])]),
  );
  for (const { nth, webhook } of reports) best.set(webhook, row?.heard?.includes(nth) === true ? 'applied' : 'stale');
  const events = (row?.outcomes ?? []).map(outcomeOf);
  const serviceOrderIds = events.map((outcome, i) =>
    outcome === 'parked' || outcome === 'unmatched'
      ? undefined
      : (arrived[i]?.event.serviceOrderId ?? row?.found?.[i + 1]),
  );
  return {
    webhooks: webhooks.map((webhook) => best.get(webhook) ?? (webhook.dropped === undefined ? 'ignored' : 'dropped')),
    events,
    serviceOrderIds,
    conflicts: (row?.conflicts ?? []).flatMap((nth) => {
      const event = arrived[nth - 1];
      return event === undefined ? [] : { ...event, serviceOrderId: serviceOrderIds[nth - 1] };
    }),
    awaited: row?.awaited ?? [],
  };
}

const hasDetails = ({ reasonDetails, estimate, tracking }: PlacedEvent): boolean =>
  (reasonDetails ?? estimate ?? tracking) !== null;

/** @returns each webhook with its event, if `APPLY_PLAIN` may apply them */
function plainOf(stored: readonly TranslatedWebhook[], arrived: readonly PlacedEvent[]): PlainWebhook[] | undefined {
  if (stored.length !== arrived.length || stored.length > PLAIN_MAX || arrived.some(hasDetails)) return undefined;
  const plain = arrived.flatMap((event, index): PlainWebhook[] => {
    const webhook = stored[index];
    return webhook?.id === event.webhookId ? [{ webhook, event }] : [];
  });
  const orders = new Set(arrived.map(({ event }) => event.serviceOrderId));
  return plain.length === orders.size && plain.length > 0 && !orders.has(undefined) ? plain : undefined;
}

function earlier(one: Date, other: Date): Date {
  return one < other ? one : other;
}

function reasonDetailsOf({ reasonCode, itemIds }: StatusEvent): string | null {
  return reasonCode === undefined && itemIds === undefined ? null : JSON.stringify({ reasonCode, itemIds });
}

/**
 * @param receivedAt the time when the webhook was received. For a replay, the time when its original was received
 * @returns the time of the POS's report, but at most `receivedAt`, so that a fast till clock blocks no newer estimates
 */
function saidAtOf({ occurredAt }: StatusEvent, receivedAt: Date): string {
  const saidAt = Math.min(Date.parse(occurredAt ?? ''), receivedAt.getTime()) || receivedAt.getTime();
  return new Date(saidAt).toISOString();
}

/** @returns a Postgres array: time of the report, estimated time ready, estimated time delivered */
function estimateOf({ estimatedReadyAt, estimatedDeliveryAt }: StatusEvent, saidAt: string): string | null {
  if (estimatedReadyAt === undefined && estimatedDeliveryAt === undefined) return null;
  return `{${saidAt},${estimatedReadyAt ?? 'NULL'},${estimatedDeliveryAt ?? 'NULL'}}`;
}

/** @returns a Postgres array: time of the report, tracking link (ASCII, so JSON quotes it as Postgres does) */
function trackingOf({ trackingUrl }: StatusEvent, saidAt: string): string | null {
  return trackingUrl === undefined ? null : `{${saidAt},${JSON.stringify(trackingUrl)}}`;
}

/** True if a POS id comes with two order ids, or an order id with two POS ids. A missing id counts as another id. */
function mayLinkIds(events: readonly PlacedEvent[]): boolean {
  if (events.length < 2) return false;
  const orderOf = new Map<string, string>();
  const posIdOf = new Map<string, string>();
  const differs = (of: Map<string, string>, key: string, value: string): boolean => {
    const known = of.get(key);
    if (known === undefined) of.set(key, value);
    return known !== undefined && known !== value;
  };
  return events.some(({ locationId, integration, event: { serviceOrderId = '', providerOrderId = '' } }) => {
    const posId = providerOrderId === '' ? '' : `${integration} ${locationId} ${providerOrderId}`;
    return (
      (posId !== '' && differs(orderOf, posId, serviceOrderId)) ||
      (serviceOrderId !== '' && differs(posIdOf, serviceOrderId, posId))
    );
  });
}
