import pg from 'pg';

/** A client of somebody else's in the same database, who survives the end of the connection. */
export function neighbour(databaseUrl: string): pg.Client {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'neighbour' });
  client.on('error', () => {});
  return client;
}
