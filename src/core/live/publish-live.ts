import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { toLiveMessage, type LiveMessage } from '../domain/live-message.ts';
import type { Log } from '../domain/log.ts';
import type { LiveMessageEnd, Observe } from '../domain/observed.ts';
import { newSpanId } from '../domain/trace-id.ts';
import { backoff, workLoop, type WorkLoop } from '../postgres/loops.ts';
import { lowestClaimer, type OutboxRow } from './claim-lowest.ts';

/**
 * Publishes a message, with `spanId` in its trace context. Resolves when the topic has acknowledged the message. The
 * result is the message's id, if the topic returns one. Messages of one order are published one after the other.
 */
export type Publish = (message: LiveMessage, spanId: string) => Promise<string | undefined>;

/** Maximum number of messages under way. Each needs its own request, because a request has one ordering key. */
const UNDER_WAY = 200;
const POLL_MS = 1_000;
/** After this many failures in a row the topic counts as down. Then a failure causes a pause and is not logged. */
const DOWN_AFTER = 20;
const DOWN_WAIT_MS = 1_000;
const BACKOFF = { firstMs: 100, mostMs: 5_000, jitter: 0.5 };

/**
 * Publishes the outbox. Messages of one order are published strictly one after the other: every process claims only an
 * order's lowest unpublished row, so if a message fails, no later message can overtake it. A row is deleted after its
 * message is published, so a crash in between repeats the message.
 */
export function publishLive(deps: {
  pool: Pool;
  publish: Publish;
  log: Pick<Log, 'info' | 'error'>;
  observe: Observe;
}): WorkLoop {
  const published: OutboxRow[] = [];
  let forgetting: Promise<void> | undefined;
  let failuresInARow = 0;
  const claimLowest = lowestClaimer();

  /** Deletes a published row, in one DELETE with all rows published in the same turn of the event loop. */
  const forget = (row: OutboxRow): Promise<void> => {
    published.push(row);
    forgetting ??= (async () => {
      await new Promise(setImmediate);
      forgetting = undefined;
      await deletePublished(deps.pool, published.splice(0));
    })();
    return forgetting;
  };

  const relay = async (row: OutboxRow): Promise<void> => {
    const about = { serviceOrderId: row.serviceOrderId, sequence: row.sequence };
    const began = performance.now();
    const spanId = newSpanId();
    const report = (end: LiveMessageEnd): void => {
      const milliseconds = performance.now() - began;
      const { locationId, appliedAt } = row;
      deps.observe({ what: 'live message', ...end, ...about, locationId, appliedAt, spanId, milliseconds });
    };
    try {
      // guard: forget-when-out
      const messageId = await deps.publish(toLiveMessage(row), spanId);
      report({ outcome: 'published', messageId });
    } catch (error) {
      report({ outcome: 'failed', error });
      failuresInARow += 1;
      if (failuresInARow < DOWN_AFTER) {
        deps.log.error({ ...about, err: error }, 'live message not published; it will be retried');
      } else if (failuresInARow === DOWN_AFTER) {
        deps.log.error({ err: error }, 'the status topic cannot be reached; live messages wait');
      }
      await putBack(deps.pool, row);
      // Without this wait a backlog would take the CPU and the connections from all other work.
      if (failuresInARow >= DOWN_AFTER) await sleep(DOWN_WAIT_MS);
      return undefined;
    }
    if (failuresInARow >= DOWN_AFTER) deps.log.info({}, 'the status topic is back');
    failuresInARow = 0;
    return forget(row);
  };

  return workLoop({
    capacity: UNDER_WAY,
    pollMs: POLL_MS,
    claim: (limit) => claimLowest(deps.pool, limit),
    work: (row) =>
      relay(row).catch((error: unknown) => {
        deps.log.error(
          { serviceOrderId: row.serviceOrderId, err: error },
          'outbox row failed; it will be retried when its lease ends',
        );
      }),
    log: deps.log,
    failing: 'the outbox could not be read',
  });
}

async function deletePublished(pool: Pool, rows: readonly OutboxRow[]): Promise<void> {
  await pool.query({
    name: 'forget-published',
    // If a row was claimed again meanwhile, it may remain, and its message is published once more.
    text: `
      WITH gone AS (
        DELETE FROM outbox
        WHERE ctid = ANY (ARRAY(
          SELECT known.ctid
          FROM unnest($1::text[], $2::int[]) AS p(service_order_id, sequence)
          CROSS JOIN LATERAL (
            SELECT o.ctid FROM outbox o WHERE o.service_order_id = p.service_order_id AND o.sequence = p.sequence
            OFFSET 0
          ) AS known))
        RETURNING service_order_id, sequence, rank, provider_order_id, applied_at, first_received_at
      )
      INSERT INTO live_messages (service_order_id, sequence, rank, provider_order_id, applied_at, first_received_at)
      SELECT service_order_id, sequence, rank, provider_order_id, applied_at, first_received_at FROM gone
      ORDER BY service_order_id, sequence
      ON CONFLICT DO NOTHING`,
    values: [rows.map((row) => row.serviceOrderId), rows.map((row) => row.sequence)],
  });
}

async function putBack(pool: Pool, row: OutboxRow): Promise<void> {
  await pool.query(
    `UPDATE outbox SET lease_until = now() + make_interval(secs => $3)
     WHERE service_order_id = $1 AND sequence = $2`,
    [row.serviceOrderId, row.sequence, backoff(row.attempts, BACKOFF) / 1000],
  );
}
