import pg from 'pg';
import { PEERS, type Peer } from './peers.ts';

/** Empties the peer's table, as if all its jobs were done. */
export async function emptyPeer(databaseUrl: string, peer: Peer): Promise<void> {
  await query(databaseUrl, `TRUNCATE ${PEERS[peer].table} CASCADE`);
}

/** Checks that every answer is 200, and that the peer's table has a row for each. @throws Error if not */
export async function balancePeer(
  databaseUrl: string,
  peer: Peer,
  about: { requests: number; answers: Record<string, number> },
): Promise<void> {
  const [{ rows } = { rows: 0 }] = await query(databaseUrl, `SELECT count(*)::int AS rows FROM ${PEERS[peer].table}`);
  if (about.answers['200'] !== about.requests || rows !== about.requests) {
    throw new Error(`the books of ${peer} do not balance: ${JSON.stringify({ ...about, rows })}`);
  }
}

async function query(databaseUrl: string, text: string): Promise<{ rows: number }[]> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const { rows } = await client.query<{ rows: number }>(text);
  await client.end();
  return rows;
}
