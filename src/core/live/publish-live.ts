import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { toLiveMessage, type LiveMessage, type Way } from '../domain/live-message.ts';
import type { Log } from '../domain/log.ts';
import type { LiveMessageEnd, Observe } from '../domain/observed.ts';
import { newSpanId } from '../domain/trace-id.ts';
import { NotSent } from '../egress/post-signed.ts';
import { backoff, workLoop, type InTurn, type WorkLoop } from '../postgres/loops.ts';
import { whenDue } from '../postgres/when-due.ts';
import { isRowOf, outboxClaimer, WAYS, type OutboxRow } from './claim-outbox.ts';
import type { StatusEndpoint } from './status-endpoint.ts';

/**
 * Publishes a message, with `spanId` in its trace context. Resolves when the topic has acknowledged the message, or the
 * receiver has answered 2xx. The result is the message's id, if the topic returns one.
 */
export type Publish = (message: LiveMessage, spanId: string) => Promise<string | undefined>;

/** Maximum number of messages under way. Each needs its own request, because a request has one ordering key. */
const UNDER_WAY = 200;
/**
 * One claim deletes and claims several rows: a statement for each message would take more processor time than the message.
 * A message that is out may wait longer for its deletion than a new one for its claim. But not long: only its process can
 * send the order's next one meanwhile.
 */
const GATHER = { everyMs: 15, doneMs: 50 };
/** SQL of whether there may be a message of another process, or one that is tried again. */
export const MESSAGES_WAIT = 'EXISTS (SELECT FROM outbox)';
/** The longest wait that a receiver may ask for. */
const RETRY_AFTER_MOST_MS = 5 * 60_000;
/** After this many failures in a row a way counts as down. Then it gets one message at a time, and failures are not logged. */
const DOWN_AFTER = 20;
/** A message under way for so long counts as slow. It then holds one of the slow places, and makes room for another. */
const SLOW_MS = 1_000;

/** A slow message holds up the stop for this long. Another process sends it again, with the same id. */
const SLOW_STOP_MS = 2_000;

/**
 * `slow`: places for slow messages. `again`: the wait of a message that failed. `down`: the rest between two messages while
 * the way is down.
 */
const TIMING = {
  topic: {
    again: { firstMs: 100, mostMs: 5_000, jitter: 0.5 },
    down: { firstMs: 1_000, mostMs: 1_000, jitter: 0 },
    slow: 0,
    name: 'the status topic',
  },
  webhook: {
    again: { firstMs: 500, mostMs: 60_000, jitter: 0.5 },
    down: { firstMs: 1_000, mostMs: 30_000, jitter: 0.5 },
    slow: 1_000,
    name: 'STATUS_WEBHOOK_URL',
  },
} as const;

/**
 * Publishes the outbox. A row is deleted after its message is published, so a crash in between repeats the message.
 * Messages of one order are published strictly one after the other: every process claims only an order's lowest
 * unpublished row, so if a message fails, no later message can overtake it.
 */
export function publishLive(deps: {
  pool: Pool;
  way: Way;
  /** True if no other way takes the messages too. */
  isOnly: boolean;
  publish: Publish;
  /**
   * Runs claims of the process's ways one after the other. A way skips rows that another one's claim has locked, and would
   * find them only by its next poll.
   */
  inTurn?: InTurn;
  /** The health of the webhook's receiver. */
  endpoint?: StatusEndpoint;
  log: Pick<Log, 'info' | 'error'>;
  observe: Observe;
}): WorkLoop {
  const { way, endpoint, inTurn = (work) => work() } = deps;
  const timing = TIMING[way];
  const claimOutbox = outboxClaimer({ way, isOnly: deps.isOnly, endpoint: endpoint?.key });
  const putBack = rowReturner(deps.pool, way);
  /** Published rows that are not taken out of the outbox yet. */
  let published: OutboxRow[] = [];
  let failuresInARow = 0;
  const isDown = (): boolean => failuresInARow >= DOWN_AFTER;
  /** While the way is down, nothing is claimed before this time. Each rest is longer than the one before. */
  let restUntil = -Infinity;
  let rests = 0;
  const places = placesWithSlow(timing.slow, isDown);
  let isStopping = false;

  const claim = async (): Promise<OutboxRow[]> => {
    // What is down must not cost more the more messages wait.
    // guard: one-while-down
    const most = isDown() ? 1 : UNDER_WAY;
    const isWaiting = isStopping || performance.now() < restUntil;
    const limit = isWaiting ? 0 : Math.max(0, most - places.taken());
    if (limit === 0 && published.length === 0) return [];
    const gone = published;
    published = [];
    try {
      // guard: claims-in-turn
      return await inTurn(() => claimOutbox(deps.pool, gone, limit, isDown()));
    } catch (error) {
      published.push(...gone);
      throw error;
    }
  };

  const relay = async (row: OutboxRow): Promise<void> => {
    const about = { serviceOrderId: row.serviceOrderId, sequence: row.sequence, way };
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
        const again = error instanceof NotSent && error.isFinal ? '' : '; it will be retried';
        deps.log.error({ ...about, err: error }, `live message not published${again}`);
      } else if (failuresInARow === DOWN_AFTER) {
        deps.log.error({ err: error }, `${timing.name} takes no messages; they wait`);
      }
      await putBack(row, error instanceof NotSent ? error.retryAfterMs : undefined);
      await endpoint?.failed(error).catch(() => {});
      // Without a rest a backlog would take the CPU and the connections from all other work. What fails together rests once.
      if (isDown() && performance.now() >= restUntil) {
        restUntil = performance.now() + backoff(rests, timing.down);
        rests += 1;
      }
      return;
    }
    if (isDown()) deps.log.info({}, `${timing.name} takes messages again`);
    failuresInARow = rests = 0;
    restUntil = -Infinity;
    published.push(row);
    await endpoint?.took().catch(() => {});
  };

  const relayInPlace = (row: OutboxRow): Promise<void> =>
    places.take(() =>
      relay(row).catch((error: unknown) => {
        deps.log.error(
          { serviceOrderId: row.serviceOrderId, err: error },
          'outbox row failed; it will be retried when its lease ends',
        );
      }),
    );

  const loop = workLoop({
    capacity: UNDER_WAY,
    gather: GATHER,
    poll: () => whenDue(deps.pool, MESSAGES_WAIT),
    claim,
    work: relayInPlace,
    log: deps.log,
    failing: 'the outbox could not be read',
  });
  return {
    ...loop,
    async stop() {
      isStopping = true;
      await loop.stop();
      await Promise.race([places.slowDone(), sleep(SLOW_STOP_MS, undefined, { ref: false })]);
      // If this fails, another process publishes them once more.
      if (published.length > 0) await claim().catch(() => {});
    },
  };
}

/** Counts the messages under way. A slow one moves to one of `most` slow places, and makes room, except while the way is down. */
function placesWithSlow(most: number, isDown: () => boolean) {
  let taken = 0;
  const slow = new Set<Promise<void>>();
  return {
    taken: () => taken,
    slowDone: () => Promise.all(slow),
    /** Resolves when the work is done, or is slow. */
    take(work: () => Promise<void>): Promise<void> {
      taken += 1;
      const room = Promise.withResolvers<void>();
      const makeRoom = (): void => {
        if (isDown() || slow.size >= most || slow.has(done)) return;
        slow.add(done);
        taken -= 1;
        room.resolve();
      };
      // guard: slow-makes-room
      const timer = most > 0 ? setInterval(makeRoom, SLOW_MS) : undefined;
      const done = work().finally(() => {
        clearInterval(timer);
        if (!slow.delete(done)) taken -= 1;
      });
      return Promise.race([done, room.promise]);
    },
  };
}

/**
 * Makes a function that puts a row back for some time, in one UPDATE with all rows whose messages failed in the same turn
 * of the event loop. All of them wait as long as the one that failed most often.
 */
function rowReturner(pool: Pool, way: Way): (row: OutboxRow, atLeastMs: number | undefined) => Promise<void> {
  const { lease } = WAYS[way];
  let failed: OutboxRow[] = [];
  let atLeast = 0;
  let returning: Promise<void> | undefined;
  return (row, atLeastMs = 0) => {
    failed.push(row);
    atLeast = Math.max(atLeast, Math.min(atLeastMs, RETRY_AFTER_MOST_MS));
    returning ??= (async () => {
      await new Promise(setImmediate);
      returning = undefined;
      const rows = failed;
      failed = [];
      const failures = Math.max(...rows.map(({ attempts }) => attempts));
      const waitMs = Math.max(atLeast, backoff(failures, TIMING[way].again));
      atLeast = 0;
      await pool.query({
        name: `put-back-outbox-${way}`,
        text: `UPDATE outbox o SET ${lease} = now() + make_interval(secs => $3::float8) WHERE ${isRowOf('$1', '$2')}`,
        values: [
          rows.map(({ serviceOrderId }) => serviceOrderId),
          rows.map(({ sequence }) => sequence),
          waitMs / 1_000,
        ],
      });
    })();
    return returning;
  };
}
