import type { Pool } from 'pg';
import { PAUSED_AT } from '../locations/locations.ts';
import { nameParameters } from '../postgres/sql-rows.ts';
import { restAfter } from '../postgres/loops.ts';

/** The due placements of one location, or those not fetched yet, whose location is unknown. */
export type Lane = {
  /** Empty for those not fetched yet. */
  locationId: string;
  /** Null if it is unknown or not configured. */
  integration: string | null;
  /** When the oldest of them was due. */
  since: Date | string;
  /** How many are past their deadline and not in doubt. */
  late: number;
  /** When the location's settings were put, by `performance.now()`. */
  settingsAt: number;
  paused: boolean;
};

/** The lanes in which something is due, as far as this process knows. */
export type DueLanes = {
  lanes: ReadonlyMap<string, Lane>;
  /**
   * Looks what is due, now and then. In between, placements that were not fetched yet may always have come.
   * @param lost lease ids of claims whose answer was lost
   */
  refresh(pool: Pool, lost: readonly string[]): Promise<void>;
  /** Has the next refresh look: something became due out of turn. */
  expire(): void;
  add(location: Pick<Lane, 'locationId' | 'integration'>): void;
  /** Moves a lane behind all others. */
  moveBack(lane: Lane): void;
  remove(lane: Lane): void;
};

/** The shortest and the longest rest after a look, and the rest in times of its duration: a deep backlog takes long. */
const LOOK_REST = { leastMs: 500, mostMs: 2_000, times: 20 };
/** The same after a look from the very beginning, for what a commit or a clock brought in below the mark. */
const EVERYTHING_REST = { leastMs: 60_000, mostMs: 600_000, times: 200 };
/** For how long a statement that makes a placement due may take to commit. */
const COMMIT_S = 10;

/** Starts without knowing any lane. */
export function dueLanes(): DueLanes {
  const lanes = new Map<string, Lane>();
  let mark: Date | string = '-infinity';
  let lookAt = -Infinity;
  let everythingAt = -Infinity;

  const add = ({ locationId, integration }: Pick<Lane, 'locationId' | 'integration'>): void => {
    if (lanes.has(locationId)) return;
    lanes.set(locationId, { locationId, integration, since: mark, late: 0, settingsAt: -Infinity, paused: false });
  };

  const look = async (pool: Pool, from: Date | string, lost: readonly string[]): Promise<void> => {
    const began = performance.now();
    const { rows } = await pool.query<{ mark: Date; due: Found[] }>({
      name: 'look-for-due',
      text: LOOK,
      values: valuesOf({ from, lost }),
    });
    const found = rows[0];
    if (found === undefined) throw new Error('Postgres did not answer');
    mark = found.mark;
    const due = new Set(found.due.map(([locationId]) => locationId));
    for (const known of lanes.keys()) if (!due.has(known)) lanes.delete(known);
    for (const [locationId, since, late, integration, settingsAgeS, paused] of found.due) {
      const settingsAt = settingsAgeS === null ? -Infinity : began - settingsAgeS * 1_000;
      lanes.set(locationId, { locationId, integration, since, late, settingsAt, paused });
    }
  };

  return {
    lanes,
    expire() {
      lookAt = -Infinity;
    },
    add,
    async refresh(pool, lost) {
      const began = performance.now();
      if (began < lookAt) return add({ locationId: '', integration: null });
      const isEverything = began >= everythingAt;
      try {
        // guard: due-start
        await look(pool, isEverything ? '-infinity' : mark, lost);
      } finally {
        const ended = performance.now();
        lookAt = ended + restAfter(ended - began, LOOK_REST);
        if (isEverything) everythingAt = ended + restAfter(ended - began, EVERYTHING_REST);
      }
    },
    moveBack(lane) {
      lanes.delete(lane.locationId);
      lanes.set(lane.locationId, lane);
    },
    remove: (lane) => void lanes.delete(lane.locationId),
  };
}

type Found = [
  locationId: string,
  since: string,
  late: number,
  integration: string | null,
  settingsAgeS: number | null,
  paused: boolean,
];

/** SQL that is true of a placement that nobody works on. @param lost the parameter with lost lease ids */
export const isFree = (lost: string): string =>
  `(lease_until IS NULL OR lease_until < now() OR lease_id = ANY (${lost}::uuid[]))`;

const { $, valuesOf } = nameParameters('from', 'lost');

/**
 * The mark lies below every open placement that was due, those of other workers included: what has been finished is not
 * read again, not even where an old snapshot keeps its rows. Sorted, so that no plan goes by location.
 */
const LOOK = `
  WITH due AS MATERIALIZED (
    SELECT coalesce(location_id, '') AS lane, next_attempt_at, ${isFree($.lost)} AS free,
           deadline_at < now() AND state <> 'in_doubt' AS late
    FROM placements
    WHERE finished_at IS NULL AND next_attempt_at >= ${$.from}::timestamptz AND next_attempt_at <= now()
    ORDER BY next_attempt_at
  )
  SELECT coalesce((SELECT min(next_attempt_at) FROM due), now()) - make_interval(secs => ${COMMIT_S}) AS mark,
         (SELECT coalesce(json_agg(json_build_array(
                   d.lane, d.since, d.late, l.integration, extract(epoch FROM now() - l.updated_at)::float8,
                   ${PAUSED_AT} IS NOT NULL) ORDER BY d.since), '[]')
          FROM (SELECT lane, min(next_attempt_at) AS since, count(*) FILTER (WHERE late) AS late
                FROM due WHERE free GROUP BY lane) AS d
          LEFT JOIN locations l ON l.location_id = d.lane) AS due`;
