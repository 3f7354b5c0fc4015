import pg from 'pg';

/**
 * As many connections as the service has. They are never closed: others run for longer than an idle one would live, and
 * its plans with it.
 */
export const POOL = { max: 10, idleTimeoutMillis: 0 };

export function openPeerPool(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, ...POOL });
  // graphile-worker asks for both.
  pool.on('error', console.error);
  return pool.on('connect', (client) => void client.on('error', console.error));
}
