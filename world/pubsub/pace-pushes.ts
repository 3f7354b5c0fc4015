/**
 * The pace at which Pub/Sub pushes the messages of a subscription, after "Push backoff" and "Delivery rate":
 * https://cloud.google.com/pubsub/docs/push
 *
 * - Nacks and expired deadlines slow down the whole subscription: between two deliveries it waits for a time that grows
 *   exponentially with the nacks, from 100 ms to 60 s. This cannot be switched off. Five nacks a second lead to one
 *   delivery every 30 to 60 s. It adds to the retry policy, which is about single messages.
 * - The push window is the number of requests under way at a time. It starts in single digits, grows exponentially with
 *   acknowledgements while they take less than a second on average, and shrinks with every failure.
 *
 * Google does not publish the formulas. Here a nack doubles the wait and an acknowledgement halves it, and during a
 * wait deliveries go one by one; an acknowledgement widens the window by one, which doubles it from round to round, and
 * a failure halves it. Google's window grows slowly beyond 3,000; this one has an end.
 */
import type { Backoff } from './queue-messages.ts';

export type PushPace = {
  /** Returns how many requests may be under way now. */
  window(): number;
  acknowledged(tookMs: number): void;
  refused(): void;
  stop(): void;
};

const WINDOW_AT_FIRST = 3;
const QUICK_MS = 1000;

/** @param onWider called when a wait is over */
export function pacePushes({ minMs, maxMs }: Backoff, widest: number, onWider: () => void): PushPace {
  const levels = 1 + Math.ceil(Math.log2(maxMs / minMs));
  let size = WINDOW_AT_FIRST;
  /** Nacks minus acknowledgements, from 0 to `levels`. */
  let level = 0;
  let waiting: NodeJS.Timeout | undefined;

  function wait(): void {
    clearTimeout(waiting);
    waiting = undefined;
    if (level === 0) return;
    waiting = setTimeout(
      () => {
        waiting = undefined;
        onWider();
      },
      Math.min(maxMs, minMs * 2 ** (level - 1)),
    ).unref();
  }

  return {
    window() {
      if (waiting !== undefined) return 0;
      return level > 0 ? 1 : size;
    },
    acknowledged(tookMs) {
      if (tookMs < QUICK_MS) size = Math.min(widest, size + 1);
      level = Math.max(0, level - 1);
      wait();
    },
    refused() {
      size = Math.max(1, Math.floor(size / 2));
      level = Math.min(levels, level + 1);
      wait();
    },
    stop() {
      clearTimeout(waiting);
    },
  };
}
