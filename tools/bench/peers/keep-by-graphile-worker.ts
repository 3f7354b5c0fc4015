import { makeWorkerUtils } from 'graphile-worker';
import type { Keep } from '../variants/bare-fastify.ts';
import { openPeerPool } from './open-peer-pool.ts';

/** Adds a job for each webhook. Does not use `quickAddJob`, which would open a pool for each job. */
export async function keepByGraphileWorker(databaseUrl: string): Promise<Keep> {
  const { migrate, addJob } = await makeWorkerUtils({ pgPool: openPeerPool(databaseUrl) });
  await migrate();
  return (webhook) => addJob('webhook', webhook);
}
