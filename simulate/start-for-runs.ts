import { startPostgres, type Postgres } from '../test/support/start-postgres.ts';

/** Starts a Postgres without what matters only in a power cut, and without what it does by itself. */
export const startForRuns = (): Promise<Postgres> =>
  startPostgres({ settings: { fsync: 'off', full_page_writes: 'off', autovacuum: 'off', max_connections: '300' } });
