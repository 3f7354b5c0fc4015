import pg from 'pg';

/** Runs a statement, or several without values, over a connection of its own. @returns the rows */
export async function queryOnce(url: string, sql: string, values?: unknown[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql, values)).rows;
  } finally {
    await client.end();
  }
}
