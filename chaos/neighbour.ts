import pg from 'pg';

/** A database client of another program. The end of its connection causes no unhandled error. */
export function neighbour(databaseUrl: string): pg.Client {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'neighbour' });
  client.on('error', () => {});
  return client;
}
