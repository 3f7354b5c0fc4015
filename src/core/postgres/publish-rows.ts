import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import type { Log } from '../domain/log.ts';
import type { BackgroundWorkName, Observe } from '../domain/observed.ts';
import { backoff, workLoop, type WorkLoop } from './loops.ts';
import { whenDue } from './when-due.ts';

const UNDER_WAY = 20;
/** It is longer than a call to a topic or a webhook, so that no other process publishes the same row meanwhile. */
const LEASE_S = 20;
const BACKOFF = { firstMs: 200, mostMs: 30_000, jitter: 0.5 };

/** A row to publish, with its key and its sequence. */
type Due = { row: never; key: string; sequence: string; failures: number; leaseId: string };

/**
 * Publishes rows that are their own outbox: those whose `sequence` is above `published_sequence`. Only the latest state of
 * a row is published, and one message of a row at a time, so their order holds. A message is recorded after it is
 * published, so a crash in between repeats it.
 * @param about.table a table with the columns `sequence`, `published_sequence`, `lease_id`, `lease_until` and `failures`
 * @param about.row SQL of a row's JSON, which `publish` gets. `k` is the claimed row
 * @param about.joins SQL of what else `row` reads
 * @param about.publish takes at most 15 s
 * @param about.work the name by which a failure is counted and an alert says that nobody takes the messages
 */
export function publishRows(about: {
  pool: Pool;
  table: string;
  key: string;
  row: string;
  joins?: string;
  publish: (row: never) => Promise<unknown>;
  work: BackgroundWorkName;
  observe: Observe;
  log: Pick<Log, 'error'>;
}): WorkLoop {
  const { pool, table, key, row, joins = '', publish, work, observe, log } = about;
  const claim = async (limit: number): Promise<Due[]> => {
    const { rows } = await pool.query<Due>({
      name: `claim ${table}`,
      text: `
        WITH due AS (
          SELECT ${key} FROM ${table}
          WHERE published_sequence < sequence AND (lease_until IS NULL OR lease_until < now())
          ORDER BY sequence LIMIT $1 FOR UPDATE SKIP LOCKED
        ), k AS (
          UPDATE ${table} SET lease_id = $2, lease_until = now() + make_interval(secs => ${LEASE_S})
          WHERE ${key} = ANY (ARRAY(SELECT ${key} FROM due))
          RETURNING *
        )
        SELECT ${row} AS row, k.${key} AS key, k.sequence, k.failures, k.lease_id AS "leaseId" FROM k ${joins}`,
      values: [limit, randomUUID()],
    });
    return rows;
  };
  const publishOne = async ({ row: latest, key: id, sequence, failures, leaseId }: Due): Promise<void> => {
    try {
      await publish(latest);
    } catch (error) {
      await pool.query(
        `UPDATE ${table} SET failures = failures + 1, lease_until = now() + make_interval(secs => $3)
         WHERE ${key} = $1 AND lease_id = $2`,
        [id, leaseId, backoff(failures, BACKOFF) / 1_000],
      );
      throw error;
    }
    await pool.query(
      `UPDATE ${table} SET published_sequence = $3, failures = 0, lease_until = NULL WHERE ${key} = $1 AND lease_id = $2`,
      [id, leaseId, sequence],
    );
  };
  return workLoop({
    capacity: UNDER_WAY,
    poll: () => whenDue(pool, `EXISTS (SELECT FROM ${table} WHERE published_sequence < sequence)`),
    claim,
    work: (due) =>
      publishOne(due).then(
        () => observe({ what: 'background work', work, outcome: 'done' }),
        (error: unknown) => observe({ what: 'background work', work, outcome: 'failed', error }),
      ),
    log,
    failing: `changes of ${table} could not be read`,
  });
}
