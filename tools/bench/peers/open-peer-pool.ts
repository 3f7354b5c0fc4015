import pg from 'pg';

/**
 * As many connections as the service has. They are never closed. Otherwise they would be idle for too long while other
 * variants are measured, and their plans would be lost.
 */
export const POOL = { max: 10, idleTimeoutMillis: 0 };

export function openPeerPool(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, ...POOL });
  // graphile-worker requires both error listeners.
  pool.on('error', console.error);
  return pool.on('connect', (client) => void client.on('error', console.error));
}
