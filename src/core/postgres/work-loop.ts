import type { Log } from '../domain/log.ts';

export type WorkLoop = {
  /** Starts to claim. Earlier wake-ups have no effect. */
  start(): void;
  /** Signals that there is work now. */
  wake(): void;
  /** Stops claiming, and resolves when the work under way is done. */
  stop(): Promise<void>;
};

/**
 * Claims work from the database and does it, `capacity` pieces at a time, until it is stopped. It claims when it is
 * woken, when a piece is done, and every `pollMs` for what other processes left behind. Claims that fail are logged once,
 * until one succeeds: an outage of Postgres takes minutes.
 */
export function workLoop<Piece>(about: {
  capacity: number;
  pollMs: number;
  claim: (limit: number) => Promise<Piece[]>;
  /** Handles its own errors. */
  work: (piece: Piece) => Promise<void>;
  log: Pick<Log, 'error'>;
  /** The log's message when claiming fails. */
  failing: string;
}): WorkLoop {
  const underWay = new Set<Promise<void>>();
  const stopping = new AbortController();
  let isFailing = false;
  let woken = Promise.withResolvers<void>();
  const wake = (): void => woken.resolve();

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      // Set before the claim, so that a wake-up during it is not missed.
      woken = Promise.withResolvers<void>();
      let pieces: Piece[] = [];
      try {
        const limit = about.capacity - underWay.size;
        if (limit > 0) {
          pieces = await about.claim(limit);
          isFailing = false;
        }
      } catch (error) {
        if (!isFailing) about.log.error({ err: error }, about.failing);
        isFailing = true;
      }
      for (const piece of pieces) {
        const working: Promise<void> = about.work(piece).finally(() => {
          underWay.delete(working);
          wake();
        });
        underWay.add(working);
      }
      if (pieces.length === 0 || underWay.size >= about.capacity) await wokenWithin(woken.promise, about.pollMs);
    }
    await Promise.all(underWay);
  };

  let running: Promise<void> | undefined;
  return {
    start() {
      running ??= run();
    },
    wake,
    async stop() {
      stopping.abort();
      wake();
      await running;
    },
  };
}

async function wokenWithin(woken: Promise<void>, milliseconds: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const elapsed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([woken, elapsed]);
  clearTimeout(timer);
}
