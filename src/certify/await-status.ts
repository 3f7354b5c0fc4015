import { setTimeout as sleep } from 'node:timers/promises';
import type { Status } from '../core/domain/lifecycle.ts';
import type { StoredWebhook } from '../core/replay/stored-webhook.ts';
import { findInVain, isAbove, readStatuses, type ArrivedStatus, type Sought } from './read-arrived.ts';

/** Pause between two looks. */
const LOOK_MS = 200;

export type Awaited =
  | { came: ArrivedStatus }
  /** No webhook brought it, and the service asked the POS. */
  | { asked: ArrivedStatus }
  /** It came behind a higher one. */
  | { behind: ArrivedStatus; first: ArrivedStatus | undefined }
  /** Only a higher one came. */
  | { skippedFor: ArrivedStatus }
  /** Something came, and moved nothing. */
  | { inVain: StoredWebhook }
  | { silent: true };

/**
 * Waits for a status of an order. Once something else has come, it waits for a short while only.
 * @param about.until when the waiting ends, in milliseconds by the monotonic clock
 * @param about.graceMs how much longer, once something else has come
 * @param about.known webhooks that came in vain before
 */
export async function awaitStatus(
  sought: Sought,
  status: Status,
  about: { until: () => number; graceMs: number; known: Set<string>; signal: AbortSignal },
): Promise<Awaited> {
  let otherSince: number | undefined;
  for (;;) {
    about.signal.throwIfAborted();
    const isOver = performance.now() > Math.min(about.until(), (otherSince ?? Infinity) + about.graceMs);
    const statuses = await readStatuses(sought.pool, sought.serviceOrderId);
    const came = statuses.find((each) => each.status === status && each.outcome === 'applied');
    const above = statuses.find((each) => isAbove(each, status) && each.outcome === 'applied');
    const inVain = (await findInVain(sought)).filter(({ webhookId }) => !about.known.has(webhookId));
    if (came !== undefined) {
      // What came before it was no obstacle. Ids are in the order of their arrival.
      for (const { webhookId } of inVain) if (webhookId < came.webhookId) about.known.add(webhookId);
      return came.asked ? { asked: came } : { came };
    }
    const behind = statuses.find((each) => each.status === status && each.outcome === 'stale');
    if (behind !== undefined) return { behind, first: above };
    if (isOver) {
      const last = inVain.at(-1);
      for (const { webhookId } of inVain) about.known.add(webhookId);
      if (last !== undefined) return { inVain: last };
      return above === undefined ? { silent: true } : { skippedFor: above };
    }
    if (above !== undefined || inVain.length > 0) otherSince ??= performance.now();
    await sleep(LOOK_MS, undefined, { signal: about.signal });
  }
}
