import pg from 'pg';

/** A database client of another program. The end of its connection causes no unhandled error. */
export function neighbour(databaseUrl: string): pg.Client {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'neighbour' });
  client.on('error', () => {});
  return client;
}

export async function withNeighbour<Result>(
  databaseUrl: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = neighbour(databaseUrl);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Runs one statement on a connection of its own. @returns its rows */
export const ask = <Row extends object>(databaseUrl: string, sql: string, values?: unknown[]): Promise<Row[]> =>
  withNeighbour(databaseUrl, async (client) => (await client.query<Row>(sql, values)).rows);
