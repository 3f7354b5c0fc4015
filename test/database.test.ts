import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { withClient } from '../src/core/postgres/with-client.ts';
import { FLUSH_CONNECTIONS, openDatabase } from '../src/database.ts';
import { createDatabase } from './support/create-database.ts';

/** One message of Postgres's protocol: type, length, body. */
function message(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

const AUTHENTICATED = message('R', Buffer.from([0, 0, 0, 0]));
const READY = message('Z', Buffer.from('I'));
const TERMINATED = message(
  'E',
  Buffer.from('SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'),
);

it('a connection that is ended in the moment it is made costs its query, not the process', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    // In one packet, so that nothing comes between the two.
    socket.once('data', () => socket.end(Buffer.concat([AUTHENTICATED, READY, TERMINATED])));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { pool, flushPool } = openDatabase(`postgres://x@127.0.0.1:${port}/x`, 5, () => {});
  const died: unknown[] = [];
  const onDeath = (error: unknown): void => void died.push(error);
  process.on('uncaughtException', onDeath);
  await expect(withClient(pool, (client) => client.query('SELECT 1'))).rejects.toThrow();
  await expect(pool.query('SELECT 1')).rejects.toThrow();
  await sleep(50);
  process.off('uncaughtException', onDeath);
  expect(died).toEqual([]);
  await Promise.all([pool.end(), flushPool.end()]);
  server.close();
});

it('a connection whose prepared statement a migration made stale costs one query, and is not lent again', async () => {
  // One of each pool.
  const { pool, flushPool } = openDatabase(await createDatabase(), 1 + FLUSH_CONNECTIONS, () => {});
  const ask = (): Promise<unknown> =>
    withClient(pool, (client) => client.query({ name: 'all', text: 'SELECT * FROM credentials' }));
  await ask();
  await pool.query('ALTER TABLE credentials ADD COLUMN of_the_next text');
  await expect(ask()).rejects.toThrow('cached plan must not change result type');
  await ask();
  await Promise.all([pool.end(), flushPool.end()]);
});
