import pg from 'pg';
import { inject } from 'vitest';

/** Shuts everybody out of a database while something is done. */
export async function whilePostgresIsAway<Result>(databaseUrl: string, work: () => Promise<Result>): Promise<Result> {
  const admin = new pg.Client(inject('postgresUrl'));
  await admin.connect();
  const database = new URL(databaseUrl).pathname.slice(1);
  await admin.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS false`);
  try {
    await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [database]);
    return await work();
  } finally {
    await admin.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS true`);
    await admin.end();
  }
}
