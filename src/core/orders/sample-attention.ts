import type { ClientBase } from 'pg';
import { z } from 'zod';
import { RecordedStatus } from '../domain/lifecycle.ts';
import { Instant } from '../domain/order.ts';
import { StoredDropCause } from '../domain/webhook-cause.ts';
import { ClosedAt, GIVEN_BY, SnoozedUntil } from '../cases/cases.ts';
import { changesInWords } from '../contacts/changes-in-words.ts';
import { WAITING } from '../live/outbox.ts';
import { placesOf } from '../replay/list-webhooks.ts';
import { NEEDS, NEEDS_READ, RECENT, UNNOTIFIED_S } from './needs-person.ts';
import { CHANGED_PATHS, TIME_ZONE, type ToldChange } from './read-contents.ts';

const Code = z.string().nullable().meta({ description: 'Null if the order was never fetched.' });

/** Problems that a person should check. */
export const Attention = z
  .object({
    conflicts: z
      .array(
        z.object({
          serviceOrderId: z.string(),
          callOutCode: Code,
          locationId: z.string().nullable(),
          status: RecordedStatus,
          recordedAt: Instant,
          webhookId: z.string().nullable(),
        }),
      )
      .meta({
        description:
          'Events of the last 24 hours that contradict the stored order: the newest 100, one for each order and status.',
      }),
    cancelByPhone: z
      .array(
        z.object({
          serviceOrderId: z.string(),
          callOutCode: Code,
          locationId: z.string(),
          integration: z.string().nullable(),
          providerOrderId: z.string().nullable().meta({ description: "The ticket's id at the POS." }),
          requestedAt: Instant,
        }),
      )
      .meta({ description: 'Orders that only a person can cancel, by phone: the newest 100.' }),
    cancelByPhoneTotal: z.int().meta({ description: 'Number of all orders that only a person can cancel.' }),
    changed: z
      .array(
        z.object({
          serviceOrderId: z.string(),
          callOutCode: Code,
          locationId: z.string(),
          integration: z.string().nullable(),
          paths: z.array(z.string()).meta({ description: 'The changed fields, without their values.' }),
          changes: z.array(z.string()).meta({
            description: 'What to tell the restaurant, in words. Empty if a process of the previous version found it.',
          }),
          seenAt: Instant,
        }),
      )
      .meta({
        description:
          'Orders that the platform changed when they had a ticket, until somebody says whether the restaurant applied ' +
          'the change: the newest 100.',
      }),
    dropped: z
      .array(
        z.object({
          locationId: z.string(),
          integration: z.string(),
          count: z.int().meta({ description: 'Counted up to 1,000, or less if many locations have dropped webhooks.' }),
          firstReceivedAt: Instant.meta({ description: 'Of those that are counted.' }),
          lastReceivedAt: Instant,
          lastReason: z.string().nullable(),
          lastCause: StoredDropCause.nullable().meta({ description: 'The same as `lastReason`, as data.' }),
        }),
      )
      .meta({
        description: 'Webhooks of the last 24 hours that were dropped and have no replay with another outcome.',
      }),
    silent: z
      .array(
        z.object({
          locationId: z.string(),
          integration: z.string().nullable(),
          lastSeenAt: Instant.nullable().meta({ description: 'When its last webhook arrived; null if none ever did.' }),
          sent: z.int().meta({ description: 'Number of tickets without any report from the POS.' }),
          oldestSentAt: Instant,
          hasToken: z.boolean().meta({ description: 'False if it has no valid token, so its POS can report nothing.' }),
        }),
      )
      .meta({
        description:
          'Locations that have sent no webhook since the oldest ticket without a report. Only tickets count that were ' +
          'sent 5 minutes to 24 hours ago and are wanted within the hour.',
      }),
    unreachable: z
      .array(z.object({ locationId: z.string(), integration: z.string(), since: Instant }))
      .meta({ description: 'Locations whose POS does not answer: the first 500.' }),
    unreachedContacts: z
      .array(
        z.object({
          locationId: z.string(),
          integration: z.string(),
          count: z.int().meta({ description: 'Number of messages that were given up.' }),
          lastAt: Instant,
          lastProblem: z.string().nullable(),
        }),
      )
      .meta({
        description:
          'Locations with contacts that could not be told about orders in the last 24 hours, and that got no message since.',
      }),
    unnotified: z
      .object({
        messages: z.int().meta({ description: 'Live messages that were not taken yet, counted up to 10,000.' }),
        orders: z.int(),
        oldestAppliedAt: Instant,
        serviceOrderId: z.string().meta({ description: 'The order of the oldest message.' }),
        callOutCode: Code,
        stoppedAt: Instant.nullable().meta({
          description: 'When STATUS_WEBHOOK_URL was stopped, because it failed for three days or is gone.',
        }),
      })
      .nullable()
      .meta({
        description: `Null unless a live message has waited for over ${UNNOTIFIED_S} seconds. Covers all your locations.`,
      }),
    cases: z
      .array(
        z.object({
          kind: z.enum(['order', 'location']),
          id: z.string(),
          locationId: z.string().nullable(),
          holder: z.string().nullable().meta({ description: 'Who takes care of it; null for nobody.' }),
          takenAt: Instant.nullable(),
          givenBy: z.string().nullable().meta({ description: 'Who handed it over to the holder.' }),
          snoozedUntil: SnoozedUntil,
          snoozedAt: Instant.nullable().meta({ description: 'A later problem of an order is not hidden.' }),
          closedAt: ClosedAt,
        }),
      )
      .meta({
        description:
          'Orders and locations that somebody takes care of or closed, or whose alarm is hidden: the last 500 changed.',
      }),
  })
  .meta({ id: 'Attention' });
export type Attention = z.infer<typeof Attention>;

/** The same for all locations, with the locations and integrations by which `boardFeed` filters for a watcher. */
export type SampledAttention = Omit<Attention, 'conflicts' | 'cancelByPhoneTotal' | 'unnotified'> & {
  cancelsByPhone: { locationId: string; integration: string | null; count: number }[];
  conflicts: (Attention['conflicts'][number] & { integration: string | null })[];
  unnotified: UnnotifiedThere[];
};
type UnnotifiedThere = NonNullable<Attention['unnotified']> & { locationId: string | null; late: boolean };

type FoundChange = Omit<Attention['changed'][number], 'changes'> & ToldChange;

export const CONFLICTS = 100;
/** Maximum of rows read. It is higher than CONFLICTS because one order may have many conflicts. */
const CONFLICTS_READ = 1_000;
/** Maximum of orders listed for a watcher. The newest are listed, because they may still be cancelled in time. */
export const CANCELS = 100;
/** Maximum of cases for one watcher, and of rows read. */
export const CASES = 500;
const CASES_READ = 5_000;
export const CHANGES = 100;
const CHANGES_READ = 1_000;
const DROPPED_PLACES = 500;
const DROPPED_READ = 10_000;
const DROPPED_OF_ONE = 1_000;
const OPEN_READ = 20_000;
export const UNREACHABLE = 500;

/** Finds problems that a person should check, with index scans that read a limited number of rows. */
export async function sampleAttention(pool: Pick<ClientBase, 'query'>): Promise<SampledAttention> {
  const list = async <Each>(text: string): Promise<Each[]> =>
    (await pool.query<{ each: Each }>(text)).rows.map(({ each }) => each);
  return {
    conflicts: await list<SampledAttention['conflicts'][number]>(FIND_CONFLICTS),
    cancelByPhone: await list<Attention['cancelByPhone'][number]>(FIND_CANCELS),
    cancelsByPhone: await list<SampledAttention['cancelsByPhone'][number]>(COUNT_CANCELS),
    changed: (await list<FoundChange>(FIND_CHANGES)).map(({ told, timeZone, ...each }) => ({
      ...each,
      changes: changesInWords(told ?? [], 'en', timeZone),
    })),
    dropped: await list<Attention['dropped'][number]>(FIND_DROPPED),
    silent: await list<Attention['silent'][number]>(FIND_SILENT),
    unreachable: await list<Attention['unreachable'][number]>(FIND_UNREACHABLE),
    unreachedContacts: await list<Attention['unreachedContacts'][number]>(FIND_UNREACHED),
    unnotified: await list<UnnotifiedThere>(FIND_UNNOTIFIED),
    cases: await list<Attention['cases'][number]>(FIND_CASES),
  };
}

/** Adds up the messages of `places`, which are sorted by age, the oldest first. @returns null if no message is late */
export function sumUnnotified(places: readonly UnnotifiedThere[]): Attention['unnotified'] {
  const [oldest] = places;
  if (oldest === undefined || !places.some(({ late }) => late)) return null;
  const { oldestAppliedAt, serviceOrderId, callOutCode, stoppedAt } = oldest;
  const sum = (of: 'messages' | 'orders'): number => places.reduce((all, each) => all + each[of], 0);
  return { messages: sum('messages'), orders: sum('orders'), oldestAppliedAt, serviceOrderId, callOutCode, stoppedAt };
}

const FIND_CONFLICTS = `
  SELECT json_build_object('serviceOrderId', e.service_order_id, 'callOutCode', o.call_out_code, 'locationId', o.location_id,
                           'integration', o.integration, 'status', e.status, 'recordedAt', e.recorded_at,
                           'webhookId', e.webhook_id) AS each
  FROM (SELECT DISTINCT ON (service_order_id, status) *
        FROM (SELECT service_order_id, event_id, status, recorded_at, webhook_id FROM status_events e
              WHERE ${NEEDS.conflict}
              ORDER BY recorded_at DESC LIMIT ${CONFLICTS_READ}) AS newest
        ORDER BY service_order_id, status, event_id DESC) AS e
  LEFT JOIN LATERAL (SELECT location_id, integration, call_out_code FROM orders
                     WHERE service_order_id = e.service_order_id OFFSET 0) AS o ON true
  ORDER BY e.recorded_at DESC, e.event_id DESC LIMIT ${CONFLICTS}`;

const FIND_CANCELS = `
  SELECT json_build_object('serviceOrderId', c.service_order_id, 'callOutCode', o.call_out_code, 'locationId', c.location_id,
                           'integration', o.integration, 'providerOrderId', o.provider_order_id,
                           'requestedAt', c.requested_at) AS each
  FROM (SELECT service_order_id, location_id, requested_at FROM cancellations c
        WHERE ${NEEDS.cancel_by_phone} ORDER BY requested_at DESC LIMIT ${NEEDS_READ}) AS c
  LEFT JOIN LATERAL (SELECT integration, provider_order_id, call_out_code FROM orders
                     WHERE service_order_id = c.service_order_id OFFSET 0) AS o ON true
  ORDER BY c.requested_at DESC, c.service_order_id`;

const COUNT_CANCELS = `
  SELECT json_build_object('locationId', c.location_id, 'integration', o.integration, 'count', count(*)) AS each
  FROM cancellations c
  LEFT JOIN LATERAL (SELECT integration FROM orders WHERE service_order_id = c.service_order_id OFFSET 0) AS o ON true
  WHERE ${NEEDS.cancel_by_phone}
  GROUP BY c.location_id, o.integration`;

/** A process of the previous version stores a difference without a job. It counts for a day, as it did there. */
const UNTOLD = `
  SELECT service_order_id, seen_at
  FROM (SELECT DISTINCT ON (service_order_id) *
        FROM (SELECT service_order_id, seen_at, changes, told FROM order_changes
              WHERE seen_at > ${RECENT} ORDER BY seen_at DESC LIMIT ${CHANGES_READ}) AS newest
        ORDER BY service_order_id, seen_at DESC) AS newest
  WHERE told IS NULL AND changes <> '[]'`;

const FIND_CHANGES = `
  SELECT json_build_object('serviceOrderId', c.service_order_id, 'callOutCode', o.call_out_code, 'locationId', o.location_id,
                           'integration', o.integration, 'paths', ${CHANGED_PATHS}, 'told', c.told,
                           'timeZone', ${TIME_ZONE}, 'seenAt', c.seen_at) AS each
  FROM (SELECT * FROM (SELECT service_order_id, changed_at AS seen_at FROM orders o
                       WHERE ${NEEDS.changed} ORDER BY changed_at DESC LIMIT ${CHANGES}) AS job
        UNION ${UNTOLD}) AS found
  CROSS JOIN LATERAL (SELECT * FROM order_changes
                      WHERE service_order_id = found.service_order_id AND seen_at = found.seen_at OFFSET 0) AS c
  CROSS JOIN LATERAL (SELECT location_id, integration, call_out_code FROM orders
                      WHERE service_order_id = found.service_order_id OFFSET 0) AS o
  ORDER BY c.seen_at DESC, c.service_order_id LIMIT ${CHANGES}`;

/**
 * SQL of `webhook`, the dropped webhooks of the last 24 hours. A dropped replay counts as its original webhook.
 * @param where SQL for which locations. The fewer they are, the more webhooks of each are read
 */
export const droppedLately = (where = 'true'): string => `days AS (
    SELECT (now() AT TIME ZONE 'UTC')::date - ago AS day FROM generate_series(0, 1) AS ago
  ), ${placesOf(`d.outcome = 'dropped'`)}, at AS MATERIALIZED (
    SELECT day, location_id FROM place WHERE location_id IS NOT NULL AND ${where} LIMIT ${DROPPED_PLACES}
  ), newest AS (
    SELECT DISTINCT ON (at.location_id, d.id)
           at.location_id, d.id, d.received_at, (d.received_at AT TIME ZONE 'UTC')::date AS day, d.integration,
           d.reason, d.cause
    FROM at
    CROSS JOIN LATERAL (
      SELECT coalesce(d.replay_of, d.id) AS id, coalesce(d.first_received_at, d.received_at) AS received_at,
             d.integration, d.reason, d.cause, d.id AS newest
      FROM webhooks d
      WHERE d.day = at.day AND d.location_id = at.location_id AND d.outcome = 'dropped'
      ORDER BY d.id DESC
      LIMIT (SELECT least(${DROPPED_OF_ONE}, ${DROPPED_READ} / count(*)) FROM at)
    ) AS d
    WHERE d.received_at > ${RECENT}
    ORDER BY at.location_id, d.id, d.newest DESC
  ), webhook AS (
    SELECT * FROM newest d
    WHERE EXISTS (SELECT FROM webhooks w
                  WHERE w.day = d.day AND w.location_id = d.location_id AND w.id = d.id AND w.outcome = 'dropped')
  )`;

const FIND_DROPPED = `
  WITH RECURSIVE ${droppedLately()}
  SELECT json_build_object('locationId', d.location_id, 'integration', d.integration,
                           'count', least(${DROPPED_OF_ONE}, count(*)),
                           'firstReceivedAt', min(d.received_at), 'lastReceivedAt', max(d.received_at),
                           'lastReason', (array_agg(d.reason ORDER BY d.received_at DESC, d.id DESC))[1],
                           'lastCause', (array_agg(d.cause ORDER BY d.received_at DESC, d.id DESC))[1]) AS each
  FROM webhook d
  WHERE ${NEEDS.dropped}
  GROUP BY d.location_id, d.integration
  ORDER BY max(d.received_at) DESC, d.location_id`;

/** SQL of the locations that have sent nothing since the oldest of their tickets without a report. @param open SQL of orders */
export const silentAmong = (open: string): string => `
  SELECT s.location_id, s.integration, h.last_seen_at, s.sent, s.oldest
  FROM (
    SELECT o.location_id, (array_agg(o.integration ORDER BY p.finished_at DESC))[1] AS integration, count(*) AS sent,
           min(p.finished_at) AS oldest
    FROM (${open}) AS o
    CROSS JOIN LATERAL (SELECT state, finished_at FROM placements
                        WHERE service_order_id = o.service_order_id OFFSET 0) AS p
    WHERE ${NEEDS.silent}
    GROUP BY o.location_id
  ) AS s
  LEFT JOIN LATERAL (SELECT last_seen_at FROM location_last_seen WHERE location_id = s.location_id OFFSET 0) AS h ON true
  WHERE (h.last_seen_at >= s.oldest) IS NOT TRUE`;

const FIND_SILENT = `
  SELECT json_build_object('locationId', location_id, 'integration', integration, 'lastSeenAt', last_seen_at,
                           'sent', sent, 'oldestSentAt', oldest, 'hasToken', EXISTS (
                             SELECT FROM webhook_tokens t JOIN locations l USING (location_id, integration)
                             WHERE t.location_id = s.location_id AND t.revoked_at IS NULL
                               AND (t.expires_at > now()) IS NOT FALSE)) AS each
  FROM (${silentAmong(`SELECT service_order_id, location_id, integration, rank, requested_at, ended_at FROM orders
    WHERE ended_at IS NULL ORDER BY location_id, created_at LIMIT ${OPEN_READ}`)}) AS s
  ORDER BY oldest, location_id`;

const FIND_UNREACHABLE = `
  SELECT json_build_object('locationId', l.location_id, 'integration', l.integration, 'since', k.unreachable_since) AS each
  FROM kitchens k JOIN locations l USING (location_id) WHERE ${NEEDS.unreachable}
  ORDER BY k.unreachable_since, l.location_id LIMIT ${UNREACHABLE}`;
const FIND_UNREACHED = `
  SELECT json_build_object('locationId', l.location_id, 'integration', l.integration, 'count', count(*),
                           'lastAt', max(m.ended_at),
                           'lastProblem', (array_agg(m.problem ORDER BY m.ended_at DESC))[1]) AS each
  FROM notice_messages m JOIN locations l USING (location_id)
  WHERE ${NEEDS.contacts}
  GROUP BY l.location_id
  ORDER BY max(m.ended_at) DESC, l.location_id LIMIT 500`;

/** Counts unpublished messages by location. Reads no placements unless a message is late. */
const FIND_UNNOTIFIED = `
  WITH m AS MATERIALIZED (
    SELECT service_order_id, applied_at FROM ${WAITING}
  )
  SELECT json_build_object('locationId', p.location_id, 'late', ${NEEDS.unnotified}, 'messages', count(*),
                           'orders', count(DISTINCT service_order_id), 'oldestAppliedAt', min(applied_at),
                           'serviceOrderId', (array_agg(service_order_id ORDER BY applied_at))[1],
                           'stoppedAt', (SELECT stopped_at FROM status_endpoints WHERE stopped_at IS NOT NULL
                                         ORDER BY endpoint LIMIT 1),
                           'callOutCode', (SELECT call_out_code FROM orders o WHERE o.service_order_id =
                                             (array_agg(m.service_order_id ORDER BY applied_at))[1])) AS each
  FROM m
  LEFT JOIN LATERAL (SELECT location_id FROM placements WHERE service_order_id = m.service_order_id OFFSET 0) AS p ON true
  WHERE (SELECT ${NEEDS.unnotified} FROM m)
  GROUP BY p.location_id
  ORDER BY min(applied_at)`;

const FIND_CASES = `
  SELECT json_build_object('kind', CASE WHEN c.service_order_id IS NULL THEN 'location' ELSE 'order' END,
                           'id', coalesce(c.service_order_id, c.location_id),
                           'locationId', coalesce(c.location_id, p.location_id), 'holder', c.holder,
                           'takenAt', c.taken_at, 'givenBy', ${GIVEN_BY}, 'closedAt', c.closed_at,
                           'snoozedAt', CASE WHEN c.snoozed_until > now() THEN c.snoozed_at END,
                           'snoozedUntil', CASE WHEN c.snoozed_until > now() THEN c.snoozed_until END) AS each
  FROM (SELECT * FROM cases
        WHERE holder IS NOT NULL OR snoozed_until > now() OR closed_at > now() - interval '24 h'
        ORDER BY changed_at DESC LIMIT ${CASES_READ}) AS c
  LEFT JOIN LATERAL (SELECT location_id FROM placements WHERE service_order_id = c.service_order_id OFFSET 0) AS p ON true
  ORDER BY c.holder IS NULL AND (c.snoozed_until > now()) IS NOT TRUE, c.changed_at DESC, c.service_order_id,
           c.location_id`;
