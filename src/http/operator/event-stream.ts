import { PassThrough, type Readable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { formatEvent } from '../format-event.ts';
import { locationsOf, type Operator } from '../../core/operators/operator.ts';
import { operatorOf } from './guard-routes.ts';
import type { Now } from '../../core/postgres/database-clock.ts';
import type { Watcher, WholeBoard } from '../../core/orders/board-feed.ts';
import type { BoardOrder } from '../../core/orders/read-board.ts';
import type { Attention } from '../../core/orders/sample-attention.ts';

export type EventStream = {
  readonly body: Readable;
  send(event: { id?: number; event: string; data: unknown }): void;
  /** True if the reader does not read. More events would only wait in memory. */
  isBehind(): boolean;
  /** Calls back whenever a slow reader has caught up. */
  onDrain(drained: () => void): void;
  /** Ends the stream. A reader that does not read the rest is cut off soon. */
  end(): void;
  cutOff(): void;
  /** Calls back once, however the stream ended. */
  onClose(closed: () => void): void;
};

/** What all doors to the API share, so that each limit counts once. */
export type Shared = {
  /** Aborts at the end of a drain, when the load balancer sends reconnecting readers to other processes. */
  closing: AbortSignal;
  now: Now;
  /** The open event streams, and who reads each. */
  streams: Map<EventStream, Operator>;
};

/** Time after which a reader reconnects. */
const RETRY_MS = 2_000;
const HEARTBEAT_MS = 15_000;
/** The longest life of a stream. A reader whose machine died is never noticed, and would hold its place for hours. */
const MAX_AGE_MS = 15 * 60_000;
/** Time to send the rest. */
const FLUSH_MS = 10_000;

/**
 * Makes a stream of server-sent events, with a regular comment that stops proxies from closing it. Every stream ends
 * some time: a reader reconnects and misses nothing.
 */
export function eventStream(heartbeatMs = HEARTBEAT_MS): EventStream {
  const body = new PassThrough();
  // The close event reports a reader that has left.
  body.on('error', () => {});
  const write = (text: string): void => {
    if (body.writable) body.write(text);
  };
  const isBehind = (): boolean => body.writableNeedDrain;
  const heartbeat = setInterval(() => {
    if (!isBehind()) write(':\n\n');
  }, heartbeatMs);
  heartbeat.unref();
  let cutOff: NodeJS.Timeout | undefined;
  const end = (): void => {
    body.end();
    cutOff ??= setTimeout(() => body.destroy(), FLUSH_MS).unref();
  };
  const expiry = setTimeout(end, MAX_AGE_MS);
  expiry.unref();
  body.once('close', () => {
    clearInterval(heartbeat);
    clearTimeout(expiry);
    clearTimeout(cutOff);
  });
  write(`retry: ${RETRY_MS}\n\n`);
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

/** Streams of one process. Each holds a connection, and the board's some 200 kB if its reader is slow. */
const STREAMS_MAX = 200;
/** Those of all operators who have some locations alone, and of one of them: they leave room for the others. */
const OF_SOME_MAX = STREAMS_MAX / 2;
const OF_ONE_MAX = 40;

/** Time after which a stream's reader is looked at again: who may no longer read it is cut off within five seconds. */
const LOOK_MS = 2_000;

/**
 * Opens a stream, for either door, for as long as its reader may what they may now, and no longer than their session.
 * @throws 503 if there are too many
 */
export function openStream(
  scope: FastifyInstance,
  request: FastifyRequest,
  { closing, now, streams }: Shared,
): EventStream {
  const reader = operatorOf(request);
  const isOfSome = (each: Operator): boolean => locationsOf(each, 'viewer') !== null;
  const ofSome = [...streams.values()].filter(isOfSome);
  const own = ofSome.filter(({ kind, id }) => kind === reader.kind && id === reader.id);
  if (streams.size >= STREAMS_MAX || (isOfSome(reader) && (ofSome.length >= OF_SOME_MAX || own.length >= OF_ONE_MAX)))
    throw scope.httpErrors.serviceUnavailable('This process has too many open streams. Close one, or try again later.');
  const stream = eventStream();
  streams.set(stream, reader);
  const look = async (): Promise<void> => {
    // Who cannot be asked for any more is nobody.
    const operator = await request.identifyAgain().catch(() => undefined);
    if (!isDeepStrictEqual(operator?.rights, reader.rights)) stream.cutOff();
  };
  const looking = setInterval(() => void look(), LOOK_MS).unref();
  const { session } = reader;
  const expiry = session && setTimeout(stream.cutOff, session.expiresAt.getTime() - now().getTime()).unref();
  stream.onClose(() => {
    streams.delete(stream);
    clearInterval(looking);
    clearTimeout(expiry);
  });
  // A stream requested before the shutdown is opened and ended: a refusal would stop an EventSource from reconnecting.
  if (closing.aborted) setImmediate(() => stream.end());
  return stream;
}

/** Orders per event. Small, so that little waits for a slow reader. */
const ORDERS_MAX = 200;
/** Orders waiting at which a reader is cut off. It reconnects and gets the board anew. */
const BEHIND_MAX = 50_000;

/**
 * Writes the board's events into a stream, as fast as its reader reads. For a slow reader only the newest state of each
 * order waits, and the newest attention list.
 */
export function writeBoardEvents(stream: EventStream): Watcher {
  let board: Omit<WholeBoard, 'orders'> | undefined;
  /** Orders of the whole board, sent before later changes. An array: a Map for each of many readers is large. */
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
