import { PassThrough, type Readable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { formatEvent, HEARTBEAT, retryAfter } from '../format-event.ts';
import { locationsOf, type Operator } from '../../core/operators/operator.ts';
import { operatorOf } from './guard-routes.ts';
import type { Now } from '../../core/postgres/database-clock.ts';
import type { Watcher, WholeBoard } from '../../core/orders/board-feed.ts';
import type { BoardOrder } from '../../core/orders/read-board.ts';
import type { Attention } from '../../core/orders/sample-attention.ts';

export type EventStream = {
  readonly body: Readable;
  send(event: { id?: number; event: string; data: unknown }): void;
  /** True if the reader is slow, so that further events would wait in memory. */
  isBehind(): boolean;
  /** Calls `drained` whenever a slow reader has caught up. */
  onDrain(drained: () => void): void;
  /** Ends the stream. The connection is destroyed if the reader does not read the last events within `FLUSH_MS`. */
  end(): void;
  cutOff(): void;
  /** Calls `closed` once when the stream closes, whatever the reason is. */
  onClose(closed: () => void): void;
};

/** State that the API for programs and the console's API share, so that one limit applies to both together. */
export type Shared = {
  /** Aborts at the end of a drain. The load balancer then sends reconnecting readers to other processes. */
  closing: AbortSignal;
  now: Now;
  streams: Map<EventStream, Operator>;
};

/** Time after which a reader reconnects. */
const RETRY_MS = 2_000;
/** The console says that it is not live after two missed heartbeats. */
const HEARTBEAT_MS = 10_000;
/** Maximum age of a stream. Without a maximum, the stream of a reader whose machine died would stay open for hours. */
const MAX_AGE_MS = 15 * 60_000;
/** How long the reader of an ended stream may read the last events. */
const FLUSH_MS = 10_000;

/**
 * Makes a stream of server-sent events. `beat` is sent regularly, so that proxies do not close the stream as idle.
 * The stream ends at its maximum age. Its reader then reconnects without a gap.
 */
export function eventStream({ maxAgeMs = MAX_AGE_MS, beat = HEARTBEAT } = {}): EventStream {
  const body = new PassThrough();
  // Errors are ignored here, because the close event also reports a reader that has disconnected.
  body.on('error', () => {});
  const write = (text: string): void => {
    if (body.writable) body.write(text);
  };
  const isBehind = (): boolean => body.writableNeedDrain;
  const heartbeat = setInterval(() => {
    if (!isBehind()) write(beat);
  }, HEARTBEAT_MS);
  heartbeat.unref();
  let cutOff: NodeJS.Timeout | undefined;
  const end = (): void => {
    body.end();
    cutOff ??= setTimeout(() => body.destroy(), FLUSH_MS).unref();
  };
  const expiry = setTimeout(end, maxAgeMs);
  expiry.unref();
  body.once('close', () => {
    clearInterval(heartbeat);
    clearTimeout(expiry);
    clearTimeout(cutOff);
  });
  write(retryAfter(RETRY_MS));
  return {
    body,
    send: (event) => write(formatEvent(event)),
    isBehind,
    onDrain: (drained) => void body.on('drain', drained),
    end,
    cutOff: () => void body.destroy(),
    onClose: (closed) => void body.once('close', closed),
  };
}

/** Maximum streams of a process. Each uses a connection. A board stream takes some 200 kB if its reader is slow. */
const STREAMS_MAX = 200;
/** Maximum streams for operators who have roles at only some locations: for all of them together, and for each one. */
const OF_SOME_MAX = STREAMS_MAX / 2;
const OF_ONE_MAX = 40;

/** Interval of checking a reader's permissions. A reader who lost them is cut off within five seconds. */
export const RECHECK_MS = 2_000;

/**
 * Opens a stream for the operator of the request. It ends when their permissions change, or when their session expires.
 * @throws 503 if there are too many
 */
export function openStream(
  scope: FastifyInstance,
  request: FastifyRequest,
  { closing, now, streams }: Shared,
  beat?: string,
): EventStream {
  const reader = operatorOf(request);
  const isOfSome = (each: Operator): boolean => locationsOf(each, 'viewer') !== null;
  const ofSome = [...streams.values()].filter(isOfSome);
  const own = ofSome.filter(({ kind, id }) => kind === reader.kind && id === reader.id);
  if (streams.size >= STREAMS_MAX || (isOfSome(reader) && (ofSome.length >= OF_SOME_MAX || own.length >= OF_ONE_MAX)))
    throw scope.httpErrors.serviceUnavailable('This process has too many open streams. Close one, or try again later.');
  const stream = eventStream({ beat });
  streams.set(stream, reader);
  const recheck = async (): Promise<void> => {
    // If the reader can no longer be identified, `operator` is undefined and the stream is cut off.
    const operator = await request.identifyAgain().catch(() => undefined);
    if (!isDeepStrictEqual(operator?.rights, reader.rights)) stream.cutOff();
  };
  const rechecking = setInterval(() => void recheck(), RECHECK_MS).unref();
  const { session } = reader;
  const expiry = session && setTimeout(stream.cutOff, session.expiresAt.getTime() - now().getTime()).unref();
  stream.onClose(() => {
    streams.delete(stream);
    clearInterval(rechecking);
    clearTimeout(expiry);
  });
  // At a shutdown the stream is opened and ended at once. If it were refused, an EventSource would not reconnect.
  if (closing.aborted) setImmediate(() => stream.end());
  return stream;
}

/** Orders per event. The number is small, so that little data waits in memory for a slow reader. */
const ORDERS_MAX = 200;
/** A reader is cut off when more orders than this wait for it. It reconnects and gets the whole board again. */
const BEHIND_MAX = 50_000;

/**
 * Writes the board's events into a stream, as fast as its reader reads. For a slow reader we store only the newest
 * state of each order and the newest attention list.
 */
export function writeBoardEvents(stream: EventStream): Watcher {
  let board: Omit<WholeBoard, 'orders'> | undefined;
  /** Orders of the whole board that are not sent yet. They are sent before changes. A Map would take more memory. */
  let rest: BoardOrder[] = [];
  const orders = new Map<string, BoardOrder>();
  let attention: Attention | undefined;

  const next = (): { event: string; data: object } | undefined => {
    const some = rest.splice(0, ORDERS_MAX);
    for (const [id, order] of orders) {
      if (some.length === ORDERS_MAX || rest.length > 0) break;
      some.push(order);
      orders.delete(id);
    }
    if (some.length > 0) return { event: 'orders', data: { orders: some } };
    if (board !== undefined) {
      const { open, ended, truncated } = board;
      board = undefined;
      return { event: 'complete', data: { open, ended, truncated } };
    }
    const data = attention;
    attention = undefined;
    return data && { event: 'attention', data };
  };
  const flush = (): void => {
    while (!stream.isBehind()) {
      const event = next();
      if (event === undefined) return;
      stream.send(event);
    }
  };

  stream.onDrain(flush);
  return {
    whole({ orders: all, ...about }) {
      board = about;
      orders.clear();
      rest = [...all];
      stream.send({ event: 'reset', data: { at: about.at } });
      flush();
    },
    changed(changed) {
      for (const order of changed) orders.set(order.serviceOrderId, order);
      if (orders.size > BEHIND_MAX) stream.cutOff();
      else flush();
    },
    attention(latest) {
      attention = latest;
      flush();
    },
  };
}
