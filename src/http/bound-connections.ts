import { readFileSync } from 'node:fs';
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Log } from '../core/domain/log.ts';

/** For the memory that they take, some 15 kB each while they are idle. */
const MOST = 4_096;
/** Files for its own: Postgres, 416 calls to POS systems and the platform, Pub/Sub, the console's files. */
const OWN = 2_048;
/** Of the connections, those that streams leave to other doors where there are not files for all. */
const OTHERS = 2_048;
/** Where the system does not say. */
const FILES = 1_024;

/**
 * Tells how many connections a process may have accepted at once, and how many of them may be members' streams, by the
 * files that it may open: half of few are for its own, and half of few connections for other doors.
 * @param streams the most that are wanted
 */
export function mostConnections(streams = 0): { connections: number; streams: number } {
  const files = fileLimit();
  const connections = Math.min(MOST + streams, files - Math.min(OWN, Math.ceil(files / 2)));
  return { connections, streams: Math.min(streams, connections - Math.min(OTHERS, Math.ceil(connections / 2))) };
}

/** The soft limit, which Node has raised to the hard one. https://man7.org/linux/man-pages/man5/proc_pid_limits.5.html */
function fileLimit(): number {
  try {
    const limit = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return limit === 'unlimited' ? Infinity : Number(limit ?? FILES);
  } catch {
    return FILES;
  }
}

/**
 * Tells that the request of this answer has authenticated and is served: its connection is kept from now on.
 * @param by whose credential it was. One keeps no more than its share of all connections
 */
export type Authenticate = (response: ServerResponse, by: string) => void;

/** The connections of all listeners of a process. */
export type Connections = {
  /** Counts a server's connections, and bounds them together with those of the others. */
  watch(server: Server): void;
  /** The answer that a request on the connection waits for. */
  responseOn(socket: Socket): ServerResponse | undefined;
  /** All of a server's. */
  responsesOf(server: Server): ServerResponse[];
  /** A server's connections that have sent nothing yet. Node 24 waits for them when the server closes. */
  unusedOf(server: Server): Socket[];
  authenticate: Authenticate;
  counts(): ConnectionCounts;
};

export type ConnectionCounts = {
  most: number;
  open: Record<Whose, number>;
  /** Closed to make room, since the start. */
  closed: Record<Whose, number>;
};

type Connection = {
  socket: Socket | undefined;
  server: Server | undefined;
  authenticatedBy: string | undefined;
  response: ServerResponse | undefined;
  /** Its neighbours among those at rest; itself while it is not one of them. */
  before: Connection;
  after: Connection;
};

/** Of a stranger no request has authenticated yet. */
export const WHOSE = ['anonymous', 'authenticated'] as const;
export type Whose = (typeof WHOSE)[number];

const REPORT_AGAIN_MS = 60_000;
/** Of all connections, those that strangers have in any case: a POS that comes is one until it shows its token. */
const ANONYMOUS = 1 / 4;
/** Of all connections, those that are kept for one credential. */
const OF_ONE = 1 / 8;

/**
 * Bounds connections, so that whoever opens many shuts nobody out. Beyond the bound the stranger that came first is
 * closed, whatever it does: so strangers shut strangers out. An address that has more of them at a listener than others
 * have makes room among its own; it is the socket's, since no header is read yet. While strangers are few, the recognised
 * connection that has rested for longest makes room. A credential's connections beyond its share stay strangers.
 *
 * A stranger gets one answer, and `Connection: close` with it: an idle time-out would now and then meet the next request
 * of a load balancer. One that sends no whole head is cut off by the server's `headersTimeout`, which Node counts from
 * the connection's first moment.
 *
 * @param most connections of all servers
 */
export function boundConnections(most: number, log: Log): Connections {
  // One entry for as long as a connection lives. A Map that changes with every request costs a fifth of the processor:
  // of its tables that are over, old ones hold on to newer ones, and the garbage collector keeps what all of them held.
  const open = new Map<Socket, Connection>();
  const anonymous = anonymousOnly();
  const authenticatedBy = new Map<string, number>();
  /** A ring of the recognised ones at rest, longest first, for it changes with every request and a Map must not. */
  const resting = connectionOf();
  /** Whether the sender of a stranger's request would keep the connection. */
  const wouldStore = new WeakMap<ServerResponse, boolean>();
  const closed = { anonymous: 0, authenticated: 0 };
  let watched = 0;
  let notifiedAt = -Infinity;

  const forget = (socket: Socket): void => {
    const connection = open.get(socket);
    if (connection === undefined) return;
    open.delete(socket);
    anonymous.remove(socket);
    place(connection, undefined);
    if (connection.authenticatedBy !== undefined) oneLess(authenticatedBy, connection.authenticatedBy);
  };
  const tell = (): void => {
    if (performance.now() - notifiedAt < REPORT_AGAIN_MS) return;
    notifiedAt = performance.now();
    const about = { most, anonymous: anonymous.count() };
    log.warn(about, 'too many connections: those that never authenticated are closed first');
  };
  const makeRoom = (newcomer: Socket): void => {
    // guard: few-strangers
    const rested = anonymous.count() <= most * ANONYMOUS ? resting.after.socket : undefined;
    const ending = rested ?? anonymous.outstayed(newcomer);
    closed[rested === undefined ? 'anonymous' : 'authenticated'] += 1;
    tell();
    // Its place is free at once; the event of its end comes later.
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
        if (open.size > most) makeRoom(socket);
      });
      // Before whoever answers.
      server.prependListener('request', ({ socket }, response) => {
        const connection = open.get(socket);
        if (connection === undefined) return;
        connection.response = response;
        place(connection, undefined);
        response.once('close', () => {
          if (connection.response !== response) return;
          connection.response = undefined;
          if (connection.authenticatedBy !== undefined && open.has(socket)) place(connection, resting);
          // Node closes only those connections that are idle at the beginning, and would wait for later ones.
          if (!server.listening) socket.destroySoon();
        });
        if (connection.authenticatedBy !== undefined) return;
        wouldStore.set(response, response.shouldKeepAlive);
        response.shouldKeepAlive = false;
      });
    },
    responseOn: (socket) => open.get(socket)?.response,
    responsesOf: (server) =>
      [...open.values()].flatMap((each) => (each.server === server ? (each.response ?? []) : [])),
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
      response.shouldKeepAlive = wouldStore.get(response) ?? response.shouldKeepAlive;
    },
    counts: () => ({
      most,
      open: { anonymous: anonymous.count(), authenticated: open.size - anonymous.count() },
      closed: { ...closed },
    }),
  };
}

/** The connections that no request has authenticated yet, each with its listener and address. */
function anonymousOnly() {
  /** In the order in which they came. */
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
    /** The stranger that is closed for a newcomer, which is a stranger too. */
    outstayed(newcomer: Socket): Socket {
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

/** Takes a connection out of its ring, and puts it at the end of another, if that is given. */
function place(connection: Connection, ring: Connection | undefined): void {
  const { before, after } = connection;
  before.after = after;
  after.before = before;
  connection.after = ring ?? connection;
  connection.before = ring?.before ?? connection;
  if (ring !== undefined) ring.before = ring.before.after = connection;
}

function oneLess(counts: Map<string, number>, of: string): void {
  const left = (counts.get(of) ?? 0) - 1;
  if (left > 0) counts.set(of, left);
  else counts.delete(of);
}
