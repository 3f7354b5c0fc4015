import { makeWorkerUtils } from 'graphile-worker';
import type { Keep } from '../bare-fastify.ts';
import { openPeerPool } from './open-peer-pool.ts';

/** Adds a job for each webhook. (`quickAddJob` would open a pool for each.) */
export async function keepByGraphileWorker(databaseUrl: string): Promise<Keep> {
  const { migrate, addJob } = await makeWorkerUtils({ pgPool: openPeerPool(databaseUrl) });
  await migrate();
  return (webhook) => addJob('webhook', webhook);
}
