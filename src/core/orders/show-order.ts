import type { Pool } from 'pg';
import { z } from 'zod';
import { CancellationState, PlacementState } from '../domain/placement.ts';
import { WebhookOutcome } from '../domain/webhook.ts';
import { StoredPlacementCause } from '../domain/placement-cause.ts';
import { changesInWords } from '../contacts/changes-in-words.ts';
import { NOTICE_REASONS } from '../contacts/contact.ts';
import { WEBHOOK_DAYS } from '../retention/erase-members.ts';
import { type ArchiveStore, findArchived } from '../retention/archive.ts';
import { type Reader, readerOfRows } from '../retention/pack-order.ts';
import { findPastOrder, findTombstone } from '../retention/past-orders.ts';
import { FulfillmentType, MemberState, RecordedStatus, Status, memberStateAt, statusAt } from '../domain/lifecycle.ts';
import { Instant } from '../domain/order.ts';
import { RecordedChange } from '../domain/live-message.ts';
import { RecordedReasonCode } from '../domain/reason-code.ts';
import { TEST_ORDER } from '../domain/test-order-id.ts';
import { memberNotified } from '../domain/member-notified.ts';
import { fieldsOf } from '../postgres/sql-rows.ts';
import { ESTIMATED, reasonCodeAt } from '../live/outbox.ts';
import { IS_FOLLOWED } from '../live/record-followed.ts';
import { ListedWebhook } from '../replay/list-webhooks.ts';
import { Care, careOf } from '../cases/cases.ts';
import { RecordedAction, readActionsAbout, readChangesAt } from '../operators/read-audit.ts';
import { NEEDS } from './needs-person.ts';
import { ListedOrder, nextAttemptAt as nextOf, REFRESH_FAILURE, RefreshFailure } from './list-orders.ts';
import { CHANGED_PATHS, TIME_ZONE, TOLD, type ToldChange } from './read-contents.ts';

/** Maximum of dropped webhooks that are counted. */
const DROPPED = 100;

const ItemIds = z
  .array(z.string())
  .nullable()
  .meta({ description: 'The items that the POS named as the reason. Null once the member is erased.' });

/** Text from the POS, which may name the member. */
const Reason = z
  .string()
  .nullable()
  .meta({ description: 'Text from the POS or from us. Over HTTP only with `contents=true`, otherwise null.' });

const { integration, leftOut, nextAttemptAt } = ListedOrder.shape;

/**
 * One order without its member and its items. `reason`, `problem` and an attempt's `error` are texts for a member or an
 * operator. `history` has only the newest thousand events, because a POS that repeats events forever must not make the
 * order too large to show.
 */
export const ShownOrder = z.object({
  serviceOrderId: z.string(),
  past: z.boolean().meta({ description: 'It is a past order: it can be read, but not changed.' }),
  archive: z.string().nullable().meta({ description: 'The URL of the file of the archive that it was read from.' }),
  notified: z.string().meta({ description: 'What the member has been notified of, in sentences.' }),
  memberWatching: z.boolean().meta({ description: 'Someone followed the order with a follow token seconds ago.' }),
  placement: z.object({
    state: PlacementState,
    locationId: z.string().nullable(),
    problem: z.string().nullable(),
    cause: StoredPlacementCause.nullable(),
    underWay: z.boolean().meta({ description: 'A worker is processing it now.' }),
    attempts: z.int(),
    failures: z.int(),
    signalledAt: Instant,
    deadlineAt: Instant,
    nextAttemptAt: nextAttemptAt,
    requestEndedAt: Instant.nullable(),
    finishedAt: Instant.nullable(),
  }),
  order: z
    .object({
      locationId: z.string(),
      integration,
      fulfillment: FulfillmentType,
      callOutCode: z.string(),
      status: Status.nullable(),
      memberState: MemberState,
      sequence: z.int(),
      providerOrderId: z.string().nullable(),
      reason: Reason,
      reasonCode: RecordedReasonCode.nullable(),
      itemIds: ItemIds,
      estimatedReadyAt: Instant.nullable().meta({ description: "The POS's last estimate." }),
      estimatedDeliveryAt: Instant.nullable(),
      trackingUrl: z.string().nullable().meta({
        description:
          'Link by which the member follows the courier. Over HTTP only with `contents=true`, otherwise null.',
      }),
      failedByUs: z
        .boolean()
        .meta({ description: 'We ended it without a ticket: it could not be placed, or was withdrawn.' }),
      leftOut,
      requestedAt: Instant.nullable(),
      createdAt: Instant,
      updatedAt: Instant,
      endedAt: Instant.nullable(),
      erasedAt: Instant.nullable().meta({ description: 'When all member data was erased.' }),
    })
    .nullable()
    .meta({ description: 'Null until the order is fetched for the first time.' }),
  cancellation: z
    .object({
      state: CancellationState,
      requestedBy: z.enum(['platform', 'operator', 'expediter']).meta({
        description: 'expediter: the order is to fail, and the POS may have it.',
      }),
      requestedAt: Instant,
      problem: z.string().nullable(),
      cause: StoredPlacementCause.nullable(),
      underWay: z.boolean().meta({ description: 'A worker is processing the cancellation now.' }),
      nextAttemptAt: nextAttemptAt,
      finishedAt: Instant.nullable(),
    })
    .nullable()
    .meta({ description: 'Null unless a cancellation was requested.' }),
  refreshFailure: RefreshFailure,
  change: z
    .object({
      state: RecordedChange,
      since: Instant.nullable(),
      waits: z.boolean().meta({ description: 'A person must still say whether the restaurant applied it.' }),
      changes: z.array(z.string()).meta({ description: 'What to tell the restaurant, in words, without notes.' }),
    })
    .nullable()
    .meta({
      description: "The platform's last change for the kitchen or the driver after it was sent; null for none.",
    }),
  changes: z.array(z.object({ seenAt: Instant, paths: z.array(z.string()) })).meta({
    description:
      'Fields that differ between the platform and the ticket, after each change. Empty `paths`: nothing differs any more.',
  }),
  attempts: z.array(
    z.object({
      attempt: z.int(),
      call: z.enum(['createOrder', 'findOrder', 'cancelOrder']),
      outcome: z.string(),
      httpStatus: z.int().nullable(),
      milliseconds: z.int().nullable(),
      error: z.string().nullable(),
      reasonCode: RecordedReasonCode.nullable().meta({ description: 'Only for a call that the POS refused.' }),
      extraMinutes: z.int().nullable().meta({ description: 'Minutes that were added because the kitchen was busy.' }),
      startedAt: Instant,
      endedAt: Instant.nullable().meta({ description: 'Null while the call is under way, or if its process died.' }),
    }),
  ),
  posIds: z.array(
    z.object({ locationId: z.string(), integration: z.string(), providerOrderId: z.string(), createdAt: Instant }),
  ),
  history: z.array(
    z.object({
      status: RecordedStatus,
      nativeStatus: z.string(),
      outcome: WebhookOutcome,
      conflict: z.boolean(),
      sequence: z.int().nullable().meta({ description: 'Only for an applied event.' }),
      providerOrderId: z.string().nullable(),
      reason: Reason,
      reasonCode: RecordedReasonCode.nullable(),
      itemIds: ItemIds,
      estimatedReadyAt: Instant.nullable(),
      estimatedDeliveryAt: Instant.nullable(),
      webhookId: z.string().nullable().meta({ description: 'Null for our own decisions.' }),
      occurredAt: Instant.nullable(),
      recordedAt: Instant,
    }),
  ),
  webhooks: z
    .array(
      ListedWebhook.omit({
        locationId: true,
        bytes: true,
        truncated: true,
        serviceOrderId: true,
        callOutCode: true,
        replayed: true,
      }).extend({ receivedAt: Instant }),
    )
    .meta({ description: 'Webhooks and replays of the events in `history`, as far as they are still stored.' }),
  droppedSince: z.int().meta({
    description:
      `Webhooks of its location that were dropped between the order's last change and its end, counted up to ${DROPPED}. ` +
      'One of them may be about this order. Webhooks with a replay of another outcome do not count.',
  }),
  live: z.array(
    z.object({
      sequence: z.int(),
      memberState: MemberState,
      appliedAt: Instant,
      publishedAt: Instant.nullable().meta({ description: 'Null until the message is in the topic.' }),
      attempts: z
        .int()
        .nullable()
        .meta({ description: 'Number of publishing attempts; null once the message is in the topic.' }),
    }),
  ),
  notices: z
    .array(
      z.object({
        reason: z.enum(NOTICE_REASONS),
        via: z.enum(['email', 'webhook']),
        contact: z.string().nullable().meta({ description: 'The name of the contact.' }),
        createdAt: Instant,
        outcome: z.enum(['sent', 'gave_up', 'settled']).nullable().meta({
          description: 'Null while it is being sent. settled: nothing was left to tell.',
        }),
        endedAt: Instant.nullable(),
        problem: z.string().nullable().meta({ description: 'Why the last attempt to send it failed.' }),
        answer: z
          .string()
          .nullable()
          .meta({ examples: ['not_there'] }),
        answeredAt: Instant.nullable(),
      }),
    )
    .meta({ description: 'What contacts of its restaurant were told about it, and their answers.' }),
  actions: z.array(RecordedAction).meta({
    description:
      "Operators' actions, reads and refused attempts about the order and its webhooks, the newest 200, and what they " +
      'changed at its location while it was not at the POS.',
  }),
  ...Care,
});
export type ShownOrder = z.infer<typeof ShownOrder>;

type Row = Omit<
  ShownOrder,
  'past' | 'archive' | 'serviceOrderId' | 'notified' | 'placement' | 'order' | 'change' | 'live' | 'actions'
> & {
  change: (Omit<NonNullable<ShownOrder['change']>, 'changes'> & ToldChange) | null;
  placement: ShownOrder['placement'] | null;
  order: (Omit<NonNullable<ShownOrder['order']>, 'status' | 'memberState'> & { rank: number }) | null;
  live: (Omit<ShownOrder['live'][number], 'memberState'> & { rank: number })[];
};

const HISTORY = 1_000;

const FIELDS = ShownOrder.shape;
const UNDER_WAY = 'coalesce(lease_until > now(), false)';

/** SQL of everything but the actions. */
const SHOWN = `SELECT
       (SELECT to_json(p) FROM (
          SELECT ${fieldsOf(FIELDS.placement, { underWay: UNDER_WAY, nextAttemptAt: nextOf('p') })}
          FROM placements p WHERE service_order_id = $1) AS p) AS placement,
       (SELECT to_json(o) FROM (
          SELECT rank, ${fieldsOf(FIELDS.order.unwrap().omit({ status: true, memberState: true }), {
            reasonCode: reasonCodeAt('rank'),
            estimatedReadyAt: ESTIMATED.ready,
            estimatedDeliveryAt: ESTIMATED.delivery,
            trackingUrl: 'tracking[2]',
            leftOut: `coalesce(left_out, '[]')`,
          })} FROM orders o WHERE service_order_id = $1) AS o) AS "order",
       (SELECT to_json(c) FROM (
          SELECT ${fieldsOf(FIELDS.cancellation.unwrap(), {
            requestedBy: `CASE WHEN fails_with IS NULL THEN requested_by ELSE 'expediter' END`,
            underWay: UNDER_WAY,
            nextAttemptAt: nextOf('c'),
          })} FROM cancellations c WHERE service_order_id = $1) AS c) AS cancellation,
       (SELECT ${REFRESH_FAILURE} FROM orders o WHERE o.service_order_id = $1) AS "refreshFailure",
       (SELECT json_build_object('state', change, 'since', changed_at, 'waits', ${NEEDS.changed} IS TRUE,
                                 'told', ${TOLD}, 'timeZone', ${TIME_ZONE})
        FROM orders o WHERE service_order_id = $1 AND change IS NOT NULL) AS change,
       (SELECT coalesce(json_agg(c ORDER BY c."seenAt"), '[]') FROM (
          SELECT ${fieldsOf(FIELDS.changes.element, { paths: CHANGED_PATHS })}
          FROM order_changes WHERE service_order_id = $1) AS c) AS changes,
       (SELECT coalesce(json_agg(a ORDER BY a.attempt), '[]') FROM (
          SELECT ${fieldsOf(FIELDS.attempts.element)}
          FROM placement_attempts WHERE service_order_id = $1) AS a) AS attempts,
       (SELECT coalesce(json_agg(i ORDER BY i."createdAt"), '[]') FROM (
          SELECT ${fieldsOf(FIELDS.posIds.element)}
          FROM provider_orders WHERE service_order_id = $1) AS i) AS "posIds",
       (SELECT coalesce(json_agg(to_jsonb(e) - 'nth' ORDER BY e.nth), '[]') FROM (
          SELECT event_id AS nth, ${fieldsOf(FIELDS.history.element, {
            estimatedReadyAt: 'estimate[2]',
            estimatedDeliveryAt: 'estimate[3]',
          })}
          FROM status_events WHERE service_order_id = $1 ORDER BY event_id DESC LIMIT ${HISTORY}) AS e) AS history,
       (SELECT coalesce(json_agg(d ORDER BY d."receivedAt", d."webhookId"), '[]') FROM (
          SELECT DISTINCT d.*
          FROM (SELECT e.webhook_id AS id, days.day, o.location_id
                FROM (SELECT webhook_id, recorded_at FROM status_events
                      WHERE service_order_id = $1 ORDER BY event_id DESC LIMIT ${HISTORY}) AS e,
                     orders o, ${WEBHOOK_DAYS}
                WHERE o.service_order_id = $1 AND e.webhook_id IS NOT NULL) AS k
          CROSS JOIN LATERAL (
            SELECT ${fieldsOf(FIELDS.webhooks.element, { webhookId: 'id' })}
            FROM webhooks WHERE day = k.day AND location_id = k.location_id AND id = k.id
            OFFSET 0 -- forces index lookups
          ) AS d) AS d) AS webhooks,
       (SELECT count(*)::int FROM (
          SELECT FROM (SELECT location_id, updated_at, coalesce(ended_at, now()) AS until FROM orders
                       WHERE service_order_id = $1 OFFSET 0) AS o
          JOIN webhooks d
            ON d.location_id = o.location_id AND d.outcome = 'dropped' AND d.replay_of IS NULL
            AND d.day BETWEEN (o.updated_at AT TIME ZONE 'UTC')::date AND (o.until AT TIME ZONE 'UTC')::date
            -- The id is a UUIDv7, which starts with its time in milliseconds.
            AND d.id > (lpad(to_hex((extract(epoch FROM o.updated_at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
            AND d.received_at <= o.until
          WHERE ${NEEDS.dropped}
          LIMIT ${DROPPED}) AS d) AS "droppedSince",
       (SELECT coalesce(json_agg(x ORDER BY x.sequence), '[]') FROM (
          SELECT sequence, rank, applied_at AS "appliedAt", CASE WHEN resent THEN applied_at END AS "publishedAt",
                 greatest(attempts, webhook_attempts) AS attempts
          FROM outbox WHERE service_order_id = $1
          UNION ALL
          SELECT sequence, rank, applied_at, published_at, NULL
          FROM live_messages WHERE service_order_id = $1) AS x) AS live,
       (SELECT coalesce(json_agg(n ORDER BY n."createdAt"), '[]') FROM (
          SELECT n.reason, n.contact ->> 'via' AS via, n.contact ->> 'name' AS contact, n.created_at AS "createdAt",
                 m.outcome, m.ended_at AS "endedAt", m.problem, n.answer, n.answered_at AS "answeredAt"
          FROM notices n JOIN notice_messages m USING (message_id) WHERE n.service_order_id = $1) AS n) AS notices,
       ${IS_FOLLOWED} AS "memberWatching", ${careOf('service_order_id')}`;

/**
 * Reads everything about an order. A past order is read by the same statement, from its packed rows or the archive.
 * @returns undefined if no signal ever named this order, or if its history is deleted
 */
export async function showOrder(
  pool: Pool,
  serviceOrderId: string,
  archive?: ArchiveStore,
): Promise<ShownOrder | undefined> {
  const current = await readShown(pool, pool, serviceOrderId);
  if (current !== undefined) return { ...current, past: false, archive: null };
  const reader = await findPastOrder(pool, serviceOrderId);
  const past = reader && (await readShown(pool, reader, serviceOrderId));
  if (past !== undefined) return { ...past, past: true, archive: null };
  const tombstone = archive && (await findTombstone(pool, serviceOrderId));
  const archived = tombstone && (await findArchived(archive, tombstone.month, serviceOrderId));
  const shown = archived && (await readShown(pool, readerOfRows(pool, [archived.rows]), serviceOrderId));
  return shown && { ...shown, past: true, archive: archived.url };
}

/** Reads everything but the actions in one statement. */
async function readShown(
  pool: Pool,
  reader: Reader,
  serviceOrderId: string,
): Promise<Omit<ShownOrder, 'past' | 'archive'> | undefined> {
  const { rows } = await reader.query<Row>(SHOWN, [serviceOrderId]);
  const row = rows[0];
  if (row === undefined || row.placement === null) return undefined;
  const { placement } = row;
  const order = row.order && { status: statusAt(row.order.rank), ...withMemberState(row.order, row.order.fulfillment) };
  const live = row.live.map((message) => withMemberState(message, order?.fulfillment ?? null));
  const notified = TEST_ORDER.test(serviceOrderId)
    ? 'This is a test order: it has no member.'
    : memberNotified({
        placement: placement.state,
        memberState: order?.memberState ?? live.at(-1)?.memberState ?? null,
        isRead: order !== null,
        waiting: live.filter((message) => message.publishedAt === null).length,
      });
  const webhookIds = row.webhooks.flatMap(({ webhookId, replayOf }) => [
    webhookId,
    ...(replayOf === null ? [] : [replayOf]),
  ]);
  const about = await readActionsAbout(pool, serviceOrderId, [...new Set(webhookIds)]);
  const { locationId, signalledAt, finishedAt } = placement;
  const until = finishedAt === null ? undefined : new Date(finishedAt);
  const changes =
    locationId === null ? [] : await readChangesAt(pool, locationId, { since: new Date(signalledAt), until });
  const actions = [...about, ...changes].toSorted((one, other) => Number(one.auditId) - Number(other.auditId));
  const change = row.change && inWords(row.change);
  return { ...row, serviceOrderId, notified, placement, order, change, live, actions };
}

const inWords = ({ told, timeZone, ...change }: NonNullable<Row['change']>): NonNullable<ShownOrder['change']> => ({
  ...change,
  changes: changesInWords(told ?? [], 'en', timeZone),
});

/** @returns the order for a reader who may not see member data */
export function withoutMemberData(shown: ShownOrder): ShownOrder {
  const history = shown.history.map((event) => ({ ...event, reason: null }));
  return { ...shown, order: shown.order && { ...shown.order, reason: null, trackingUrl: null }, history };
}

function withMemberState<Ranked extends { rank: number }>(
  { rank, ...ranked }: Ranked,
  fulfillment: FulfillmentType | null,
): Omit<Ranked, 'rank'> & { memberState: MemberState } {
  return { ...ranked, memberState: memberStateAt(rank, fulfillment) };
}
