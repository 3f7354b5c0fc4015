import type { Pool } from 'pg';
import { PAUSED_AT } from '../kitchens/pause-location.ts';
import { nameParameters } from '../postgres/sql-rows.ts';
import { restAfter } from '../postgres/loops.ts';
import type { SilentLocation } from './circuit-breaker.ts';

/** The due placements of one location. One more queue has all due placements whose order was not fetched yet. */
type LocationQueue = {
  /** Empty for placements whose order was not fetched yet. */
  locationId: string;
  /** Null if it is unknown or not configured. */
  integration: string | null;
  /** When the oldest placement of the queue became due, or an earlier time if that is unknown. */
  since: Date | string;
  /** Number of placements that are past their deadline and not in doubt. */
  late: number;
  /** When the location's settings were last changed, by `performance.now()`. */
  settingsAt: number;
  paused: boolean;
};

/** The queues with due placements, as far as this process knows. */
export type DueLocations = {
  queues: ReadonlyMap<string, LocationQueue>;
  /**
   * Finds the queues with due placements by a query at intervals. Between two queries, it expects orders to fetch only
   * after a signal.
   * @param lost lease ids of claims whose response was lost
   */
  refresh(pool: Pool, lost: readonly string[]): Promise<void>;
  /** Makes the next `refresh` run its query. Called when a placement became due ahead of schedule. */
  expire(): void;
  /** Makes the next `refresh` expect an order to fetch. */
  signalled(): void;
  add(location: Pick<LocationQueue, 'locationId' | 'integration'>): void;
  /** Moves a queue behind all others. */
  moveBack(queue: LocationQueue): void;
  remove(queue: LocationQueue): void;
};

/** Pause after a query: a multiple of the query's duration within limits, because a deep backlog makes queries slow. */
const QUERY_PAUSE = { leastMs: 500, mostMs: 2_000, times: 20 };
/** Pause after a full query, which also finds placements due before `mark`: after late commits or clock changes. */
const FULL_QUERY_PAUSE = { leastMs: 60_000, mostMs: 600_000, times: 200 };
/** Maximum seconds between the statement that makes a placement due and its commit. */
const COMMIT_S = 10;

export function dueLocations(): DueLocations {
  const queues = new Map<string, LocationQueue>();
  let mark: Date | string = '-infinity';
  let nextQueryAt = -Infinity;
  let nextFullQueryAt = -Infinity;
  let isSignalled = false;

  const add = ({ locationId, integration }: Pick<LocationQueue, 'locationId' | 'integration'>): void => {
    if (queues.has(locationId)) return;
    queues.set(locationId, { locationId, integration, since: mark, late: 0, settingsAt: -Infinity, paused: false });
  };

  const queryDue = async (pool: Pool, from: Date | string, lost: readonly string[]): Promise<void> => {
    const began = performance.now();
    const { rows } = await pool.query<{ mark: Date; due: Found[] }>({
      name: 'find-due-locations',
      text: FIND_DUE,
      values: valuesOf({ from, lost }),
    });
    const found = rows[0];
    if (found === undefined) throw new Error('Postgres did not answer');
    mark = found.mark;
    const due = new Set(found.due.map(([locationId]) => locationId));
    for (const known of queues.keys()) if (!due.has(known)) queues.delete(known);
    for (const [locationId, since, late, integration, settingsAgeS, paused] of found.due) {
      const settingsAt = settingsAgeS === null ? -Infinity : began - settingsAgeS * 1_000;
      queues.set(locationId, { locationId, integration, since, late, settingsAt, paused });
    }
  };

  return {
    queues,
    expire() {
      nextQueryAt = -Infinity;
    },
    signalled() {
      isSignalled = true;
    },
    add,
    async refresh(pool, lost) {
      const began = performance.now();
      const mayFetch = isSignalled;
      isSignalled = false;
      if (began < nextQueryAt) {
        if (mayFetch) add({ locationId: '', integration: null });
        return;
      }
      const isFull = began >= nextFullQueryAt;
      try {
        // guard: due-start
        await queryDue(pool, isFull ? '-infinity' : mark, lost);
      } catch (error) {
        isSignalled ||= mayFetch;
        throw error;
      } finally {
        const ended = performance.now();
        nextQueryAt = ended + restAfter(ended - began, QUERY_PAUSE);
        if (isFull) nextFullQueryAt = ended + restAfter(ended - began, FULL_QUERY_PAUSE);
      }
    },
    moveBack(queue) {
      queues.delete(queue.locationId);
      queues.set(queue.locationId, queue);
    },
    remove: (queue) => void queues.delete(queue.locationId),
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

/** SQL that is true if no worker has the placement. @param lost the SQL parameter with the lost lease ids */
export const isFree = (lost: string): string =>
  `(lease_until IS NULL OR lease_until < now() OR lease_id = ANY (${lost}::uuid[]))`;

const { $, valuesOf } = nameParameters('from', 'lost');

/**
 * Finds the queues with due placements. The next query reads from `mark`, which is before every open due placement. So
 * that query does not read finished rows again, even if an old snapshot prevents vacuum from removing them. Without the
 * sort, Postgres might choose a plan that scans by location.
 */
const FIND_DUE = `
  WITH due AS MATERIALIZED (
    SELECT coalesce(location_id, '') AS queue, next_attempt_at, ${isFree($.lost)} AS free,
           deadline_at < now() AS late
    FROM placements
    WHERE finished_at IS NULL AND next_attempt_at >= ${$.from}::timestamptz AND next_attempt_at <= now()
    ORDER BY next_attempt_at
  )
  SELECT coalesce((SELECT min(next_attempt_at) FROM due), now()) - make_interval(secs => ${COMMIT_S}) AS mark,
         (SELECT coalesce(json_agg(json_build_array(
                   d.queue, d.since, d.late, l.integration, extract(epoch FROM now() - l.updated_at)::float8,
                   ${PAUSED_AT} IS NOT NULL) ORDER BY d.since), '[]')
          FROM (SELECT queue, min(next_attempt_at) AS since, count(*) FILTER (WHERE late) AS late
                FROM due WHERE free GROUP BY queue) AS d
          LEFT JOIN locations l ON l.location_id = d.queue) AS due`;

export type Capacity = {
  limit: number;
  /** Maximum number of placements under way at one location. */
  share: number;
  /** The locations of the placements that this process is sending, one entry per placement. */
  busy: readonly { locationId: string; integration: string | null }[];
  /** How many fetched placements may be claimed in total. */
  senders: number;
  /** Maximum number of placements under way at one integration. */
  sendersOfOne: number;
  /**
   * Integrations with an open circuit. Each location gets one placement at a time. The silent locations of an
   * integration share its probes. The location that was not tried for the longest time comes first.
   */
  open: readonly { integration: string; probes: number }[];
  /** Locations whose last call had no answer. Their integrations are in `open`. */
  silent: readonly SilentLocation[];
  /** How many placements at silent locations may be claimed in addition because they are past their deadline. */
  late: number;
  /** How many placements without a fetched order may be claimed: some of the oldest, and some of the newest. */
  oldest: number;
  newest: number;
};

/** Claim the queue's `take` oldest and `newest` newest placements. If `late`, only those past their deadline. */
export type Chosen = { queue: LocationQueue; take: number; newest: number; late: boolean };

/**
 * Chooses how many placements to claim from each queue. Locations take turns, each within its share. So a hanging POS
 * delays only its own orders, and a vendor that hangs at a hundred locations does not delay other vendors. Orders to
 * fetch have a separate share, so that a hanging platform does not delay fetched orders. Part of that share goes to the
 * newest placements, so that one location's backlog does not delay new orders of other locations.
 */
export function chooseQueues(queues: ReadonlyMap<string, LocationQueue>, capacity: Capacity): Chosen[] {
  const chosen = new Map<LocationQueue, Chosen>();
  const busyAt = countBy(capacity.busy.map((each) => each.locationId));
  const busyOf = countBy(capacity.busy.map((each) => each.integration));
  const isOpen = new Set<string | null>(capacity.open.map((each) => each.integration));
  const silent = silentQueues(queues, capacity.silent);
  let left = Math.min(capacity.limit, capacity.senders);
  const take = (queue: LocationQueue): void => {
    const already = chosen.get(queue);
    if (already === undefined) chosen.set(queue, { queue, take: 1, newest: 0, late: false });
    else already.take += 1;
    left -= 1;
  };

  for (const { integration, probes } of capacity.open) {
    if (probes === 0) continue;
    const untried = [...silent].filter(([queue]) => queue.integration === integration && !busyAt.has(queue.locationId));
    const longestFirst = untried.toSorted(([, a], [, b]) => b - a).map(([queue]) => queue);
    longestFirst.slice(0, Math.min(probes, left)).forEach(take);
  }
  /** Takes one placement if the location has fewer than `turn` under way. @returns false if its share is used up */
  const serve = (queue: LocationQueue, turn: number): boolean => {
    const { locationId, integration } = queue;
    if (locationId === '' || silent.has(queue)) return false;
    const share = isOpen.has(integration) ? 1 : capacity.share;
    const underWay = (busyAt.get(locationId) ?? 0) + (chosen.get(queue)?.take ?? 0);
    const ofIntegration = busyOf.get(integration) ?? 0;
    // guard: worker-share
    if (underWay >= share || ofIntegration >= capacity.sendersOfOne) return false;
    if (underWay < turn) {
      take(queue);
      busyOf.set(integration, ofIntegration + 1);
    }
    return true;
  };
  let open: Iterable<LocationQueue> = queues.values();
  // guard: worker-turns
  for (let turn = 1; turn <= capacity.share; turn += 1) {
    const next: LocationQueue[] = [];
    for (const queue of open) {
      if (left <= 0) break;
      if (serve(queue, turn)) next.push(queue);
    }
    open = next;
  }

  const late: Chosen[] = [];
  let lateLeft = Math.min(capacity.late, capacity.limit);
  for (const queue of silent.keys()) {
    if (queue.late === 0 || lateLeft <= 0) continue;
    late.push({ queue, take: Math.min(queue.late, lateLeft), newest: 0, late: true });
    lateLeft -= queue.late;
  }
  const unfetched = queues.get('');
  const fetches = unfetched !== undefined && capacity.oldest + capacity.newest > 0;
  return [
    ...chosen.values(),
    ...late,
    ...(fetches ? [{ queue: unfetched, take: capacity.oldest, newest: capacity.newest, late: false }] : []),
  ];
}

/**
 * Finds the queues of silent locations, with the seconds of their silence. Excludes locations whose settings or
 * integration changed after the unanswered call began. Excludes paused locations, because they would use up all probes.
 */
function silentQueues(
  queues: ReadonlyMap<string, LocationQueue>,
  silent: readonly SilentLocation[],
): Map<LocationQueue, number> {
  const now = performance.now();
  const found = new Map<LocationQueue, number>();
  for (const { locationId, integration, silentForS } of silent) {
    const queue = queues.get(locationId);
    if (queue === undefined || queue.integration !== integration || queue.paused) continue;
    if (queue.settingsAt < now - silentForS * 1_000) found.set(queue, silentForS);
  }
  return found;
}

function countBy<Key>(keys: readonly Key[]): Map<Key, number> {
  const counts = new Map<Key, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}
