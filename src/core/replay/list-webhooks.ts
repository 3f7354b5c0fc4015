import type { Pool } from 'pg';
import { z } from 'zod';
import { Next } from '../domain/next.ts';
import { WebhookOutcome } from '../domain/webhook.ts';
import { StoredDropCause } from '../domain/webhook-cause.ts';

/** The primary key of a webhook. The id alone does not determine the day. */
export type WebhookKey = { day: string; locationId: string; webhookId: string };

export type WebhookFilter = {
  outcome?: WebhookOutcome | undefined;
  /** Only webhooks at these locations. Undefined for all locations. */
  locations?: readonly string[] | undefined;
  integration?: string | undefined;
  since?: Date | undefined;
  until?: Date | undefined;
  serviceOrderId?: string | undefined;
  /** True for webhooks that were refused for an old token, false for all others. */
  oldToken?: boolean | undefined;
  /** Only complete originals. `open` leaves out those for which a replay had another outcome, `all` does not. */
  replayable?: 'open' | 'all' | undefined;
};

export const CallOutCode = z.string().nullable().meta({ description: 'The call-out code of that order.' });

export const ListedWebhook = z
  .object({
    webhookId: z.string(),
    receivedAt: z.date(),
    integration: z.string(),
    outcome: WebhookOutcome,
    events: z.int().meta({ description: 'Number of events that the translator read in it.' }),
    reason: z.string().nullable().meta({ description: 'Why it was dropped, or another note on its outcome.' }),
    cause: StoredDropCause.nullable().meta({ description: 'Why it was dropped, as data.' }),
    replayOf: z.string().nullable().meta({ description: 'The webhook that it replays.' }),
    replayed: WebhookOutcome.nullable().meta({
      description:
        'Of a dropped one, the outcome of the last replay of the same webhook that was not dropped. Null for none.',
    }),
    serviceOrderId: z
      .string()
      .nullable()
      .describe('The order of its events. Null if it belongs to none of our orders, or was parked when it came.'),
    callOutCode: CallOutCode,
    locationId: z.string(),
    bytes: z.int().meta({ description: 'Size of its body.' }),
    polled: z
      .boolean()
      .describe('No POS sent it: a status poll of an overdue order reported more than the webhooks of the order.'),
    truncated: z.boolean().describe('Only its beginning is stored: it was over WEBHOOK_BODY_LIMIT or the daily quota.'),
  })
  .meta({ id: 'ListedWebhook' });
export type ListedWebhook = z.infer<typeof ListedWebhook>;

export const ListedWebhooks = z.object({ webhooks: z.array(ListedWebhook), next: Next });

/** A page of at most `limit` webhooks in the order of arrival. It begins after the webhook `after`. */
type Page = { oldestFirst: boolean; after?: WebhookKey | undefined; limit: number };

/** SQL of the columns of a webhook `d` about its order. */
export const ORDER_OF = `d.service_order_id AS "serviceOrderId",
  (SELECT o.call_out_code FROM orders o WHERE o.service_order_id = d.service_order_id) AS "callOutCode"`;

/** Reads the call-out codes of orders that a webhook names. */
export async function readCodes(
  pool: Pool,
  serviceOrderIds: readonly (string | undefined | null)[],
): Promise<ReadonlyMap<unknown, string | null>> {
  const ids = serviceOrderIds.filter((id) => typeof id === 'string');
  if (ids.length === 0) return new Map();
  const { rows } = await pool.query<{ id: string; code: string | null }>(
    'SELECT service_order_id AS id, call_out_code AS code FROM orders WHERE service_order_id = ANY ($1::text[])',
    [ids],
  );
  return new Map(rows.map(({ id, code }) => [id, code]));
}

export type KeyedWebhook = WebhookKey & ListedWebhook;

export type FoundWebhooks = {
  webhooks: KeyedWebhook[];
  /** The webhook after which the next page begins, whether it was listed or not; undefined at the end of the list. */
  next: WebhookKey | undefined;
};

/** Maximum number of webhooks scanned for one page, however few match. */
const SCAN = 5_000;
/** The time span of the first scan over all locations. Later spans grow or shrink by a factor of `STRETCHES`. */
const STRETCH_MS = 60_000;
const STRETCHES = 8;
const DAY_MS = 24 * 60 * 60_000;

/**
 * SQL for the locations with webhooks on each of `days`. It skips from location to location in an index. DISTINCT would
 * read all rows.
 * @param among a condition on webhooks `d` that an index supports
 */
export const placesOf = (among: string): string => `
  place AS (
    SELECT days.day, (SELECT d.location_id FROM webhooks d WHERE d.day = days.day AND ${among}
                      ORDER BY d.location_id LIMIT 1) AS location_id
    FROM days
    UNION ALL
    SELECT place.day, (SELECT d.location_id FROM webhooks d
                       WHERE d.day = place.day AND d.location_id > place.location_id AND ${among}
                       ORDER BY d.location_id LIMIT 1)
    FROM place WHERE place.location_id IS NOT NULL
  )`;
export const PLACES = placesOf('true');

/** SQL for the length of the received body of `d`. For a sealed body, the header content-length has it. */
const BYTES_STORED = `CASE WHEN d.body <> '' THEN coalesce(d.zstd_of, octet_length(d.body))
                         WHEN d.sealed IS NOT NULL THEN coalesce((d.headers ->> 'content-length')::int, 0)
                         ELSE 0 END`;

/**
 * Lists webhooks day by day: each statement reads one partition by its primary key. The cost of a page is bounded for
 * any filter, so a page with a `next` may have fewer webhooks than `limit`, even none.
 */
export async function listWebhooks(pool: Pool, requested: WebhookFilter, page: Page): Promise<FoundWebhooks> {
  const filter = await withLocation(pool, requested);
  const webhooks: KeyedWebhook[] = [];
  if (filter === undefined) return { webhooks, next: undefined };
  let { after } = page;
  let left = SCAN;
  let stretchMs = STRETCH_MS;
  for (const day of await daysOf(pool, filter, page)) {
    let more = true;
    while (more) {
      const limit = page.limit - webhooks.length;
      const part = await listPart(pool, day, filter, { ...page, after, limit }, { left, stretchMs });
      if (part.lookedAt > left && stretchMs > 0) {
        if (left < SCAN) return { webhooks, next: after };
        stretchMs = Math.floor(stretchMs / STRETCHES);
        continue;
      }
      webhooks.push(...part.webhooks);
      if (part.webhooks.length === limit) return { webhooks, next: part.webhooks.at(-1) };
      if (part.lookedAt * STRETCHES < left) stretchMs = Math.min(DAY_MS, stretchMs * STRETCHES);
      left -= part.lookedAt;
      after = part.last ?? after;
      more = part.more;
      if (left <= 0) return { webhooks, next: after };
    }
  }
  return { webhooks, next: undefined };
}

/**
 * Adds the location of the order, because all its webhooks arrived there. @returns undefined if `locations` excludes
 * the order
 */
async function withLocation(pool: Pool, filter: WebhookFilter): Promise<WebhookFilter | undefined> {
  const { serviceOrderId, locations } = filter;
  if (serviceOrderId === undefined) return filter;
  const { rows } = await pool.query<{ locationId: string }>(
    `SELECT location_id AS "locationId" FROM orders
     WHERE service_order_id = $1 AND ($2::text[] IS NULL OR location_id = ANY ($2))`,
    [serviceOrderId, locations ?? null],
  );
  return rows[0] && { ...filter, locations: [rows[0].locationId] };
}

async function daysOf(pool: Pool, filter: WebhookFilter, { oldestFirst, after }: Page): Promise<string[]> {
  const { rows } = await pool.query<{ day: string }>(
    `SELECT (k.first + i)::text AS day
     FROM (SELECT greatest(min(day), ($1::timestamptz AT TIME ZONE 'UTC')::date, $3::date) AS first,
                  least(max(day), ($2::timestamptz AT TIME ZONE 'UTC')::date, $4::date) AS last
           FROM webhooks HAVING min(day) IS NOT NULL) AS k,
          generate_series(0, k.last - k.first) AS i
     ORDER BY i`,
    [
      filter.since ?? null,
      filter.until ?? null,
      oldestFirst ? (after?.day ?? null) : null,
      oldestFirst ? null : (after?.day ?? null),
    ],
  );
  const days = rows.map((row) => row.day);
  return oldestFirst ? days : days.toReversed();
}

type Part = {
  webhooks: KeyedWebhook[];
  /** Number of rows scanned. If it is over the limit, the span was too long and the part is discarded. */
  lookedAt: number;
  /** The last webhook scanned. */
  last: WebhookKey | null;
  /** True if the day has webhooks after `last`. */
  more: boolean;
};

/**
 * Lists a part of a day. For one location it ends at the limit. For several it is a time span from the next webhook on.
 * @param scan.left number of rows that may still be scanned
 */
async function listPart(
  pool: Pool,
  day: string,
  filter: WebhookFilter,
  { oldestFirst, after, limit }: Page,
  scan: { left: number; stretchMs: number },
): Promise<Part> {
  const [beyond, direction, back] = oldestFirst ? ['>', 'ASC', 'DESC'] : ['<', 'DESC', 'ASC'];
  const end = oldestFirst ? `least(ms + $11::bigint + 1, (1::bigint << 48) - 1)` : `greatest(ms - $11::bigint, 0)`;
  const isOfOne = filter.locations?.length === 1;
  const candidates = `
    d.day = $1::date AND d.location_id = at.location_id AND ($5::text IS DISTINCT FROM 'dropped' OR d.outcome = $5::text)
    AND ($9::text IS NULL OR d.id = ANY (ARRAY(
          SELECT e.webhook_id FROM status_events e WHERE e.service_order_id = $9::text AND e.webhook_id IS NOT NULL)))`;
  // The statement has no name, so Postgres plans it for its values, without the unused filters.
  const { rows } = await pool.query<Omit<Part, 'webhooks'> & (KeyedWebhook | { webhookId: null })>(
    `WITH RECURSIVE days AS (SELECT $1::date AS day), ${PLACES}, at AS MATERIALIZED (
       SELECT at.location_id, d.id AS next
       FROM (SELECT unnest($4::text[]) AS location_id
             UNION ALL SELECT location_id FROM place WHERE $4::text[] IS NULL AND location_id IS NOT NULL) AS at
       CROSS JOIN LATERAL (
         SELECT d.id FROM webhooks d WHERE ${candidates} AND ($2::uuid IS NULL OR d.id ${beyond} $2::uuid)
         ORDER BY d.id ${direction} LIMIT 1
       ) AS d
     ), stretch AS MATERIALIZED (
       SELECT (lpad(to_hex(${end}), 12, '0') || repeat('0', 20))::uuid AS "end"
       FROM (SELECT ('x' || left(replace(next::text, '-', ''), 12))::bit(48)::bigint AS ms
             FROM at ORDER BY next ${direction} LIMIT 1) AS first
     ), looked AS MATERIALIZED (
       SELECT d.*
       FROM at CROSS JOIN LATERAL (
         SELECT d.day, d.location_id, d.id, d.received_at, d.integration, d.outcome, d.events,
                ${BYTES_STORED} AS bytes, d.truncated, d.polled, d.reason, d.cause, d.replay_of,
                d.body = '' AND d.headers = '{}' AS empty, d.service_order_id
         FROM webhooks d
         WHERE ${candidates} AND NOT at.next ${beyond} d.id
           AND (cardinality($4::text[]) = 1 OR NOT d.id ${beyond} (SELECT stretch."end" FROM stretch))
         ORDER BY d.id ${direction} LIMIT $12::int
       ) AS d
       LIMIT $12::int
     ), last AS MATERIALIZED (
       SELECT location_id, id FROM looked ORDER BY id ${back} LIMIT 1
     )
     SELECT (SELECT count(*)::int FROM looked) AS "lookedAt",
            (SELECT json_build_object('day', $1::date, 'locationId', location_id, 'webhookId', id) FROM last) AS last,
            EXISTS (SELECT FROM at CROSS JOIN LATERAL (
                      SELECT FROM webhooks d WHERE ${candidates} AND d.id ${beyond} (SELECT id FROM last)
                      ORDER BY d.id ${direction} LIMIT 1) AS d) AS more,
            each.*
     FROM (SELECT) AS once
     LEFT JOIN LATERAL (
       SELECT d.day::text, d.location_id AS "locationId", d.id AS "webhookId", d.received_at AS "receivedAt",
              d.integration, d.outcome, d.events, d.bytes, d.truncated, d.polled, d.reason, d.cause, d.replay_of AS "replayOf",
              (SELECT r.outcome FROM webhooks r
               WHERE d.outcome = 'dropped' AND r.replay_of = coalesce(d.replay_of, d.id) AND r.day >= $1::date AND r.outcome <> 'dropped'
               ORDER BY r.received_at DESC LIMIT 1) AS replayed,
              ${ORDER_OF}
       FROM looked d
       WHERE ($5::text IS NULL OR d.outcome = $5::text)
         AND ($6::text IS NULL OR d.integration = $6::text)
         AND ($7::timestamptz IS NULL OR d.received_at >= $7::timestamptz)
         AND ($8::timestamptz IS NULL OR d.received_at < $8::timestamptz)
         AND ($10::text IS NULL OR d.replay_of IS NULL AND NOT d.truncated AND NOT d.empty)
         AND ($10::text IS DISTINCT FROM 'open' OR NOT EXISTS (
               SELECT FROM webhooks r
               WHERE r.replay_of = d.id AND r.day >= $1::date AND r.outcome NOT IN (d.outcome, 'dropped')))
         AND ($13::boolean IS NULL OR (d.cause ->> 'code' = 'old_token') IS TRUE = $13::boolean)
       ORDER BY d.id ${direction}
       LIMIT $3::int
     ) AS each ON true
     ORDER BY each."webhookId" ${direction}`,
    [
      day,
      after?.day === day ? after.webhookId : null,
      limit,
      filter.locations ?? null,
      // All webhooks refused for an old token are `dropped`, and an index contains the dropped ones.
      filter.outcome ?? (filter.oldToken === true ? 'dropped' : null),
      filter.integration ?? null,
      filter.since ?? null,
      filter.until ?? null,
      filter.serviceOrderId ?? null,
      filter.replayable ?? null,
      scan.stretchMs,
      // Reads one row more than `left` to see whether the span of time must be shorter. A span of 0 ms is read whole.
      isOfOne ? scan.left : scan.stretchMs > 0 ? scan.left + 1 : null,
      filter.oldToken ?? null,
    ],
  );
  const [{ lookedAt, last, more } = { lookedAt: 0, last: null, more: false }] = rows;
  const webhooks = rows.flatMap(({ lookedAt: _lookedAt, last: _last, more: _more, ...webhook }) =>
    webhook.webhookId === null ? [] : [webhook],
  );
  return { webhooks, lookedAt, last, more };
}
