import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, inject } from 'vitest';
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
/** The databases of this worker, each with the test file that asked for it. */
const created = new Map<string, string | undefined>();

/** @param about.copy whether it has the schema: the settings of its roles are not copied */
async function createFrom(template: string, about = { copy: false }): Promise<string> {
  const server = inject('postgresUrl');
  administrator ??= new pg.Pool({ connectionString: server, max: 1, allowExitOnIdle: true }).on('error', () => {});
  const file = expect.getState().testPath;
  await dropOthers(administrator, file);
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  created.set(name, file);
  await administrator.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
  if (about.copy) await administrator.query(`ALTER DATABASE ${name} SET search_path = ${SCHEMA}`);
  return databaseUrl(server, name);
}

/** Drops the databases of earlier files, because they may be in memory. One that is still in use stays until next time. */
async function dropOthers(server: pg.Pool, file: string | undefined): Promise<void> {
  const over = [...created].flatMap(([name, creator]) => (creator === file ? [] : [name]));
  const { rows } = await server.query<{ name: string }>(
    `SELECT name FROM unnest($1::text[]) name
     WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = name)`,
    [over],
  );
  for (const { name } of rows) {
    created.delete(name);
    await server.query(`DROP DATABASE IF EXISTS ${name}`);
  }
}
