import { totalmem } from 'node:os';
import { startPostgres, type Postgres } from '../test/support/start-postgres.ts';

/** Starts a Postgres that is durable, as in production, and not busy with anything but what is measured. */
export function startBenchPostgres(): Promise<Postgres> {
  return startPostgres({
    settings: {
      fsync: 'on',
      synchronous_commit: 'on',
      max_connections: '200',
      // A quarter of the machine's memory, where Postgres's documentation begins. Its default suits the smallest
      // machines.
      shared_buffers: `${Math.floor(totalmem() / 4 / 2 ** 20)}MB`,
      // No checkpoint by itself. After one, each page is logged whole once more: little within the minutes between two,
      // but much within a measurement of seconds.
      max_wal_size: '64GB',
      checkpoint_timeout: '1h',
    },
  });
}
