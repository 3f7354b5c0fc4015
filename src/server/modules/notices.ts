import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../../config/config.ts';
import { findNotices } from '../../core/notices/find-notices.ts';
import { workNotices } from '../../core/notices/send-notices.ts';
import { noticeWays } from '../../core/notices/ways.ts';
import { throttleFailures } from '../../http/throttle-failures.ts';

type App = Pick<FastifyInstance, 'log' | 'database' | 'observability' | 'providers'>;

const STOP_MS = 1_000;

export type Notices = ReturnType<typeof noticesModule>;

/** Tells contacts of restaurants about orders that need them, and takes their answers. */
export function noticesModule(app: App, config: Config, { wake }: { wake: () => void }) {
  const { database, observability, providers, log } = app;
  const { pool, clock } = database;
  const { observe } = observability;
  const ways = noticeWays(config, providers.posFetch, clock.now);
  const worker = workNotices({ pool, ways, publicUrl: config.PUBLIC_URL ?? '', observe, log });
  return {
    async find(): Promise<void> {
      if ((await findNotices(pool)) > 0) worker.wake();
    },
    ways,
    /** Undefined if this process sends no links. */
    endpoint:
      (ways.email ?? ways.webhook) === undefined ? undefined : { pool, judge: throttleFailures({ observe }), wake },
    work: {
      name: 'notices',
      loops: { notices: worker },
      // A slow gateway must not delay the other parts. Another process sends the message again, with the same id.
      stop: () => Promise.race([worker.stop(), sleep(STOP_MS, undefined, { ref: false })]),
    },
  };
}
