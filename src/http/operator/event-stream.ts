import { PassThrough, type Readable } from 'node:stream';

export type EventStream = {
  readonly body: Readable;
  send(event: { id?: number; event: string; data: unknown }): void;
  /** The reader does not take what it is sent, and more would only wait in memory. */
  isBehind(): boolean;
  /** Called whenever a reader that was behind has taken what waited. */
  onDrain(drained: () => void): void;
  /** A reader that does not take what waits is cut off soon. */
  end(): void;
  cutOff(): void;
  /** Called once, however it ended. */
  onClose(closed: () => void): void;
};

/** A reader that lost us comes back after this. */
const RETRY_MS = 2_000;
const HEARTBEAT_MS = 15_000;
/** A reader whose machine has died is heard of no more, and would keep its place for hours. */
const MAX_AGE_MS = 15 * 60_000;
/** For the last of it. */
const LEAVE_MS = 10_000;

/**
 * Server-sent events, with a comment now and then that keeps proxies from closing it. Every stream ends some time:
 * whoever is still there comes back, and misses nothing.
 */
export function eventStream(heartbeatMs = HEARTBEAT_MS): EventStream {
  const body = new PassThrough();
  // One that has left is told by its close.
  body.on('error', () => {});
  const write = (text: string): void => {
    if (body.writable) body.write(text);
  };
  const isBehind = (): boolean => body.writableNeedDrain;
  const heartbeat = setInterval(() => {
    if (!isBehind()) write(':\n\n');
  }, heartbeatMs);
  heartbeat.unref();
  let leaving: NodeJS.Timeout | undefined;
  const end = (): void => {
    body.end();
    leaving ??= setTimeout(() => body.destroy(), LEAVE_MS).unref();
  };
  const oldAge = setTimeout(end, MAX_AGE_MS);
  oldAge.unref();
  body.once('close', () => {
    clearInterval(heartbeat);
    clearTimeout(oldAge);
    clearTimeout(leaving);
  });
  write(`retry: ${RETRY_MS}\n\n`);
  return {
    body,
    send({ id, event, data }) {
      write(`${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    },
    isBehind,
    onDrain: (drained) => void body.on('drain', drained),
    end,
    cutOff: () => void body.destroy(),
    onClose: (closed) => void body.once('close', closed),
  };
}
