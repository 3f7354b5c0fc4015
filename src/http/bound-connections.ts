import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Log } from '../core/domain/log.ts';

/** Tells that the request of this answer has authenticated: its connection is kept from now on. */
export type Recognise = (response: ServerResponse) => void;

/** The connections of all listeners of a process. */
export type Connections = {
  /** Counts a server's connections, and bounds them together with those of the others. */
  watch(server: Server): void;
  /** The answer that a request on the connection waits for. */
  responseOn(socket: Socket): ServerResponse | undefined;
  /** All of a server's. */
  responsesOf(server: Server): ServerResponse[];
  recognise: Recognise;
  counts(): ConnectionCounts;
};

export type ConnectionCounts = {
  most: number;
  open: Record<Whose, number>;
  /** Closed to make room, since the start. */
  closed: Record<Whose, number>;
};

type Connection = { server: Server; isRecognised: boolean; askedAt: number; response: ServerResponse | undefined };

/** Of a stranger no request has authenticated yet. */
export const WHOSE = ['stranger', 'recognised'] as const;
export type Whose = (typeof WHOSE)[number];

const TELL_AGAIN_MS = 60_000;

/**
 * Bounds connections, so that whoever opens many shuts nobody out. Beyond the bound the stranger that came first is
 * closed, whatever it does: so strangers shut strangers out, and a POS that has shown its token never. An address that
 * has more of them at a listener than others have makes room among its own; it is the socket's, since no header is read yet. Where only recognised connections are left,
 * the one that has rested for longest makes room, and if all are at work the new one.
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
  /** In the order in which they came, each with its listener and address. */
  const strangers = new Map<Socket, string>();
  const strangersFrom = new Map<string, number>();
  /** Whether the sender of a stranger's request would keep the connection. */
  const wouldKeep = new WeakMap<ServerResponse, boolean>();
  const closed = { stranger: 0, recognised: 0 };
  let watched = 0;
  let toldAt = -Infinity;

  const noStranger = (socket: Socket): void => {
    const from = strangers.get(socket);
    if (from === undefined) return;
    strangers.delete(socket);
    const left = (strangersFrom.get(from) ?? 0) - 1;
    if (left > 0) strangersFrom.set(from, left);
    else strangersFrom.delete(from);
  };
  const forget = (socket: Socket): void => {
    open.delete(socket);
    noStranger(socket);
  };
  /** The stranger that makes room for a new one, which is one itself. */
  const outstayed = (newcomer: Socket): Socket => {
    const own = strangers.get(newcomer) ?? '';
    const crowds = (strangersFrom.get(own) ?? 0) > strangers.size / strangersFrom.size;
    // guard: among-its-own
    for (const [socket, from] of strangers) if (!crowds || from === own) return socket;
    return newcomer;
  };
  /** Of those without a request, the one whose last came first. Looked for only where no stranger is left. */
  const rested = (): Socket | undefined => {
    const resting = [...open].filter(([, { isRecognised, response }]) => isRecognised && response === undefined);
    return resting.toSorted(([, a], [, b]) => a.askedAt - b.askedAt)[0]?.[0];
  };
  const tell = (): void => {
    if (performance.now() - toldAt < TELL_AGAIN_MS) return;
    toldAt = performance.now();
    const about = { most, strangers: strangers.size };
    log.warn(about, 'too many connections: those that never authenticated are closed first');
  };
  const makeRoom = (newcomer: Socket): void => {
    const stranger = outstayed(newcomer);
    const ending = stranger === newcomer ? (rested() ?? newcomer) : stranger;
    closed[open.get(ending)?.isRecognised === true ? 'recognised' : 'stranger'] += 1;
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
        open.set(socket, { server, isRecognised: false, askedAt: 0, response: undefined });
        const from = `${listener} ${socket.remoteAddress}`;
        strangers.set(socket, from);
        strangersFrom.set(from, (strangersFrom.get(from) ?? 0) + 1);
        socket.once('close', () => forget(socket));
        // guard: makes-room
        if (open.size > most) makeRoom(socket);
      });
      // Before whoever answers.
      server.prependListener('request', ({ socket }, response) => {
        const connection = open.get(socket);
        if (connection === undefined) return;
        connection.askedAt = performance.now();
        connection.response = response;
        response.once('close', () => {
          if (connection.response !== response) return;
          connection.response = undefined;
          // Node closes only those connections that are idle at the beginning, and would wait for later ones.
          if (!server.listening) socket.destroySoon();
        });
        if (connection.isRecognised) return;
        wouldKeep.set(response, response.shouldKeepAlive);
        response.shouldKeepAlive = false;
      });
    },
    responseOn: (socket) => open.get(socket)?.response,
    responsesOf: (server) =>
      [...open.values()].flatMap((each) => (each.server === server ? (each.response ?? []) : [])),
    recognise(response) {
      const { socket } = response.req;
      const connection = open.get(socket);
      if (connection === undefined || connection.isRecognised) return;
      connection.isRecognised = true;
      noStranger(socket);
      response.shouldKeepAlive = wouldKeep.get(response) ?? response.shouldKeepAlive;
    },
    counts: () => ({
      most,
      open: { stranger: strangers.size, recognised: open.size - strangers.size },
      closed: { ...closed },
    }),
  };
}
