import type { ConnectionCounts } from '../core/domain/observed.ts';
import { readFileSync } from 'node:fs';
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Log } from '../core/domain/log.ts';

/** Maximum number of connections that are not member streams. It limits memory: an idle connection takes some 15 kB. */
const MOST = 4_096;
/** Files for the process's own use: Postgres, 416 calls to POS systems and the platform, Pub/Sub, console files. */
const OWN = 2_048;
/** If the file limit is too low for all connections, member streams leave this many to the other endpoints. */
const OTHERS = 2_048;
/** The assumed file limit if the system reports no limit. */
const FILES = 1_024;

/**
 * Computes from the file limit how many connections a process may accept, and how many of them may be member streams.
 * With a low file limit, half of the files stay free for the process itself. With few connections, half of the
 * connections stay free for the other endpoints.
 * @param streams the configured maximum of member streams
 */
export function mostConnections(streams = 0): { connections: number; streams: number } {
  const files = fileLimit();
  const connections = Math.min(MOST + streams, files - Math.min(OWN, Math.ceil(files / 2)));
  return { connections, streams: Math.min(streams, connections - Math.min(OTHERS, Math.ceil(connections / 2))) };
}

/** The soft limit, which Node raised to the hard limit. https://man7.org/linux/man-pages/man5/proc_pid_limits.5.html */
function fileLimit(): number {
  try {
    const limit = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return limit === 'unlimited' ? Infinity : Number(limit ?? FILES);
  } catch {
    return FILES;
  }
}

/**
 * Marks the request of this response as authenticated: its connection stays open from now on.
 * @param by the owner of the credential. One owner's connections are limited to a share of all connections
 */
export type Authenticate = (response: ServerResponse, by: string) => void;

/** The connections of all listeners of a process. */
export type Connections = {
  /** Counts a server's connections. The limit applies to the connections of all servers together. */
  watch(server: Server): void;
  /** The unfinished response of the current request on this connection. */
  responseOn(socket: Socket): ServerResponse | undefined;
  /** From now on every answer says `Connection: close`: no sender may reuse its connection. */
  endReuse(): void;
  /** A server's connections that have sent nothing yet. Node 24 waits for them when the server closes. */
  unusedOf(server: Server): Socket[];
  authenticate: Authenticate;
  counts(): ConnectionCounts;
};

type Connection = {
  socket: Socket | undefined;
  server: Server | undefined;
  authenticatedBy: string | undefined;
  response: ServerResponse | undefined;
  /** The neighbours in the ring of idle connections. While this connection is not idle, both are this connection. */
  before: Connection;
  after: Connection;
};

const REPORT_AGAIN_MS = 60_000;
/** Share reserved for anonymous connections, because a POS is anonymous until it sends its token. */
const ANONYMOUS = 1 / 4;
/** The largest share of all connections that one credential holds. */
const OF_ONE = 1 / 8;

/**
 * Limits connections, so that a client that opens many does not lock out others. When a new connection exceeds the
 * limit, one connection is closed, even in the middle of a request:
 * - While few connections are anonymous: the authenticated connection that was idle for longest.
 * - If the new connection's address has more anonymous connections to its listener than the average address: the oldest
 *   anonymous connection of that address. No header was read yet, so the address is the socket's.
 * - Otherwise: the oldest anonymous connection.
 *
 * An anonymous connection is closed after one response (`Connection: close`). An idle time-out instead could close it
 * just when a load balancer sends the next request. The server's `headersTimeout` closes connections that send no
 * complete head; Node counts it from the start of the connection.
 * @param most connections of all servers
 */
export function boundConnections(most: number, log: Log): Connections {
  // An entry stays for the life of its connection. A Map that changed with every request cost a fifth of the processor:
  // its old tables refer to newer tables, so the garbage collector cannot free the entries of any table.
  const open = new Map<Socket, Connection>();
  const anonymous = anonymousOnly();
  const authenticatedBy = new Map<string, number>();
  /** The idle authenticated connections, longest idle first. A ring, because a Map that changes so often is slow. */
  const resting = connectionOf();
  /** Whether the sender of an anonymous request wants to reuse the connection. */
  const wouldKeepAlive = new WeakMap<ServerResponse, boolean>();
  const closed = { anonymous: 0, authenticated: 0 };
  let watched = 0;
  let isEnding = false;
  let warnedAt = -Infinity;

  const forget = (socket: Socket): void => {
    const connection = open.get(socket);
    if (connection === undefined) return;
    open.delete(socket);
    anonymous.remove(socket);
    place(connection, undefined);
    if (connection.authenticatedBy !== undefined) oneLess(authenticatedBy, connection.authenticatedBy);
  };
  const warn = (): void => {
    if (performance.now() - warnedAt < REPORT_AGAIN_MS) return;
    warnedAt = performance.now();
    const about = { most, anonymous: anonymous.count() };
    log.warn(about, 'too many connections: those that never authenticated are closed first');
  };
  const closeOne = (newcomer: Socket): void => {
    // guard: few-strangers
    const longestIdle = anonymous.count() <= most * ANONYMOUS ? resting.after.socket : undefined;
    const ending = longestIdle ?? anonymous.oldestFor(newcomer);
    closed[longestIdle === undefined ? 'anonymous' : 'authenticated'] += 1;
    warn();
    // Counts the connection as closed now, because its close event comes later.
    forget(ending);
    ending.destroy();
  };

  return {
    watch(server) {
      watched += 1;
      const listener = watched;
      server.on('connection', (socket: Socket) => {
        open.set(socket, connectionOf(socket, server));
        anonymous.add(socket, `${listener} ${socket.remoteAddress}`);
        socket.once('close', () => forget(socket));
        // guard: makes-room
        if (open.size > most) closeOne(socket);
      });
      server.prependListener('request', ({ socket }, response) => {
        const connection = open.get(socket);
        if (connection === undefined) return;
        connection.response = response;
        if (isEnding) response.setHeader('connection', 'close');
        place(connection, undefined);
        response.once('close', () => {
          if (connection.response !== response) return;
          connection.response = undefined;
          if (connection.authenticatedBy !== undefined && open.has(socket)) place(connection, resting);
          // A closing server closes its idle connections only once. This one became idle later, so we close it.
          if (!server.listening) socket.destroySoon();
        });
        if (connection.authenticatedBy !== undefined) return;
        wouldKeepAlive.set(response, response.shouldKeepAlive);
        response.shouldKeepAlive = false;
      });
    },
    responseOn: (socket) => open.get(socket)?.response,
    endReuse() {
      isEnding = true;
      for (const { response } of open.values())
        if (response?.headersSent === false) response.setHeader('connection', 'close');
    },
    unusedOf: (server) =>
      [...open].flatMap(([socket, each]) => (each.server === server && socket.bytesRead === 0 ? [socket] : [])),
    authenticate(response, by) {
      const { socket } = response.req;
      const connection = open.get(socket);
      if (connection === undefined || connection.authenticatedBy !== undefined) return;
      const own = (authenticatedBy.get(by) ?? 0) + 1;
      // guard: of-one-credential
      if (own > most * OF_ONE) return;
      authenticatedBy.set(by, own);
      connection.authenticatedBy = by;
      anonymous.remove(socket);
      response.shouldKeepAlive = wouldKeepAlive.get(response) ?? response.shouldKeepAlive;
    },
    counts: () => ({
      most,
      open: { anonymous: anonymous.count(), authenticated: open.size - anonymous.count() },
      closed: { ...closed },
    }),
  };
}

function anonymousOnly() {
  /** Each anonymous connection's listener and address, oldest connection first. */
  const all = new Map<Socket, string>();
  const countFrom = new Map<string, number>();
  return {
    count: () => all.size,
    add(socket: Socket, from: string): void {
      all.set(socket, from);
      countFrom.set(from, (countFrom.get(from) ?? 0) + 1);
    },
    remove(socket: Socket): void {
      const from = all.get(socket);
      if (from === undefined) return;
      all.delete(socket);
      oneLess(countFrom, from);
    },
    /** Finds the anonymous connection to close for a new connection. */
    oldestFor(newcomer: Socket): Socket {
      const own = all.get(newcomer) ?? '';
      const crowds = (countFrom.get(own) ?? 0) > all.size / countFrom.size;
      // guard: among-its-own
      for (const [socket, from] of all) if (!crowds || from === own) return socket;
      return newcomer;
    },
  };
}

function connectionOf(socket?: Socket, server?: Server): Connection {
  const connection = { socket, server, authenticatedBy: undefined, response: undefined } as Connection;
  return Object.assign(connection, { before: connection, after: connection });
}

/** Removes a connection from its ring, and appends it to another ring if one is given. */
function place(connection: Connection, ring: Connection | undefined): void {
  const { before, after } = connection;
  before.after = after;
  after.before = before;
  connection.after = ring ?? connection;
  connection.before = ring?.before ?? connection;
  if (ring !== undefined) ring.before = ring.before.after = connection;
}

/** Counts one less of these, and forgets them at 0. */
export function oneLess(counts: Map<string, number>, of: string): void {
  const left = (counts.get(of) ?? 0) - 1;
  if (left > 0) counts.set(of, left);
  else counts.delete(of);
}
