import type { Pool } from 'pg';
import type { Log } from '../domain/log.ts';
import { GATHER_MS, pollWhileWatched } from '../postgres/loops.ts';
import { changedOrders } from './changed-orders.ts';
import { readLive, type ReadLive } from './read-live.ts';

/**
 * Receives an order's news, first how it is and then what is new, messages in order and each once; undefined for an order
 * that no signal named yet. After `ended` nothing follows.
 */
export type Follower = (news: ReadLive | undefined) => void;

export type OrderFeed = {
  /**
   * @param after the sequence of the last message that the follower has; 0 for none, undefined if it wants none of those
   *   before
   * @returns a function that ends the following
   */
  follow(serviceOrderId: string, after: number | undefined, follower: Follower): () => void;
  /** Signals a change in this process. Changes by other processes are seen within 150 ms. */
  wake(): void;
  stop(): Promise<void>;
};

const POLL_MS = 150;
/** Orders read at a time. */
const READ_MAX = 1_000;

type Following = { serviceOrderId: string; after: number | undefined; notify: Follower };

/**
 * Sends followers the messages of their orders, whichever process moves them. One look per poll tells which orders have
 * changed, and those that are followed here are read: an order that rests costs nothing but memory, however many follow.
 */
export function orderFeed({ pool, log }: { pool: Pool; log: Pick<Log, 'error'> }): OrderFeed {
  const followings = new Map<string, Following[]>();
  /** Those that joined, or whose order has changed, and that are not told yet. */
  const unnotified = new Set<Following>();
  const changed = changedOrders(pool);

  const look = async (): Promise<void> => {
    const orders = await changed();
    if (orders === undefined) for (const all of followings.values()) for (const each of all) unnotified.add(each);
    for (const [id, sequence] of orders ?? []) {
      for (const each of followings.get(id) ?? []) {
        if (sequence === null || sequence > (each.after ?? 0)) unnotified.add(each);
      }
    }
  };

  const tell = async (some: readonly Following[]): Promise<void> => {
    const oldest = new Map<string, number | undefined>();
    for (const { serviceOrderId: id, after } of some) {
      const known = oldest.get(id);
      oldest.set(id, known === undefined || after === undefined ? (known ?? after) : Math.min(known, after));
    }
    const read = await readLive(pool, oldest);
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
      // Those that join from here on are read by the next poll, since this look may have come before them.
      await look();
      const all = [...unnotified];
      for (let i = 0; i < all.length; i += READ_MAX) await tell(all.slice(i, i + READ_MAX));
    },
    log,
    failing: 'live messages cannot be read for their followers; will try again',
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
