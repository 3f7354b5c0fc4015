import type { Pool } from 'pg';
import type { Now } from '../postgres/database-clock.ts';

/** Bytes that a process takes from the quota at once, so that most webhooks need no query. */
const LEASE = 256 * 1024;
/** Bytes that may be used after the quota is used up. Then only the beginning of a body is stored. */
const BEYOND = 1024 * 1024;

/** The part of a webhook's body that is stored. `nothing` stores no row and only counts the webhook. */
export type Fits = 'whole' | 'beginning' | 'nothing';

export type DropQuota = {
  /**
   * Charges a webhook to its location's quota of the day.
   * @param bytes the cost of storing the webhook with its whole body, and with only the beginning of the body
   * @throws if Postgres cannot be queried
   */
  take(locationId: string, bytes: { whole: number; beginning: number }): Promise<Fits>;
  /** Writes how many webhooks were not stored. If that fails, the counts stay in memory, and a kill loses them. */
  write(): Promise<void>;
};

/** Dropped webhooks and webhooks refused for an old token have separate quotas. */
type Table = 'dropped_bytes' | 'refused_bytes';

/** Pause after a refused lease. A later one may succeed: a location that is removed and added again has a new quota. */
const SPENT_MS = 60_000;

/** Bytes that this process has leased and not used, and when a lease was last refused. */
type Part = { left: number; spentAt: number };
type Day = { date: string; quota: Part; beyond: Part; asking: Promise<void> | undefined; isReported: boolean };

/**
 * Limits the bytes that webhooks from unproven senders may use, for each location and day (UTC), over all processes.
 * Anyone with a location's token can send such webhooks, and a full disk would stop all locations.
 * @param about.table the table that counts the bytes
 * @param about.bytes a day's quota
 * @param about.onSpent called when the first webhook is not stored, once for each day, location and process
 */
export function dropQuota(
  pool: Pool,
  about: { table: Table; bytes: number; now: Now; onSpent: (locationId: string) => void },
): DropQuota {
  const days = new Map<string, Day>();
  let notStored: NotStored = new Map();

  const dayOf = (locationId: string): Day => {
    const date = about.now().toISOString().slice(0, 10);
    let day = days.get(locationId);
    if (day?.date !== date) {
      day = { date, quota: newPart(), beyond: newPart(), asking: undefined, isReported: false };
      days.set(locationId, day);
    }
    return day;
  };

  /** Sends one query at a time for each location. Otherwise, in a flood, all connections would wait for one row. */
  const isTaken = async (
    locationId: string,
    day: Day,
    part: Part,
    need: { bytes: number; lease: number; limit: number },
  ): Promise<boolean> => {
    while (part.left < need.bytes && about.now().getTime() - part.spentAt >= SPENT_MS) {
      const bytes = Math.max(need.bytes, need.lease);
      day.asking ??= lease(pool, about.table, { locationId, date: day.date, bytes, limit: need.limit })
        .then((isGranted) => {
          if (isGranted) part.left += bytes;
          else part.spentAt = about.now().getTime();
        })
        .finally(() => {
          day.asking = undefined;
        });
      await day.asking;
    }
    if (part.left < need.bytes) return false;
    part.left -= need.bytes;
    return true;
  };

  return {
    async take(locationId, { whole, beginning }) {
      const day = dayOf(locationId);
      const quota = { bytes: whole, lease: LEASE, limit: about.bytes };
      if (await isTaken(locationId, day, day.quota, quota)) return 'whole';
      const beyond = { bytes: beginning, lease: 0, limit: about.bytes + BEYOND };
      if (await isTaken(locationId, day, day.beyond, beyond)) return whole === beginning ? 'whole' : 'beginning';
      if (!day.isReported) about.onSpent(locationId);
      day.isReported = true;
      count(notStored, { locationId, date: day.date, webhooks: 1 });
      return 'nothing';
    },
    async write() {
      if (notStored.size === 0) return;
      const taken = notStored;
      notStored = new Map();
      try {
        const counts = [...taken.values()];
        await pool.query(countIn(about.table), [
          counts.map((each) => each.locationId),
          counts.map((each) => each.date),
          counts.map((each) => each.webhooks),
        ]);
      } catch (error) {
        for (const each of taken.values()) count(notStored, each);
        throw error;
      }
    },
  };
}

const newPart = (): Part => ({ left: 0, spentAt: -Infinity });

type Counted = { locationId: string; date: string; webhooks: number };
type NotStored = Map<string, Counted>;

function count(notStored: NotStored, { locationId, date, webhooks }: Counted): void {
  const key = `${date} ${locationId}`;
  notStored.set(key, { locationId, date, webhooks: webhooks + (notStored.get(key)?.webhooks ?? 0) });
}

/** Takes bytes from the location's quota. @returns false if that would exceed the limit */
async function lease(
  pool: Pool,
  table: Table,
  about: { locationId: string; date: string; bytes: number; limit: number },
): Promise<boolean> {
  const { rowCount } = await pool.query({
    name: `lease-${table}`,
    text: `INSERT INTO ${table} AS d (location_id, day, bytes)
           SELECT location_id, $2::date, $3::bigint FROM locations -- the location may be removed by now
           WHERE location_id = $1 AND $3::bigint <= $4::bigint
           ON CONFLICT (location_id) DO UPDATE
           SET day = greatest(d.day, excluded.day),
               bytes = excluded.bytes + CASE WHEN d.day < excluded.day THEN 0 ELSE d.bytes END,
               not_stored = CASE WHEN d.day < excluded.day THEN 0 ELSE d.not_stored END
           -- guard: quota-of-all
           WHERE d.day < excluded.day OR d.bytes + excluded.bytes <= $4::bigint`,
    values: [about.locationId, about.date, about.bytes, about.limit],
  });
  return rowCount === 1;
}

/** Locks rows in key order, so that two processes cannot deadlock. Counts of past days are discarded. */
const countIn = (table: Table): string => `
  UPDATE ${table} d SET not_stored = d.not_stored + n.webhooks
  FROM (SELECT d.location_id, n.webhooks
        FROM unnest($1::text[], $2::date[], $3::bigint[]) AS n(location_id, day, webhooks)
        JOIN ${table} d USING (location_id, day)
        ORDER BY d.location_id FOR NO KEY UPDATE OF d) AS n
  WHERE d.location_id = n.location_id`;
