import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { databaseUrl } from './template-database.ts';

/** Creates a migrated database for the caller, copied from the run's template in some 20 ms. @returns its URL */
export function createDatabase(): Promise<string> {
  return createFrom('expediter_template STRATEGY FILE_COPY');
}

/** Creates an empty database. @param encoding in place of UTF8, such as `LATIN1` @returns its URL */
export function createEmptyDatabase(encoding = 'UTF8'): Promise<string> {
  return createFrom(`template0 ENCODING '${encoding}'`);
}

/** One connection for all files of a worker: to open one takes as long as the copy. */
let administrator: pg.Pool | undefined;

async function createFrom(template: string): Promise<string> {
  const server = inject('postgresUrl');
  administrator ??= new pg.Pool({ connectionString: server, max: 1, allowExitOnIdle: true }).on('error', () => {});
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await administrator.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
  return databaseUrl(server, name);
}
