import { totalmem } from 'node:os';
import { startPostgres, type Postgres } from '../../../world/postgres/start-postgres.ts';

/**
 * A quarter of the machine's memory, which Postgres's documentation recommends as a start. The default is for very small
 * machines.
 */
const SHARED_BUFFERS = `${Math.floor(totalmem() / 4 / 2 ** 20)}MB`;

/** Starts a durable Postgres whose checkpoints and autovacuum run as usual. */
export function startUsualPostgres(): Promise<Postgres> {
  return startPostgres({ settings: { fsync: 'on', max_connections: '100', shared_buffers: SHARED_BUFFERS } });
}

/** Starts a Postgres that is durable, as in production, and has no background work during a measurement. */
export function startBenchPostgres(): Promise<Postgres> {
  return startPostgres({
    settings: {
      fsync: 'on',
      synchronous_commit: 'on',
      max_connections: '200',
      shared_buffers: SHARED_BUFFERS,
      // No automatic checkpoint. After a checkpoint, the first change of each page logs the whole page. In production
      // that is little, spread over minutes, but in a measurement of seconds it is much.
      max_wal_size: '64GB',
      checkpoint_timeout: '1h',
    },
  });
}
