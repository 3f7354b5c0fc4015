import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FollowObserved, Observe } from '../../core/domain/observed.ts';

export type MemberStream = {
  /** Whether its head is sent: from then on it is a stream. */
  isOpen(): boolean;
  /** Sends the head, unless it is sent, and events. */
  write(events: string): void;
  /** Answers that nothing is to come, in place of a head. */
  endUnopened(): void;
  /** Sends the last events, and closes. */
  end(why: Closed, events?: string): void;
};

export type MemberStreams = {
  /**
   * Takes an answer as a stream, which is opened by its first write, or by itself if that takes long.
   * @param about.livesMs time until its token is over
   * @param about.onClose is called once, however it ends
   * @returns why not, if there are too many
   */
  admit(
    raw: ServerResponse,
    about: { serviceOrderId: string; headers: OutgoingHttpHeaders; livesMs: number; onClose: () => void },
  ): MemberStream | 'too_many' | 'too_many_of_order';
  /** The orders that are followed here. */
  followed(): ReadonlySet<string>;
  /** Closes all streams, spread over this time, and any new one at once. */
  drain(milliseconds: number): Promise<void>;
};

type Closed = Extract<FollowObserved, { action: 'close' }>['why'];

type Open = {
  raw: ServerResponse;
  socket: Socket;
  serviceOrderId: string;
  headers: OutgoingHttpHeaders | undefined;
  /** Times of the monotonic clock. */
  beatAt: number;
  expiresAt: number;
  agesAt: number;
  /** Why and when it was ended; its reader may not have read the rest. */
  ended: { why: Closed; at: number } | undefined;
};

const STREAM = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };
/** Streams of one order: whoever has its token takes no places from other members. */
const ORDER_MAX = 20;
const SWEEP_MS = 1_000;
/** Below the idle time-out of any proxy, which is 30 s at the least. */
const BEAT_MS = 20_000;
/** A stream that has no news by then, since Postgres is away, is opened without. */
const FIRST_NEWS_MS = 2_000;
/** A reader whose machine died is noticed late, so that every stream ends some time. It comes back and misses nothing. */
const MAX_AGE_MS = 30 * 60_000;
/** Bytes that wait for a slow reader: more than all events of an order. */
const BEHIND_MAX = 64 * 1024;
/** Time to read the rest. */
const FLUSH_MS = 10_000;
const RETRY_MS = 1_000;
const RETRY_SPREAD_MS = 3_000;
/** The shortest time between two steps of a drain. */
const DRAIN_STEP_MS = 50;

/**
 * The streams to members' clients: heartbeats, the ends that come with time, and what becomes of a reader that does not
 * read. One timer serves them all, and each writes into its connection directly: there may be ten thousand.
 * @param most the most at a time
 */
export function memberStreams({ most, observe }: { most: number; observe: Observe }): MemberStreams {
  const streams = new Set<Open>();
  const countOf = new Map<string, number>();
  let isDraining = false;

  /** From here on nobody follows by it, though its reader may read the rest. @returns false if that is so already */
  const conclude = (stream: Open, why: Closed): boolean => {
    if (stream.ended !== undefined) return false;
    stream.ended = { why, at: performance.now() };
    const left = (countOf.get(stream.serviceOrderId) ?? 0) - 1;
    if (left > 0) countOf.set(stream.serviceOrderId, left);
    else countOf.delete(stream.serviceOrderId);
    return true;
  };

  const write = (stream: Open, events: string): void => {
    const { socket, headers, ended } = stream;
    if (ended !== undefined) return;
    if (headers !== undefined) {
      stream.headers = undefined;
      stream.beatAt = performance.now() + BEAT_MS * Math.random();
      // Fastify's, which would keep its request and reply: this answer comes to no end of its own.
      stream.raw.removeAllListeners('finish').removeAllListeners('error');
      socket.write(`${headOf({ ...headers, ...STREAM })}${retry()}${events}`);
      observe({ what: 'follow', action: 'open' });
      if (isDraining) end(stream, 'drained');
      return;
    }
    if (events === '') return;
    socket.write(events);
    if (socket.writableLength > BEHIND_MAX) cutOff(stream, 'slow');
  };

  const end = (stream: Open, why: Closed, events = ''): void => {
    write(stream, events);
    if (conclude(stream, why)) stream.socket.destroySoon();
  };

  const cutOff = (stream: Open, why: Closed): void => {
    conclude(stream, why);
    stream.socket.destroy();
  };

  const beat = (stream: Open, now: number): void => {
    // What was written twenty seconds ago still waits for its reader.
    if (stream.socket.writableLength > 0) cutOff(stream, 'slow');
    else write(stream, ':\n\n');
    stream.beatAt = now + BEAT_MS;
  };

  const sweep = (): void => {
    const now = performance.now();
    for (const stream of streams) {
      if (stream.ended !== undefined) {
        if (now - stream.ended.at > FLUSH_MS) stream.socket.destroy();
      } else if (now >= stream.expiresAt) end(stream, 'expired', 'event: expired\ndata: {}\n\n');
      else if (now >= stream.agesAt) end(stream, 'aged');
      else if (now >= stream.beatAt) beat(stream, now);
    }
    if (isDraining && streams.size === 0) clearInterval(sweeping);
  };
  const sweeping = setInterval(sweep, SWEEP_MS);
  sweeping.unref();

  return {
    admit(raw, { serviceOrderId, headers, livesMs, onClose }) {
      const count = countOf.get(serviceOrderId) ?? 0;
      if (streams.size >= most) return 'too_many';
      if (count >= ORDER_MAX) return 'too_many_of_order';
      countOf.set(serviceOrderId, count + 1);
      const now = performance.now();
      const stream: Open = {
        raw,
        socket: raw.req.socket,
        serviceOrderId,
        headers,
        beatAt: now + FIRST_NEWS_MS,
        expiresAt: now + livesMs,
        agesAt: now + MAX_AGE_MS * (0.9 + Math.random() / 5),
        ended: undefined,
      };
      streams.add(stream);
      raw.once('close', () => {
        streams.delete(stream);
        conclude(stream, 'left');
        if (stream.headers === undefined)
          observe({ what: 'follow', action: 'close', why: stream.ended?.why ?? 'left' });
        onClose();
      });
      return {
        isOpen: () => stream.headers === undefined,
        write: (events) => write(stream, events),
        endUnopened() {
          conclude(stream, 'ended');
          raw.writeHead(204, stream.headers).end();
        },
        end: (why, events) => end(stream, why, events),
      };
    },
    followed: () => new Set(countOf.keys()),
    async drain(milliseconds) {
      isDraining = true;
      const all = [...streams];
      const steps = Math.max(1, Math.min(all.length, Math.floor(milliseconds / DRAIN_STEP_MS)));
      for (let step = 0; step < steps; step++) {
        const some = all.slice((step * all.length) / steps, ((step + 1) * all.length) / steps);
        for (const stream of some) end(stream, 'drained', retry());
        if (step + 1 < steps) await sleep(milliseconds / steps);
      }
    },
  };
}

/**
 * The head of a stream that its connection's end ends. Node would keep the pieces of its own for as long as the stream, write
 * three times for every event, and so much more for the collector to mark that webhooks beside 10,000 streams were a sixth
 * fewer.
 */
function headOf(headers: OutgoingHttpHeaders): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`);
  return ['HTTP/1.1 200 OK', ...lines, `date: ${new Date().toUTCString()}`, 'connection: close', '', ''].join('\r\n');
}

/** Clients that are cut together come back spread. */
function retry(): string {
  return `retry: ${Math.round(RETRY_MS + Math.random() * RETRY_SPREAD_MS)}\n\n`;
}
