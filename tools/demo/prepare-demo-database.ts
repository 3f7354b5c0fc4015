import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { readConfigOf } from '../../src/config/config.ts';
import { migrate } from '../../src/database/migrate.ts';
import { postgresIn, startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';

export type Database = {
  url: string;
  /** A description for people, without a password. */
  where: string;
  /** Undefined if DATABASE_URL was given. */
  embedded: Postgres | undefined;
  stop(): Promise<void>;
};

const inUse = (dir: string, name = 'demo'): string =>
  `another ${name} uses ${dir}: end it, or start this one with another --dir`;

/** Deletes the embedded database of an earlier demo. @throws Error if that demo still runs */
export function deleteDemoDatabase(dir: string): void {
  const data = join(dir, 'postgres');
  if (postgresIn(data) !== undefined) throw new Error(inUse(dir));
  rmSync(data, { recursive: true, force: true });
}

/**
 * Prepares a migrated database: the given one, or an embedded Postgres with its data in `dir`.
 * @param about.name what the user runs, for an error message; `demo` by default
 */
export async function prepareDemoDatabase(about: {
  dir: string;
  databaseUrl: string | undefined;
  name?: string;
}): Promise<Database> {
  if (about.databaseUrl !== undefined) return useDatabase(about.databaseUrl);
  const data = join(about.dir, 'postgres');
  const postgres = await startPostgres({ dir: data }).catch((error: Error) => {
    const message = error.message.includes('already runs in')
      ? inUse(about.dir, about.name)
      : `${error.message}\nOr set DATABASE_URL to your own Postgres.`;
    throw new Error(message, { cause: error });
  });
  try {
    await migrate(postgres.url);
  } catch (error) {
    await postgres.stop();
    const hint = `Remove ${data} to start with an empty database.`;
    throw new Error(`the schema could not be migrated: ${(error as Error).message}. ${hint}`, {
      cause: error,
    });
  }
  return { url: postgres.url, where: `embedded, ${postgres.url}`, embedded: postgres, stop: () => postgres.stop() };
}

async function useDatabase(given: string): Promise<Database> {
  const { DATABASE_URL: url } = readConfigOf({ DATABASE_URL: given }, 'DATABASE_URL');
  try {
    await migrate(url);
  } catch (error) {
    throw new Error(`the database of DATABASE_URL could not be migrated: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const { host, pathname } = new URL(url);
  return { url, where: `DATABASE_URL, ${host}${pathname}`, embedded: undefined, stop: async () => {} };
}
