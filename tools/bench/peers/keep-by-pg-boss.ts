import { PgBoss } from 'pg-boss';
import type { Keep } from '../variants/bare-fastify.ts';
import { POOL } from './open-peer-pool.ts';

const QUEUE = 'webhooks';

/** Sends a job for each webhook. The maintenance of old jobs and schedules is off. */
export async function keepByPgBoss(databaseUrl: string): Promise<Keep> {
  const boss = new PgBoss({ connectionString: databaseUrl, ...POOL, supervise: false, schedule: false });
  boss.on('error', console.error);
  await boss.start();
  await boss.createQueue(QUEUE);
  return (webhook) => boss.send(QUEUE, webhook);
}
