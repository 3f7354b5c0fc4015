import type { Pool } from 'pg';
import { pollWhileWatched } from '../postgres/poll-while-watched.ts';
import type { LiveMessage } from '../domain/live-message.ts';
import type { Log } from '../domain/log.ts';
import { readLive } from './read-live.ts';

/** Told what is new of an order, in order and each message once; with `ended` comes nothing more. */
export type Follower = (news: { messages: LiveMessage[]; ended: boolean }) => void;

export type OrderFeed = {
  /**
   * @param after the sequence of the last message that the follower has; 0 for none
   * @returns call it to be told no more
   */
  follow(serviceOrderId: string, after: number, follower: Follower): () => void;
  /** This process applied something just now; what others apply is seen within a second. */
  wake(): void;
  stop(): Promise<void>;
};

const POLL_MS = 1_000;

/**
 * Tells followers about their orders, whichever process moves them: one statement a look for all the orders that are
 * followed here, and none while there are none.
 */
export function orderFeed(deps: { pool: Pool; log: Pick<Log, 'warn'> }): OrderFeed {
  const followers = new Set<{ serviceOrderId: string; after: number; tell: Follower }>();

  const look = async (): Promise<void> => {
    // One that joins meanwhile may have less than these, and waits for the next look.
    const asking = [...followers];
    const oldest = new Map<string, number>();
    for (const { serviceOrderId, after } of asking) {
      oldest.set(serviceOrderId, Math.min(after, oldest.get(serviceOrderId) ?? after));
    }
    const read = await readLive(deps.pool, oldest);
    for (const follower of asking) {
      if (!followers.has(follower)) continue;
      const { messages = [], ended = false } = read.get(follower.serviceOrderId) ?? {};
      const fresh = messages.filter((message) => message.sequence > follower.after);
      if (fresh.length === 0 && !ended) continue;
      follower.after = fresh.at(-1)?.sequence ?? follower.after;
      if (ended) followers.delete(follower);
      follower.tell({ messages: fresh, ended });
    }
  };

  const loop = pollWhileWatched({
    pollMs: POLL_MS,
    isWatched: () => followers.size > 0,
    look,
    log: deps.log,
    failing: 'live messages cannot be read for their followers; will try again',
  });

  return {
    follow(serviceOrderId, after, tell) {
      const follower = { serviceOrderId, after, tell };
      followers.add(follower);
      return () => void followers.delete(follower);
    },
    wake: loop.wake,
    stop: loop.stop,
  };
}
