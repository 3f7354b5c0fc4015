import { setTimeout as sleep } from 'node:timers/promises';
import { neighbour } from './neighbour.ts';

export type HeldSnapshot = {
  /** @returns how many snapshots were taken, and for how many seconds in total they were held */
  release(): Promise<{ taken: number; seconds: number }>;
};

const AGAIN_MS = 100;

/** Plays a neighbour that is idle in a transaction with a snapshot. Begins another one when its connection is lost. */
export function holdSnapshot(databaseUrl: () => string): HeldSnapshot {
  const releasing = new AbortController();
  const { signal } = releasing;
  let [taken, heldMs] = [0, 0];

  const hold = async (): Promise<void> => {
    const client = neighbour(databaseUrl());
    const over = Promise.withResolvers<void>();
    client.once('end', over.resolve);
    signal.addEventListener('abort', () => over.resolve());
    try {
      await client.connect();
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await client.query('SELECT count(*) FROM outbox');
      taken += 1;
      const began = performance.now();
      if (signal.aborted) return;
      await over.promise;
      heldMs += performance.now() - began;
    } finally {
      await client.end();
    }
  };
  const holding = (async () => {
    while (!signal.aborted) await hold().catch(() => sleep(AGAIN_MS));
  })();

  return {
    async release() {
      releasing.abort();
      await holding;
      return { taken, seconds: heldMs / 1_000 };
    },
  };
}
