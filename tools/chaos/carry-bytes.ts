import type { Socket } from 'node:net';

export type LineFaults = {
  /** Milliseconds of delay in each direction. */
  latencyMs?: number | undefined;
  /** Nothing arrives, not even ends and resets, and neither side notices. When the fault ends, everything arrives. */
  blackhole?: boolean | undefined;
};

/** An event at one end of a connection, in order: bytes, their end, or a reset. */
type Arrival = { what: Buffer | 'end' | 'reset'; due: number };

/** The most bytes that are held. Then the sender is paused, as with a full TCP window. */
const HELD_MAX = 4 * 1024 * 1024;
const BLACKHOLE_POLL_MS = 10;

/**
 * Carries one direction of a connection. The bytes and the end of `from` reach `to` in order: at once, late or never,
 * as `faults` says at that time. @param deliver gets the bytes when they are due, and writes them to `to`
 * @param beforeEnd is called before `to` is ended
 */
export function carryBytes(
  from: Socket,
  to: Socket,
  faults: LineFaults,
  deliver: (bytes: Buffer) => void,
  beforeEnd: () => void = () => {},
): void {
  const line: Arrival[] = [];
  let held = 0;
  let waiting: NodeJS.Timeout | undefined;

  function put(what: Arrival['what']): void {
    line.push({ what, due: performance.now() + (faults.latencyMs ?? 0) });
    if (waiting === undefined) carry();
  }

  function carry(): void {
    waiting = undefined;
    for (;;) {
      const [next] = line;
      if (next === undefined) break;
      const wait = faults.blackhole === true ? BLACKHOLE_POLL_MS : next.due - performance.now();
      if (wait > 0 && !to.destroyed) {
        waiting = setTimeout(carry, wait).unref();
        break;
      }
      line.shift();
      arrive(next.what);
    }
    holdBack();
  }

  function arrive(what: Arrival['what']): void {
    if (typeof what !== 'string') held -= what.length;
    if (to.destroyed) return;
    if (what === 'reset') {
      resetSocket(to);
    } else if (what === 'end') {
      beforeEnd();
      to.end();
    } else {
      deliver(what);
    }
  }

  function holdBack(): void {
    if (held > HELD_MAX || (to.writableNeedDrain && !to.destroyed)) from.pause();
    else from.resume();
  }

  from.on('data', (bytes: Buffer) => {
    held += bytes.length;
    put(bytes);
    holdBack();
  });
  from.on('end', () => put('end'));
  from.on('error', () => put('reset'));
  to.on('drain', holdBack);
  to.on('close', holdBack);
}

/** Resets a socket at once and discards unwritten bytes. */
export function resetSocket(socket: Socket): void {
  // A socket whose end is already queued ignores `resetAndDestroy` and would stay open.
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}
