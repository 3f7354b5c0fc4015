import type { Pool } from 'pg';
import type { Log } from '../domain/log.ts';
import { GATHER_MS, pollWhileWatched } from '../postgres/loops.ts';
import { changedOrders } from './changed-orders.ts';
import { readLive, type ReadLive } from './read-live.ts';

/**
 * Is called with an order's state and new messages: once at the start, then at each change. Messages come in sequence,
 * each once. `news` is undefined while no signal has named the order. There are no calls after `ended`.
 */
export type Follower = (news: ReadLive | undefined) => void;

export type OrderFeed = {
  /**
   * @param after the sequence of the follower's last message: 0 if it has none, undefined if it wants only new messages
   * @returns a function that stops following
   */
  follow(serviceOrderId: string, after: number | undefined, follower: Follower): () => void;
  /** Reports a change by this process. Changes by other processes are found by polling. */
  wake(): void;
  stop(): Promise<void>;
};

const POLL_MS = 150;
/** Maximum number of followers that one read serves. */
const READ_MAX = 1_000;

type Following = { serviceOrderId: string; after: number | undefined; notify: Follower };

/**
 * Sends followers the messages of their orders, whichever process changes the orders. Each poll finds the changed
 * orders and reads those that are followed. An unchanged order costs only memory, however many followers it has.
 */
export function orderFeed({ pool, log }: { pool: Pool; log: Pick<Log, 'error'> }): OrderFeed {
  const followings = new Map<string, Following[]>();
  /** Followers that have joined, or whose order has changed, and that have not been notified yet. */
  const unnotified = new Set<Following>();
  const changed = changedOrders(pool);

  const findChanges = async (): Promise<void> => {
    const orders = await changed();
    if (orders === undefined) for (const all of followings.values()) for (const each of all) unnotified.add(each);
    for (const [id, sequence] of orders ?? []) {
      for (const each of followings.get(id) ?? []) {
        if (sequence === null || sequence > (each.after ?? 0)) unnotified.add(each);
      }
    }
  };

  const notifyFollowers = async (some: readonly Following[]): Promise<void> => {
    const oldest = new Map<string, number | undefined>();
    const joined = new Set<string>();
    for (const { serviceOrderId: id, after } of some) {
      if (after === undefined) joined.add(id);
      const known = oldest.get(id);
      oldest.set(id, known === undefined || after === undefined ? (known ?? after) : Math.min(known, after));
    }
    const read = await readLive(pool, oldest, joined);
    for (const each of some) {
      if (!unnotified.delete(each)) continue;
      // guard: own-order
      const news = read.get(each.serviceOrderId);
      const after = each.after ?? news?.state.sequence;
      const messages = news?.messages.filter(({ sequence }) => sequence > (after ?? 0)) ?? [];
      each.after = messages.at(-1)?.sequence ?? after ?? 0;
      if (news?.ended === true) leave(each);
      each.notify(news && { ...news, messages });
    }
  };

  const leave = (following: Following): void => {
    const others = followings.get(following.serviceOrderId)?.filter((each) => each !== following) ?? [];
    if (others.length > 0) followings.set(following.serviceOrderId, others);
    else followings.delete(following.serviceOrderId);
    unnotified.delete(following);
  };

  const loop = pollWhileWatched({
    pollMs: POLL_MS - GATHER_MS,
    isWatched: () => followings.size > 0,
    async poll() {
      await findChanges();
      const all = [...unnotified];
      for (let i = 0; i < all.length; i += READ_MAX) await notifyFollowers(all.slice(i, i + READ_MAX));
    },
    log,
    failing: 'live messages cannot be read for followers; retrying',
  });

  return {
    follow(serviceOrderId, after, notify) {
      const following = { serviceOrderId, after, notify };
      followings.set(serviceOrderId, [...(followings.get(serviceOrderId) ?? []), following]);
      unnotified.add(following);
      loop.wake();
      return () => leave(following);
    },
    wake: loop.wake,
    stop: loop.stop,
  };
}
