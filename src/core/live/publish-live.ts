import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { toLiveMessage, type LiveMessage } from '../domain/live-message.ts';
import type { Log } from '../domain/log.ts';
import type { LiveMessageEnd, Observe } from '../domain/observed.ts';
import { newSpanId } from '../domain/trace-id.ts';
import { backoff, workLoop, type WorkLoop } from '../postgres/loops.ts';
import { outboxClaimer, rowsBy, type OutboxRow } from './claim-outbox.ts';

/**
 * Publishes a message, with `spanId` in its trace context. Resolves when the topic has acknowledged the message. The
 * result is the message's id, if the topic returns one.
 */
export type Publish = (message: LiveMessage, spanId: string) => Promise<string | undefined>;

/** Maximum number of messages under way. Each needs its own request, because a request has one ordering key. */
const UNDER_WAY = 200;
/**
 * Time from one claim to the next, so that a claim deletes and claims several rows. A statement for each message would
 * take more processor time than the message.
 */
const CLAIM_EVERY_MS = 15;
const POLL_MS = 1_000;
/** After this many failures in a row the topic counts as down. Then a failure causes a pause and is not logged. */
const DOWN_AFTER = 20;
const DOWN_WAIT_MS = 1_000;
const BACKOFF = { firstMs: 100, mostMs: 5_000, jitter: 0.5 };

/**
 * Publishes the outbox. A row is deleted after its message is published, so a crash in between repeats the message.
 * Messages of one order are published strictly one after the other: every process claims only an order's lowest
 * unpublished row, so if a message fails, no later message can overtake it.
 */
export function publishLive(deps: {
  pool: Pool;
  publish: Publish;
  log: Pick<Log, 'info' | 'error'>;
  observe: Observe;
}): WorkLoop {
  const claimOutbox = outboxClaimer();
  const putBack = rowReturner(deps.pool);
  /** Published rows that are not deleted yet. */
  let published: OutboxRow[] = [];
  let failuresInARow = 0;
  let claimedAt = -Infinity;
  let underWay = 0;
  let isStopping = false;

  const claim = async (): Promise<OutboxRow[]> => {
    const restMs = claimedAt + CLAIM_EVERY_MS - performance.now();
    if (restMs > 0) await sleep(restMs);
    claimedAt = performance.now();
    // Messages ended during the rest.
    const limit = isStopping ? 0 : UNDER_WAY - underWay;
    const gone = published;
    published = [];
    try {
      return await claimOutbox(deps.pool, gone, limit);
    } catch (error) {
      published.push(...gone);
      throw error;
    }
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
      await putBack(row);
      // Without this wait a backlog would take the CPU and the connections from all other work.
      if (failuresInARow >= DOWN_AFTER) await sleep(DOWN_WAIT_MS);
      return;
    }
    if (failuresInARow >= DOWN_AFTER) deps.log.info({}, 'the status topic is back');
    failuresInARow = 0;
    published.push(row);
  };

  const loop = workLoop({
    capacity: UNDER_WAY,
    pollMs: POLL_MS,
    claim,
    async work(row) {
      underWay += 1;
      await relay(row).catch((error: unknown) => {
        deps.log.error(
          { serviceOrderId: row.serviceOrderId, err: error },
          'outbox row failed; it will be retried when its lease ends',
        );
      });
      underWay -= 1;
    },
    log: deps.log,
    failing: 'the outbox could not be read',
  });
  return {
    ...loop,
    async stop() {
      isStopping = true;
      await loop.stop();
      // If this fails, another process publishes them once more.
      if (published.length > 0) await claim().catch(() => {});
    },
  };
}

/**
 * Makes a function that puts a row back for some time, in one UPDATE with all rows whose messages failed in the same turn
 * of the event loop. All of them wait as long as the one that failed most often.
 */
function rowReturner(pool: Pool): (row: OutboxRow) => Promise<void> {
  let failed: OutboxRow[] = [];
  let returning: Promise<void> | undefined;
  return (row) => {
    failed.push(row);
    returning ??= (async () => {
      await new Promise(setImmediate);
      returning = undefined;
      const rows = failed;
      failed = [];
      const failures = Math.max(...rows.map(({ attempts }) => attempts));
      await pool.query({
        name: 'put-back-outbox',
        text: `UPDATE outbox SET lease_until = now() + make_interval(secs => $3::float8)
               WHERE ctid = ANY (ARRAY(${rowsBy('$1', '$2')}))`,
        values: [
          rows.map(({ serviceOrderId }) => serviceOrderId),
          rows.map(({ sequence }) => sequence),
          backoff(failures, BACKOFF) / 1_000,
        ],
      });
    })();
    return returning;
  };
}
