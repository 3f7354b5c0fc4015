import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { claimPlacements } from '../../../src/core/placements/claim-placements.ts';
import { dueLocations } from '../../../src/core/placements/due-locations.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { prepareBenchDatabase } from '../stage/prepare-bench-database.ts';
import { median } from './summarize.ts';

export type ClaimMeasurement = {
  /** The time of a claim with many locations whose orders are not due, against the time without these locations. */
  claimManyVsFew: number;
};

const DUE = 200;
const LOCATIONS = 50_000;
const ROOM = {
  limit: 2 * DUE,
  share: 4,
  busy: [],
  senders: DUE,
  sendersOfOne: DUE,
  open: [],
  silent: [],
  late: 0,
  oldest: 0,
  newest: 0,
};

/**
 * Measures how long a process that has just started takes to claim the due orders of DUE locations. Measures in turn
 * without other locations, and with LOCATIONS others, each of which has an open order that is not due.
 * @param postgres a running Postgres with fsync
 */
export async function measureClaims(
  postgres: { url: string },
  about: { rounds: number },
  say: (line: string) => void,
): Promise<ClaimMeasurement> {
  const [few, many] = [
    await prepare(postgres.url, 'bench_claims_few', 0),
    await prepare(postgres.url, 'bench_claims_many', LOCATIONS),
  ];
  try {
    const times = { few: [] as number[], many: [] as number[] };
    await claimAll(few);
    await claimAll(many);
    for (let nth = 0; nth < about.rounds; nth += 1) {
      times.few.push(await claimAll(few));
      times.many.push(await claimAll(many));
    }
    const [fewMs, manyMs] = [median(times.few), median(times.many)];
    say(`  ${DUE} due: ${fewMs.toFixed(1)} ms; with ${LOCATIONS} more that are not due: ${manyMs.toFixed(1)} ms`);
    return { claimManyVsFew: manyMs / fewMs };
  } finally {
    await Promise.all([few.end(), many.end()]);
  }
}

async function prepare(serverUrl: string, name: string, notDue: number): Promise<Pool> {
  const { databaseUrl } = await prepareBenchDatabase(serverUrl, { name, locations: DUE });
  const { pool, flushPool } = openDatabase(databaseUrl, 4, () => {});
  await flushPool.end();
  await pool.query(
    `INSERT INTO locations (location_id, integration, settings)
     SELECT 'other-' || nth, 'standard', '' FROM generate_series(1, $1::int) AS nth`,
    [notDue],
  );
  await pool.query(
    `INSERT INTO placements (service_order_id, location_id, deadline_at, next_attempt_at)
     SELECT 'due-' || nth, 'club-' || nth, now() + interval '1 h', now() FROM generate_series(1, ${DUE}) AS nth
     UNION ALL
     SELECT 'later-' || nth, 'other-' || nth, now() + interval '1 h', now() + interval '1 h'
     FROM generate_series(1, $1::int) AS nth`,
    [notDue],
  );
  await pool.query('VACUUM ANALYZE placements, locations');
  return pool;
}

/** @returns milliseconds */
async function claimAll(pool: Pool): Promise<number> {
  const began = performance.now();
  const claims = await claimPlacements(pool, dueLocations(), { leaseId: randomUUID(), lost: [], capacity: () => ROOM });
  const took = performance.now() - began;
  if (claims.length !== DUE) throw new Error(`${claims.length} of ${DUE} were claimed`);
  await pool.query(
    `UPDATE placements SET lease_id = NULL, lease_until = NULL, next_attempt_at = now() WHERE lease_id IS NOT NULL`,
  );
  await pool.query('VACUUM placements');
  return took;
}
