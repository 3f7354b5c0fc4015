import type { Pool } from 'pg';
import type { Registry } from '../core/domain/provider.ts';
import type { Config } from '../config/config.ts';
import type { SettingsRules } from '../core/locations/locations.ts';
import { WRITER_CONNECTIONS, openDatabase } from '../database/open-database.ts';
import { CONNECT_MS, checkSchema, WrongSchema } from '../database/check-schema.ts';
import { explainDatabaseError } from '../database/explain-database-error.ts';

/** Loads the providers as the service does. The import is here, because commands that need none start twice as fast. */
export async function loadProviders(moduleNames: readonly string[]): Promise<Registry> {
  const providers = await import('../providers/index.ts');
  return providers.loadProviders(moduleNames);
}

/** Makes the rules for reading settings. They are the same as in the service. */
export async function settingsRules(
  env: Pick<Config, 'SETTINGS_KEY' | 'PUBLIC_URL' | 'PROVIDER_MODULES'>,
): Promise<SettingsRules> {
  return { registry: await loadProviders(env.PROVIDER_MODULES), keys: env.SETTINGS_KEY, publicUrl: env.PUBLIC_URL };
}

/**
 * Opens the database for one command, checks that it has this version's schema, and always closes it.
 * @param connections how many connections the command uses at the same time
 */
export async function withDatabase<Result>(
  databaseUrl: string,
  work: (pool: Pool) => Promise<Result>,
  connections = 1,
): Promise<Result> {
  // Errors of idle connections are ignored, because the next query reports the same fault.
  const { pool } = openDatabase(databaseUrl, WRITER_CONNECTIONS + connections, () => {}, CONNECT_MS);
  try {
    await checkSchema(pool).catch((error: unknown) => {
      if (error instanceof WrongSchema) throw error;
      const { found, toDo } = explainDatabaseError(error);
      throw new Error(`the Postgres at DATABASE_URL cannot be used: ${found}; ${toDo}`, { cause: error });
    });
    return await work(pool);
  } finally {
    await pool.end();
  }
}
