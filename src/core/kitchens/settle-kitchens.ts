import type { Pool, PoolClient } from 'pg';
import { z } from 'zod';
import { Availability } from '../domain/availability.ts';
import type { Log } from '../domain/log.ts';
import type { Observe } from '../domain/observed.ts';
import { joinLoops, type WorkLoop } from '../postgres/loops.ts';
import { publishRows } from '../postgres/publish-rows.ts';
import { inBatch, inTransaction, LOCK_KITCHENS } from '../postgres/transactions.ts';
import { END_BUSY, OPERATOR_PAUSED_UNTIL, PAUSED_UNTIL, said, type Pause } from './pause-location.ts';

const FIELDS = `'locationId', l.location_id, 'integration', l.integration, 'state', coalesce(k.state, 'open'),
  'source', coalesce(k.source, 'inferred'), 'since', coalesce(k.since, l.created_at), 'until', k.until,
  'extraMinutes', k.extra_minutes, 'sequence', coalesce(k.sequence, 0)`;
/** SQL of a kitchen's availability, from a location `l` and its row `k` of `kitchens`, which may be missing. */
export const AVAILABILITY = `json_build_object(${FIELDS})`;

/** An availability for operators, with the operator who reported it. */
export const ShownAvailability = Availability.extend({
  by: z.string().nullable().meta({ description: 'The operator who said it. Null unless the source is `operator`.' }),
  reason: z.string().nullable().meta({ description: 'As the operator typed it.' }),
}).meta({ id: 'ShownAvailability' });
export type ShownAvailability = z.infer<typeof ShownAvailability>;

const saidOf = (what: 'by' | 'reason'): string => `CASE WHEN k.source <> 'operator' THEN NULL
  WHEN k.state = 'busy' THEN l.busy_${what} WHEN k.state = 'closed' THEN ${said(`paused_${what}`)} END`;
/** SQL of an availability for operators, from the same rows. */
export const SHOWN_AVAILABILITY = `json_build_object(${FIELDS}, 'by', ${saidOf('by')}, 'reason', ${saidOf('reason')})`;

type AvailabilityFilter = {
  /** Only these locations. Undefined selects all. */
  locations?: readonly string[] | undefined;
  integration?: string | undefined;
  state?: Availability['state'] | undefined;
};

type Page = { after?: string | undefined; limit: number };

/** Reads the availability of these locations, sorted by id. */
export async function readAvailability(pool: Pool, locations: readonly string[]): Promise<Availability[]> {
  return read<Availability>(pool, AVAILABILITY, { locations }, { limit: locations.length });
}

/** Reads availabilities for operators, sorted by location. @param page.after the last location of the previous page */
export async function showAvailability(
  pool: Pool,
  filter: AvailabilityFilter,
  page: Page,
): Promise<ShownAvailability[]> {
  return read<ShownAvailability>(pool, SHOWN_AVAILABILITY, filter, page);
}

async function read<Row>(
  pool: Pool,
  row: string,
  { locations, integration, state }: AvailabilityFilter,
  { after, limit }: Page,
): Promise<Row[]> {
  const { rows } = await pool.query<{ row: Row }>({
    text: `
      SELECT ${row} AS row
      FROM locations l LEFT JOIN kitchens k ON k.location_id = l.location_id
      WHERE ($1::text[] IS NULL OR l.location_id = ANY ($1)) AND ($2::text IS NULL OR l.integration = $2)
        AND ($3::text IS NULL OR coalesce(k.state, 'open') = $3) AND ($4::text IS NULL OR l.location_id > $4)
      ORDER BY l.location_id LIMIT $5`,
    values: [locations ?? null, integration ?? null, state ?? null, after ?? null, limit],
  });
  return rows.map((each) => each.row);
}

const CLOSED = `jsonb_build_object('locationId', k.location_id, 'integration', k.integration, 'state', 'closed', 'source', 'operator',
  'since', k.removed_at, 'until', NULL, 'extraMinutes', NULL, 'sequence', k.sequence)`;

/**
 * Publishes the kitchens whose availability changed, and those whose location was removed.
 * @param publish resolves when the topic has acknowledged it
 */
export function publishKitchens(about: {
  pool: Pool;
  publish: (availability: Availability) => Promise<unknown>;
  observe: Observe;
  log: Pick<Log, 'error'>;
}): WorkLoop {
  const of = { ...about, key: 'location_id', work: 'publishing of availability' } as const;
  const joins = 'JOIN locations l ON l.location_id = k.location_id';
  return joinLoops([
    publishRows({ ...of, table: 'kitchens', row: AVAILABILITY, joins }),
    publishRows({ ...of, table: 'removed_kitchens', row: CLOSED }),
  ]);
}

const NOW_MS = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/** Lets the platform be told that the kitchen of a location that is removed is closed. */
export async function closeForever(client: PoolClient, locationId: string): Promise<void> {
  // Nothing may be published after it with a lower number.
  await client.query('SELECT FROM kitchens WHERE location_id = $1 FOR UPDATE', [locationId]);
  await client.query("DELETE FROM removed_kitchens WHERE removed_at < now() - interval '30 d'");
  await client.query(
    `INSERT INTO removed_kitchens (location_id, integration, sequence)
     SELECT l.location_id, l.integration, greatest(k.sequence + 1, ${NOW_MS})
     FROM locations l LEFT JOIN kitchens k ON k.location_id = l.location_id WHERE l.location_id = $1
     -- The previous version does not call \`openAgain\`.
     ON CONFLICT (location_id) DO UPDATE SET integration = excluded.integration, removed_at = excluded.removed_at,
       sequence = greatest(removed_kitchens.sequence + 1, excluded.sequence)`,
    [locationId],
  );
}

/** Lets the platform be told that the kitchen of a new location is open, if one with the same id was removed. */
export async function openAgain(client: PoolClient, locationId: string): Promise<void> {
  await client.query(
    `WITH removed AS (DELETE FROM removed_kitchens WHERE location_id = $1 RETURNING sequence)
     INSERT INTO kitchens (location_id, since, sequence) SELECT $1, now(), greatest(sequence + 1, ${NOW_MS}) FROM removed`,
    [locationId],
  );
}

/** An operator's report of a busy kitchen, which ends like a pause. */
export type Busy = Pause & { extraMinutes: number; by: string };

type Deps = { pool: Pool; observe: Observe };

/** Makes a kitchen busy. This replaces what was said before. @returns undefined if there is no such location */
export async function makeBusy(deps: Deps, locationId: string, busy: Busy): Promise<ShownAvailability | undefined> {
  const { extraMinutes, by, reason = null, until = null, minutes = null } = busy;
  await deps.pool.query(
    `UPDATE locations
     SET busy_until = coalesce($3::timestamptz, now() + $4::int * interval '1 minute', 'infinity'), busy_minutes = $2,
         busy_by = $5, busy_reason = $6
     WHERE location_id = $1`,
    [locationId, extraMinutes, until, minutes, by, reason],
  );
  return settleKitchen(deps, locationId);
}

/** Ends what an operator or its POS said about a busy kitchen. @returns undefined if there is no such location */
export async function endBusy(deps: Deps, locationId: string): Promise<ShownAvailability | undefined> {
  await deps.pool.query(`UPDATE locations l SET ${END_BUSY} WHERE location_id = $1`, [locationId]);
  return settleKitchen(deps, locationId);
}

/** Writes the availability of a kitchen at once, so that an operator who changed it reads the change. */
export async function settleKitchen(
  { pool, observe }: Deps,
  locationId: string,
): Promise<ShownAvailability | undefined> {
  const changed = await inTransaction(pool, async (client) => {
    // A round that began before may not write what it read before.
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK_KITCHENS]);
    return settle(client, locationId);
  });
  for (const each of changed) observe({ what: 'kitchen', ...each });
  return (await showAvailability(pool, { locations: [locationId] }, { limit: 1 }))[0];
}

export type Settled = Pick<Availability, 'locationId' | 'state' | 'source' | 'extraMinutes'> & { until: Date | null };

/** Writes the availability of all kitchens that changed. Only one process does it at a time. */
export async function settleKitchens(pool: Pool): Promise<Settled[]> {
  return (await inBatch(pool, LOCK_KITCHENS, (client) => settle(client))) ?? [];
}

async function settle(client: PoolClient, only?: string): Promise<Settled[]> {
  const { rows } = await client.query<Settled>({ name: 'settle-kitchens', text: SETTLE, values: [only ?? null] });
  return rows;
}

const OF_OPERATOR = `l.paused_at IS NOT NULL AND (${OPERATOR_PAUSED_UNTIL} <= now()) IS NOT TRUE`;

/** SQL of the kitchens that may have changed. */
const PLACES = (and: 'UNION' | 'UNION ALL'): string => `
    SELECT location_id FROM locations WHERE paused_at IS NOT NULL OR pos_paused_at IS NOT NULL
    ${and} SELECT location_id FROM locations WHERE pos_busy_until > now()
    ${and} SELECT location_id FROM locations WHERE busy_until > now()
    -- Nothing changes at a kitchen that stays unreachable. In an outage there are many.
    ${and} SELECT location_id FROM kitchens WHERE (state <> 'open' OR unreachable_since IS NOT NULL)
                                             AND (state <> 'unreachable' OR unreachable_since IS NULL)`;
/** SQL that is true if `settleKitchens` may find a change. */
export const MAY_CHANGE = `EXISTS (${PLACES('UNION ALL')})`;

/**
 * The first fact that holds counts. An operator's word is stronger than that of the POS. A kitchen that opens again has
 * the source of the fact that ended.
 */
export const SETTLE = `
  WITH place AS (${PLACES('UNION')})
  INSERT INTO kitchens AS k (location_id, state, source, since, until, extra_minutes, sequence)
  SELECT l.location_id, said.state, said.source, said.since, said.until, said.extra_minutes, now_ms
  FROM place
  CROSS JOIN LATERAL (SELECT * FROM locations WHERE location_id = place.location_id OFFSET 0) AS l
  LEFT JOIN LATERAL (SELECT * FROM kitchens WHERE location_id = place.location_id OFFSET 0) AS k ON true
  CROSS JOIN LATERAL (SELECT ${NOW_MS} AS now_ms) AS clock
  CROSS JOIN LATERAL (
    SELECT * FROM (VALUES
      (1, 'closed', 'operator', l.paused_at, ${PAUSED_UNTIL}, NULL::int, ${OF_OPERATOR}),
      (2, 'closed', 'pos', l.pos_paused_at, l.pos_paused_until, NULL, l.pos_paused_until > now()),
      (3, 'unreachable', 'inferred', k.unreachable_since, NULL, NULL, k.unreachable_since IS NOT NULL),
      (4, 'busy', 'operator', now(), nullif(l.busy_until, 'infinity'), l.busy_minutes, l.busy_until > now()),
      (5, 'busy', 'pos', now(), l.pos_busy_until, l.pos_busy_minutes, l.pos_busy_until > now()),
      (6, 'open', k.source, now(), NULL, NULL, k.state <> 'open')
    ) AS fact (nth, state, source, since, until, extra_minutes, holds)
    WHERE holds ORDER BY nth LIMIT 1
  ) AS said
  WHERE ($1::text IS NULL OR l.location_id = $1)
    -- ON CONFLICT would lock each row, also if nothing changed.
    AND (k.location_id IS NULL OR (k.state, k.source, k.until, k.extra_minutes)
                                  IS DISTINCT FROM (said.state, said.source, said.until, said.extra_minutes))
  ORDER BY l.location_id
  ON CONFLICT (location_id) DO UPDATE
  SET state = excluded.state, source = excluded.source, until = excluded.until, extra_minutes = excluded.extra_minutes,
      since = CASE WHEN k.state = excluded.state THEN k.since ELSE excluded.since END,
      sequence = greatest(k.sequence + 1, excluded.sequence)
  WHERE (k.state, k.source, k.until, k.extra_minutes)
        IS DISTINCT FROM (excluded.state, excluded.source, excluded.until, excluded.extra_minutes)
  RETURNING location_id AS "locationId", state, source, until, extra_minutes AS "extraMinutes"`;
