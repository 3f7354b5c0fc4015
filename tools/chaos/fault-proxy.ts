import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { carryBytes, resetSocket, type LineFaults } from './carry-bytes.ts';
import { watchCommits, type Commit, type Cut, type CutMoment } from './watch-commits.ts';

/** Faults, which may be set and removed at any time, also for open connections. */
export type ProxyFaults = LineFaults & {
  /** Called at each commit. Returns the moment at which the connection is cut both ways; undefined for no cut. */
  cutAfterCommit?: ((commit: Commit) => CutMoment | undefined) | undefined;
};

export type FaultProxy = {
  /** The port on 127.0.0.1. */
  readonly port: number;
  readonly faults: ProxyFaults;
  /** Cuts after a commit so far, oldest first. */
  readonly cuts: readonly Cut[];
  /** The number of connected clients. */
  readonly connections: number;
  /** Returns the URL of the same database through this proxy. */
  through(databaseUrl: string): string;
  /** Connects new clients to another port, like a host name whose address changes. Open connections stay. */
  lead(targetPort: number): void;
  /** Stops listening: new connections are refused, open ones continue. */
  refuse(): void;
  /** Listens again, at the same port. @throws if another program has taken the port and keeps it */
  accept(): Promise<void>;
  /** Resets every connection, on both sides. */
  resetAll(): void;
  /** Ends every connection and stops listening. Safe to repeat. */
  stop(): Promise<void>;
};

/** Time to get the port again. While it is free, the system may give it to any other program for a connection. */
const PORT_PATIENCE_MS = 5000;

/**
 * Stands in front of a Postgres at `127.0.0.1:targetPort` and fails as a network does. It makes no random choices;
 * callers may, see `cutSometimes`. If Postgres is down, clients see a reset.
 */
export async function startFaultProxy(about: { targetPort: number }): Promise<FaultProxy> {
  let { targetPort } = about;
  const faults: ProxyFaults = {};
  const cuts: Cut[] = [];
  const clients = new Set<Socket>();
  const sockets = new Set<Socket>();
  const stopped = new AbortController();
  let server = await listen(0);
  const { port } = server.address() as AddressInfo;

  async function listen(at: number): Promise<Server> {
    const listening = createServer({ allowHalfOpen: true, noDelay: true }, join).listen(at, '127.0.0.1');
    await once(listening, 'listening');
    // An error is, for example, too many open files. The client's connection then fails, so nothing else is needed.
    listening.on('error', () => {});
    return listening;
  }

  function join(client: Socket): void {
    const upstream = connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    clients.add(client);
    client.once('close', () => clients.delete(client));
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    }

    const watch = watchCommits((commit) => faults.cutAfterCommit?.(commit));
    const cut = (made: Cut): void => {
      cuts.push(made);
      resetSocket(client);
      resetSocket(upstream);
    };
    const toServer = (bytes: Buffer): void => {
      const made = watch.sent(bytes);
      if (made?.moment !== 'unsent') upstream.write(bytes);
      if (made !== undefined) cut(made);
    };
    const toClient = (bytes: Buffer): void => {
      const answered = watch.answered(bytes);
      if (Array.isArray(answered)) for (const part of answered) client.write(part);
      else cut(answered);
    };
    carryBytes(client, upstream, faults, toServer);
    carryBytes(upstream, client, faults, toClient, () => {
      for (const part of watch.rest()) client.write(part);
    });
  }

  function refuse(): void {
    // The port is free at once. Not awaited: `close` completes only when all open connections have ended.
    server.close();
  }

  return {
    port,
    faults,
    cuts,
    get connections() {
      return clients.size;
    },
    through(databaseUrl) {
      const url = new URL(databaseUrl);
      url.hostname = '127.0.0.1';
      url.port = String(port);
      return url.href;
    },
    lead(elsewhere) {
      targetPort = elsewhere;
    },
    refuse,
    async accept() {
      const deadline = performance.now() + PORT_PATIENCE_MS;
      while (!server.listening && !stopped.signal.aborted) {
        try {
          server = await listen(port);
        } catch (error) {
          if (performance.now() > deadline) throw error;
          await sleep(100);
        }
      }
    },
    resetAll() {
      for (const socket of sockets) resetSocket(socket);
    },
    async stop() {
      stopped.abort();
      refuse();
      const closed = [...sockets].map((socket) => new Promise((done) => socket.once('close', done)));
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
    },
  };
}
