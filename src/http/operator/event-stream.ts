import { PassThrough, type Readable } from 'node:stream';

export type EventStream = {
  readonly body: Readable;
  send(event: { id?: number; event: string; data: unknown }): void;
  end(): void;
  /** Called once, however it ended. */
  onClose(closed: () => void): void;
};

/** A reader that lost us comes back after this. */
const RETRY_MS = 2_000;
const HEARTBEAT_MS = 15_000;
/** A reader whose machine has died is heard of no more, and would keep its place for hours. */
const MAX_AGE_MS = 15 * 60_000;

/**
 * Server-sent events, with a comment now and then that keeps proxies from closing it. An order has few messages, so
 * little ever waits for a slow reader. Every stream ends some time: whoever is still there comes back with
 * `Last-Event-ID`, and misses nothing.
 */
export function eventStream(heartbeatMs = HEARTBEAT_MS): EventStream {
  const body = new PassThrough();
  // One that has left is told by its close.
  body.on('error', () => {});
  const write = (text: string): void => {
    if (body.writable) body.write(text);
  };
  const heartbeat = setInterval(() => write(':\n\n'), heartbeatMs);
  heartbeat.unref();
  const oldAge = setTimeout(() => body.end(), MAX_AGE_MS);
  oldAge.unref();
  body.once('close', () => {
    clearInterval(heartbeat);
    clearTimeout(oldAge);
  });
  write(`retry: ${RETRY_MS}\n\n`);
  return {
    body,
    send({ id, event, data }) {
      write(`${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    },
    end: () => void body.end(),
    onClose: (closed) => void body.once('close', closed),
  };
}
