import type { Pool } from 'pg';
import { FLUSH_CONNECTIONS, openDatabase } from '../database/open-database.ts';
import { WrongSchema, checkSchema } from '../database/check-schema.ts';
import { explainDatabaseError } from '../database/explain-database-error.ts';

/**
 * Opens the database for one command, checks that it has this version's schema, and always closes it.
 * @param connections how many the command needs at once
 */
export async function withDatabase<Result>(
  databaseUrl: string,
  work: (pool: Pool) => Promise<Result>,
  connections = 1,
): Promise<Result> {
  // The query that needs a dead connection reports it.
  const { pool } = openDatabase(databaseUrl, FLUSH_CONNECTIONS + connections, () => {});
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
