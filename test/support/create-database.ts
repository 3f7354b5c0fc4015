import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { SCHEMA } from '../../src/database/check-schema.ts';
import { databaseUrl } from './template-database.ts';

/** Creates a migrated database for the caller, copied from the run's template in some 20 ms. @returns its URL */
export function createDatabase(): Promise<string> {
  return createFrom('expediter_template STRATEGY FILE_COPY', { copy: true });
}

/** Creates an empty database. @param encoding in place of UTF8, such as `LATIN1` @returns its URL */
export function createEmptyDatabase(encoding = 'UTF8'): Promise<string> {
  return createFrom(`template0 ENCODING '${encoding}'`);
}

/** One connection for all files of a worker: to open one takes as long as the copy. */
let administrator: pg.Pool | undefined;

/** @param about.copy whether it has the schema: the settings of its roles are not copied */
async function createFrom(template: string, about = { copy: false }): Promise<string> {
  const server = inject('postgresUrl');
  administrator ??= new pg.Pool({ connectionString: server, max: 1, allowExitOnIdle: true }).on('error', () => {});
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await administrator.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
  if (about.copy) await administrator.query(`ALTER DATABASE ${name} SET search_path = ${SCHEMA}`);
  return databaseUrl(server, name);
}
