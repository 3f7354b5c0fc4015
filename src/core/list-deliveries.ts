import type { Pool } from 'pg';
import type { DeliveryOutcome } from './apply-deliveries.ts';

/** The primary key of a delivery; its id alone says only roughly when it came. */
export type DeliveryKey = { day: string; locationId: string; deliveryId: string };

export type DeliveryFilter = {
  outcome?: DeliveryOutcome | undefined;
  locationId?: string | undefined;
  integration?: string | undefined;
  /** Received then or later. */
  since?: Date | undefined;
  /** Received before. */
  until?: Date | undefined;
  /** Those that are in this order's history. */
  serviceOrderId?: string | undefined;
  /**
   * Webhooks themselves that are there in full, and of those either the ones that no replay has made anything else of (`open`),
   * or all.
   */
  replayable?: 'open' | 'all' | undefined;
};

/** What is known of a delivery without its contents. */
export type ListedDelivery = DeliveryKey & {
  receivedAt: Date;
  integration: string;
  outcome: DeliveryOutcome;
  /** How many the translator made of it. */
  events: number;
  /** Of its body. */
  bytes: number;
  truncated: boolean;
  /** Why it was dropped, or what else there is to say about its outcome. */
  reason: string | null;
  /** The webhook that it replays. */
  replayOf: string | null;
};

/** At most `limit` of them by their arrival, from behind one on that was listed before. */
type Page = { oldestFirst: boolean; after?: DeliveryKey | undefined; limit: number };

/**
 * SQL: the locations that have deliveries on each of `days`. It leaps from one to the next through the primary key,
 * where DISTINCT would read all of it.
 */
export const PLACES = `
  place AS (
    SELECT days.day, (SELECT d.location_id FROM deliveries d WHERE d.day = days.day
                      ORDER BY d.location_id LIMIT 1) AS location_id
    FROM days
    UNION ALL
    SELECT place.day, (SELECT d.location_id FROM deliveries d
                       WHERE d.day = place.day AND d.location_id > place.location_id
                       ORDER BY d.location_id LIMIT 1)
    FROM place WHERE place.location_id IS NOT NULL
  )`;

/** Lists deliveries, day by day: each statement reads one partition, and within it goes by the primary key. */
export async function listDeliveries(pool: Pool, asked: DeliveryFilter, page: Page): Promise<ListedDelivery[]> {
  const filter = await withLocation(pool, asked);
  if (filter === undefined) return [];
  const found: ListedDelivery[] = [];
  for (const day of await daysOf(pool, filter, page)) {
    found.push(...(await listDay(pool, day, filter, { ...page, limit: page.limit - found.length })));
    if (found.length === page.limit) break;
  }
  return found;
}

/** Nothing of another location is in an order's history. @returns undefined when there is no such order */
async function withLocation(pool: Pool, filter: DeliveryFilter): Promise<DeliveryFilter | undefined> {
  if (filter.serviceOrderId === undefined || filter.locationId !== undefined) return filter;
  const { rows } = await pool.query<{ locationId: string }>(
    'SELECT location_id AS "locationId" FROM orders WHERE service_order_id = $1',
    [filter.serviceOrderId],
  );
  return rows[0] && { ...filter, ...rows[0] };
}

async function daysOf(pool: Pool, filter: DeliveryFilter, { oldestFirst, after }: Page): Promise<string[]> {
  const { rows } = await pool.query<{ day: string }>(
    `SELECT (k.first + i)::text AS day
     FROM (SELECT greatest(min(day), ($1::timestamptz AT TIME ZONE 'UTC')::date, $3::date) AS first,
                  least(max(day), ($2::timestamptz AT TIME ZONE 'UTC')::date, $4::date) AS last
           FROM deliveries HAVING min(day) IS NOT NULL) AS k,
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

async function listDay(
  pool: Pool,
  day: string,
  filter: DeliveryFilter,
  { oldestFirst, after, limit }: Page,
): Promise<ListedDelivery[]> {
  const [beyond, direction] = oldestFirst ? ['>', 'ASC'] : ['<', 'DESC'];
  // Values are known when it is planned, so that what does not apply is not in the plan.
  const { rows } = await pool.query<ListedDelivery>(
    `WITH RECURSIVE days AS (SELECT $1::date AS day), ${PLACES}
     SELECT d.*
     FROM (SELECT $4::text AS location_id WHERE $4::text IS NOT NULL
           UNION ALL SELECT location_id FROM place WHERE $4::text IS NULL AND location_id IS NOT NULL) AS at,
     LATERAL (
       SELECT d.day::text, d.location_id AS "locationId", d.id AS "deliveryId", d.received_at AS "receivedAt",
              d.integration, d.outcome, d.events, octet_length(d.body) AS bytes, d.truncated, d.reason,
              d.replay_of AS "replayOf"
       FROM deliveries d
       WHERE d.day = $1::date AND d.location_id = at.location_id
         AND ($2::uuid IS NULL OR d.id ${beyond} $2::uuid)
         AND ($5::text IS NULL OR d.outcome = $5::text)
         AND ($6::text IS NULL OR d.integration = $6::text)
         AND ($7::timestamptz IS NULL OR d.received_at >= $7::timestamptz)
         AND ($8::timestamptz IS NULL OR d.received_at < $8::timestamptz)
         AND ($9::text IS NULL OR d.id IN (SELECT e.delivery_id FROM status_events e WHERE e.service_order_id = $9::text))
         AND ($10::text IS NULL OR d.replay_of IS NULL AND NOT d.truncated AND NOT (d.body = '' AND d.headers = '{}'))
         AND ($10::text IS DISTINCT FROM 'open' OR NOT EXISTS (
               SELECT FROM deliveries r
               WHERE r.replay_of = d.id AND r.day >= $1::date AND r.outcome NOT IN (d.outcome, 'dropped')))
       ORDER BY d.id ${direction}
       LIMIT $3::int
     ) AS d
     ORDER BY d."deliveryId" ${direction}
     LIMIT $3::int`,
    [
      day,
      after?.day === day ? after.deliveryId : null,
      limit,
      filter.locationId ?? null,
      filter.outcome ?? null,
      filter.integration ?? null,
      filter.since ?? null,
      filter.until ?? null,
      filter.serviceOrderId ?? null,
      filter.replayable ?? null,
    ],
  );
  return rows;
}
