import { setTimeout as sleep } from 'node:timers/promises';
import pg, { type Pool } from 'pg';
import { ID_LEARNT_MEANWHILE, applyWebhooks, refusedByPostgres, type Applied } from './apply-webhooks.ts';
import type { TranslatedWebhook, WebhookOutcome } from '../domain/webhook.ts';
import { ensureWebhookPartitions } from '../postgres/ensure-webhook-partitions.ts';
import { fairQueue, type FairQueue } from './fair-queue.ts';
import { findLocked, lockWaits } from './locked-orders.ts';
import { isDataError, withSettings } from '../postgres/transactions.ts';
import type { Observe, Observed } from '../domain/observed.ts';

/** SQLSTATE of a lock timeout. */
const LOCK_NOT_AVAILABLE = '55P03';
/** If this many ids are locked, every batch is checked for locks first. One lock timeout for each id would be slow. */
const MANY_LOCKED = 4;
/** Batches up to this size are split into single webhooks. Halves would wait for the same locked row at every step. */
const FEW = 8;
/** Pause between two rounds of the lock-wait queue. */
const LOCK_WAIT_MS = 50;
/**
 * A batch is late after one millisecond for each of its webhooks, but at the latest after this time. A late batch
 * probably waits for a lock or for the disk.
 */
const LATE_MS = 25;
/** Pause between two checks of all deadlines, which share one timer. */
const DEADLINES_MS = 20;

/** The webhook could not be committed in time, or the queue is full. The sender may retry later. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
}

/** A webhook's outcome and the ids of our orders that its events matched. */
export type Accepted = { outcome: WebhookOutcome; serviceOrderIds: readonly string[] };

export type BatchWebhooks = {
  /** Resolves when the webhook's changes are committed. @param deadline in ms since the epoch @throws Unavailable */
  accept(webhook: TranslatedWebhook, deadline: number): Promise<Accepted>;
  /** Resolves when every accepted webhook has its outcome. */
  drain(): Promise<void>;
};

type Waiting = {
  webhook: TranslatedWebhook;
  /** In milliseconds of the monotonic clock. */
  deadline: number;
  /** Index in the list of undecided webhooks; -1 when it is decided. */
  place: number;
  resolve(accepted: Accepted): void;
  reject(error: Error): void;
};

type Batching = {
  /** The writers' own connections: one for each batch writer, and one for the lock-wait queue. */
  pool: Pool;
  /** Maximum of concurrent batch writers. More than one runs only while batches are late. */
  writers: number;
  observe: Observe;
  /** Called after each commit, to wake the relay and to redrive parked events. */
  onApplied: (applied: Applied) => void;
  /** Called if Postgres refuses a batch. The cause is a value in a webhook, or a bug that let two batches collide. */
  onRefused: (about: { code: string | undefined; webhooks: number }) => void;
  /** Called when a webhook enters the lock-wait queue, unless its orders were already known to be locked. */
  onLocked: (webhook: TranslatedWebhook) => void;
};

/**
 * Batches concurrent webhooks into one statement and one commit. A free batch writer takes everything that is queued:
 * at low load each webhook has its own batch, at high load batches grow and share a statement's fixed cost. While a
 * batch is late, another batch writer takes over the queue.
 *
 * If a row is locked, the batch waits once for a short time. Then the webhooks that need this row move to the lock-wait
 * queue, which has a batch writer of its own. Later webhooks about the same order join that queue directly.
 */
export function batchWebhooks(deps: Batching): BatchWebhooks {
  const queue = fairQueue<Waiting>();
  const lockWait = fairQueue<Waiting>();
  const known = lockWaits();
  const undecided = undecidedWebhooks((late) => {
    // When the sender has an answer, BODY_BUDGET no longer counts the body, so the body must not stay in memory.
    queue.remove(late);
    lockWait.remove(late);
  });

  const flush = async (batch: readonly Waiting[], repeated = false): Promise<void> => {
    if (batch.length === 0) return;
    const webhooks = batch.map((waiting) => waiting.webhook);
    const began = performance.now();
    let applied: Applied;
    try {
      applied = await withSettings(deps.pool, (client) => applyWebhooks(client, webhooks));
    } catch (error) {
      if (!repeated && (await isFixed(error, deps.pool, webhooks))) return flush(batch, true);
      if (error instanceof pg.DatabaseError && error.code === LOCK_NOT_AVAILABLE) return flushAround(batch);
      if (!isDataError(error) || isDayMissing(error)) {
        for (const waiting of batch) undecided.refuse(waiting, 'could not be committed', error);
        return undefined;
      }
      deps.onRefused({ code: error.code, webhooks: batch.length });
      // One refused row must not fail the other webhooks, so the batch is split until that row is alone.
      if (batch.length > 1) return flushParts(batch);
      const [only] = batch;
      if (only === undefined || only.webhook.dropped !== undefined) {
        if (only !== undefined) undecided.refuse(only, 'cannot be stored', error);
        return undefined;
      }
      const dropped = refusedByPostgres(error);
      only.webhook = { ...only.webhook, events: [], kitchen: undefined, revokedAt: undefined, dropped };
      return flush(batch);
    }
    const { serviceOrderIds } = applied;
    const milliseconds = performance.now() - began;
    deps.observe({ what: 'flush', webhooks: batch.length, serviceOrderIds, milliseconds });
    let first = 0;
    for (const [index, waiting] of batch.entries()) {
      const { webhook } = waiting;
      const about = serviceOrderIds.slice(first, (first += webhook.events.length));
      const outcome = applied.webhooks[index] ?? 'ignored';
      const { kitchen } = webhook;
      if (outcome === 'applied' && kitchen?.state === 'closed') deps.observe(pausedBy(webhook, kitchen.until));
      if (outcome === 'applied' && webhook.revokedAt !== undefined) deps.observe(revokedBy(webhook));
      undecided.resolve(waiting, { outcome, serviceOrderIds: distinct(about) });
      known.remove(webhook);
    }
    deps.onApplied(applied);
    return undefined;
  };

  const flushParts = async (batch: readonly Waiting[]): Promise<void> => {
    const size = batch.length > FEW ? batch.length >> 1 : 1;
    for (let first = 0; first < batch.length; first += size) await flush(batch.slice(first, first + size));
  };

  /** Moves locked webhooks to the lock-wait queue and flushes the rest. Splits the batch if no lock is found. */
  const flushAround = async (batch: readonly Waiting[]): Promise<void> => {
    const inTime = batch.filter(isInTime);
    // guard: lock-wait
    if (inTime.length <= 1) return queueForLock(inTime);
    const { locked, free } = await partByLock(deps.pool, inTime);
    if (locked.length === 0) return flushParts(free);
    queueForLock(locked);
    return flush(free);
  };

  /** Flushes webhooks that are known to need no lock wait, and moves the others to the lock-wait queue. */
  const flushFree = async (batch: readonly Waiting[]): Promise<void> => {
    const { locked, free } = await partByLock(deps.pool, batch);
    await flush(free);
    queueForLock(locked.filter(isInTime));
  };

  const queueForLock = (batch: readonly Waiting[]): void => {
    for (const waiting of batch) {
      const { webhook } = waiting;
      if (!known.has(webhook)) deps.onLocked(webhook);
      known.add(webhook);
      if (lockWait.isFullFor(webhook.locationId)) undecided.refuse(waiting, 'too many webhooks wait for a lock');
      else lockWait.add(waiting);
    }
    startLockWaits();
  };

  const startLockWaits = writersOf(lockWait, 1, async () => {
    await flushFree(lockWait.take());
    if (lockWait.size() > 0) await sleep(LOCK_WAIT_MS);
  });

  const start = writersOf(queue, deps.writers, async () => {
    // Lets requests that are ready in this turn of the event loop join the batch.
    await new Promise(setImmediate);
    const { locked = [], free = [] } = Object.groupBy(queue.take(), ({ webhook }) =>
      known.has(webhook) ? 'locked' : 'free',
    );
    queueForLock(locked);
    await (known.size() < MANY_LOCKED ? flush(free) : flushFree(free));
  });

  return {
    accept(webhook, deadline) {
      if (queue.isFullFor(webhook.locationId)) return Promise.reject(new Unavailable('the queue is full'));
      return undecided.add(webhook, deadline, (waiting) => {
        queue.add(waiting);
        start();
      });
    },
    drain: undecided.drain,
  };
}

/** Tracks the webhooks without an outcome. A webhook past its deadline is passed to `onLate`, then refused. */
function undecidedWebhooks(onLate: (waiting: Waiting) => void) {
  /** In no special order. `place` is the index of each element, so that removing one needs no search. */
  const all: Waiting[] = [];
  let deadlines: NodeJS.Timeout | undefined;
  let onIdle: (() => void)[] = [];

  const settle = (waiting: Waiting): void => {
    const last = all.at(-1);
    if (waiting.place < 0 || last === undefined) return;
    all[waiting.place] = last;
    last.place = waiting.place;
    waiting.place = -1;
    all.pop();
    if (all.length > 0) return;
    for (const resolve of onIdle) resolve();
    onIdle = [];
  };
  const refuse = (waiting: Waiting, detail: string, cause?: unknown): void => {
    waiting.reject(new Unavailable(detail, { cause }));
    settle(waiting);
  };
  const refuseLate = (): void => {
    deadlines = undefined;
    // Includes deadlines before the next check, which would refuse these webhooks too late.
    const until = performance.now() + DEADLINES_MS;
    for (const waiting of all.filter(({ deadline }) => deadline < until)) {
      onLate(waiting);
      refuse(waiting, 'was not committed in time');
    }
    watchDeadlines();
  };
  const watchDeadlines = (): void => {
    if (all.length > 0) deadlines ??= setTimeout(refuseLate, DEADLINES_MS);
  };

  return {
    add(webhook: TranslatedWebhook, deadline: number, enqueue: (waiting: Waiting) => void): Promise<Accepted> {
      return new Promise((resolve, reject) => {
        const within = deadline - Date.now();
        const waiting = { webhook, deadline: performance.now() + within, place: all.length, resolve, reject };
        all.push(waiting);
        enqueue(waiting);
        watchDeadlines();
      });
    },
    resolve(waiting: Waiting, accepted: Accepted): void {
      waiting.resolve(accepted);
      settle(waiting);
    },
    refuse,
    async drain(): Promise<void> {
      if (all.length > 0) await new Promise<void>((resolve) => void onIdle.push(resolve));
    },
  };
}

async function partByLock(pool: Pool, batch: readonly Waiting[]): Promise<{ locked: Waiting[]; free: Waiting[] }> {
  const webhooks = batch.map((waiting) => waiting.webhook);
  // If the query fails, all webhooks count as free. Writing them then meets the locks again.
  const found = await withSettings(pool, (client) => findLocked(client, webhooks)).catch(() => new Set());
  return {
    locked: batch.filter((_, index) => found.has(index)),
    free: batch.filter((_, index) => !found.has(index)),
  };
}

/**
 * @returns a function that starts a batch writer if none runs and the queue is not empty. The writer repeats `round`
 *   until the queue is empty. Each late round allows one more writer, up to `most`
 */
function writersOf(queue: Pick<FairQueue<Waiting>, 'size'>, most: number, round: () => Promise<void>): () => void {
  let flushing = 0;
  let late = 0;
  const isWanted = (others: number): boolean => queue.size() > 0 && others < Math.min(most, 1 + late);
  const timely = async (): Promise<void> => {
    let isLate = false;
    const timer = setTimeout(
      () => {
        isLate = true;
        late += 1;
        start();
      },
      Math.min(LATE_MS, queue.size()),
    );
    try {
      await round();
    } finally {
      clearTimeout(timer);
      if (isLate) late -= 1;
    }
  };
  const run = async (): Promise<void> => {
    do await timely();
    while (isWanted(flushing - 1));
  };
  const start = (): void => {
    if (!isWanted(flushing)) return;
    flushing += 1;
    void run().finally(() => {
      flushing -= 1;
      start();
    });
  };
  return start;
}

function pausedBy({ integration, locationId, id: webhookId }: TranslatedWebhook, until: Date): Observed {
  return { what: 'pause', action: 'pause', by: integration, locationId, until, webhookId };
}

function revokedBy({ integration, locationId, id: webhookId }: TranslatedWebhook): Observed {
  return { what: 'access revoked', by: integration, locationId, webhookId };
}

function isInTime({ deadline }: Waiting): boolean {
  return performance.now() < deadline;
}

function distinct(ids: readonly (string | undefined)[]): readonly string[] {
  const known = ids.filter((id) => id !== undefined);
  return known.length > 1 ? [...new Set(known)] : known;
}

/** True if a day's partition is missing. A violated check has the same code, but its error names the constraint. */
function isDayMissing({ code, constraint }: pg.DatabaseError): boolean {
  return code === '23514' && constraint === undefined;
}

/** @returns true if a retry can succeed: two batches collided, or a partition was missing and has now been created */
async function isFixed(error: unknown, pool: Pool, webhooks: readonly TranslatedWebhook[]): Promise<boolean> {
  if (!(error instanceof pg.DatabaseError)) return false;
  if (error.code === '40P01' || error.code === '40001' || error.code === ID_LEARNT_MEANWHILE) return true;
  if (!isDayMissing(error)) return false;
  try {
    const times = webhooks.map(({ receivedAt }) => receivedAt);
    await ensureWebhookPartitions(pool, times);
    return true;
  } catch {
    return false;
  }
}
