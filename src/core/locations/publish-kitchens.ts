import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import type { Availability } from '../domain/availability.ts';
import type { Log } from '../domain/log.ts';
import { backoff, workLoop, type WorkLoop } from '../postgres/loops.ts';
import { AVAILABILITY } from './settle-kitchens.ts';

/** Publishes an availability. Resolves when the topic has acknowledged it. */
export type PublishAvailability = (availability: Availability) => Promise<unknown>;

const UNDER_WAY = 20;
const POLL_MS = 500;
/** It is longer than a call to the topic, so that no other process publishes the same kitchen meanwhile. */
const LEASE_S = 10;
const BACKOFF = { firstMs: 200, mostMs: 30_000, jitter: 0.5 };

type Due = { availability: Availability; failures: number; leaseId: string };

/**
 * Publishes the kitchens whose availability changed: only the latest state, and one message of a kitchen at a time. A
 * message is recorded after it is published, so a crash in between repeats it.
 */
export function publishKitchens({
  pool,
  publish,
  log,
}: {
  pool: Pool;
  publish: PublishAvailability;
  log: Pick<Log, 'error'>;
}): WorkLoop {
  return workLoop({
    capacity: UNDER_WAY,
    pollMs: POLL_MS,
    claim: (limit) => claimChanged(pool, limit),
    work: (due) =>
      publishOne(pool, publish, due).catch((error: unknown) => {
        log.error({ locationId: due.availability.locationId, err: error }, 'availability not published; it is retried');
      }),
    log,
    failing: 'changed kitchens could not be read',
  });
}

async function publishOne(pool: Pool, publish: PublishAvailability, due: Due): Promise<void> {
  const { availability, failures, leaseId } = due;
  const { locationId, sequence } = availability;
  try {
    await publish(availability);
  } catch (error) {
    await pool.query(
      `UPDATE kitchens SET failures = failures + 1, lease_until = now() + make_interval(secs => $3)
       WHERE location_id = $1 AND lease_id = $2`,
      [locationId, leaseId, backoff(failures, BACKOFF) / 1_000],
    );
    throw error;
  }
  await pool.query(
    `UPDATE kitchens SET published_sequence = $3, failures = 0, lease_until = NULL
     WHERE location_id = $1 AND lease_id = $2`,
    [locationId, leaseId, sequence],
  );
}

async function claimChanged(pool: Pool, limit: number): Promise<Due[]> {
  const { rows } = await pool.query<Due>({
    name: 'claim-changed-kitchens',
    text: `
      WITH due AS (
        SELECT location_id FROM kitchens
        WHERE published_sequence < sequence AND (lease_until IS NULL OR lease_until < now())
        ORDER BY sequence LIMIT $1 FOR UPDATE SKIP LOCKED
      ), k AS (
        UPDATE kitchens SET lease_id = $2, lease_until = now() + make_interval(secs => ${LEASE_S})
        WHERE location_id = ANY (ARRAY(SELECT location_id FROM due))
        RETURNING *
      )
      SELECT ${AVAILABILITY} AS availability, k.failures, k.lease_id AS "leaseId"
      FROM k JOIN locations l ON l.location_id = k.location_id
      ORDER BY k.sequence`,
    values: [limit, randomUUID()],
  });
  return rows;
}
