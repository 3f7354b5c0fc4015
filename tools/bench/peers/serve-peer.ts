/**
 * Serves one peer in its own process. The arguments are the peer's name and the database's URL. One message has the
 * senders, and is answered with the port. The process ends when its parent disconnects.
 */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bareFastify, type Keep } from '../variants/bare-fastify.ts';
import type { Sender } from '../stage/prepare-bench-database.ts';
import type { Peer } from './peers.ts';

/** Both queues are served by the same bare Fastify. Each process loads only its own peer. */
async function serve(peer: Peer, databaseUrl: string, senders: readonly Sender[]): Promise<Server> {
  if (peer === 'node-red') return (await import('./serve-node-red.ts')).serveNodeRed(databaseUrl, senders);
  const app = bareFastify(senders, await keepBy(peer, databaseUrl));
  await app.ready();
  return app.server;
}

async function keepBy(peer: 'pg-boss' | 'graphile-worker', databaseUrl: string): Promise<Keep> {
  if (peer === 'pg-boss') return (await import('./keep-by-pg-boss.ts')).keepByPgBoss(databaseUrl);
  return (await import('./keep-by-graphile-worker.ts')).keepByGraphileWorker(databaseUrl);
}

const [peer, databaseUrl] = process.argv.slice(2) as [Peer, string];
process.once('message', (senders: Sender[]) => {
  void (async () => {
    const server = await serve(peer, databaseUrl, senders);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    process.send?.({ port: (server.address() as AddressInfo).port });
  })();
});
