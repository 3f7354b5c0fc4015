import type { Pool } from 'pg';
import { pollWhileWatched } from '../postgres/poll-while-watched.ts';
import type { LiveMessage } from '../domain/live-message.ts';
import type { Log } from '../domain/log.ts';
import { readLive } from './read-live.ts';

/** Receives an order's new messages, in order and each once. After `ended` nothing follows. */
export type Follower = (news: { messages: LiveMessage[]; ended: boolean }) => void;

export type OrderFeed = {
  /**
   * @param after the sequence of the last message that the follower has; 0 for none
   * @returns a function that ends the following
   */
  follow(serviceOrderId: string, after: number, follower: Follower): () => void;
  /** Signals a change in this process. Changes by other processes are seen within a second. */
  wake(): void;
  stop(): Promise<void>;
};

const POLL_MS = 1_000;

/**
 * Sends followers the messages of their orders, whichever process moves them: one statement per poll for all orders
 * followed here, and none while there are none.
 */
export function orderFeed(deps: { pool: Pool; log: Pick<Log, 'error'> }): OrderFeed {
  const followers = new Set<{ serviceOrderId: string; after: number; notify: Follower }>();

  const poll = async (): Promise<void> => {
    // A follower that joins during the poll may have fewer messages, and waits for the next poll.
    const polled = [...followers];
    const oldest = new Map<string, number>();
    for (const { serviceOrderId, after } of polled) {
      oldest.set(serviceOrderId, Math.min(after, oldest.get(serviceOrderId) ?? after));
    }
    const read = await readLive(deps.pool, oldest);
    for (const follower of polled) {
      if (!followers.has(follower)) continue;
      const { messages = [], ended = false } = read.get(follower.serviceOrderId) ?? {};
      const fresh = messages.filter((message) => message.sequence > follower.after);
      if (fresh.length === 0 && !ended) continue;
      follower.after = fresh.at(-1)?.sequence ?? follower.after;
      if (ended) followers.delete(follower);
      follower.notify({ messages: fresh, ended });
    }
  };

  const loop = pollWhileWatched({
    pollMs: POLL_MS,
    isWatched: () => followers.size > 0,
    poll,
    log: deps.log,
    failing: 'live messages cannot be read for their followers; will try again',
  });

  return {
    follow(serviceOrderId, after, notify) {
      const follower = { serviceOrderId, after, notify };
      followers.add(follower);
      return () => void followers.delete(follower);
    },
    wake: loop.wake,
    stop: loop.stop,
  };
}
