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
 * Server-sent events, with a comment now and then that keeps proxies from closing it. A reader that has taken nothing of
 * what waits for it since the comment before is cut off, and every stream ends some time: whoever is still there comes
 * back with `Last-Event-ID`, and misses nothing.
 */
export function eventStream(heartbeatMs = HEARTBEAT_MS): EventStream {
  const body = new PassThrough();
  // One that has left is told by its close.
  body.on('error', () => {});
  let waiting = 0;
  const heartbeat = setInterval(() => {
    if (waiting > 0 && body.readableLength >= waiting) body.destroy();
    else body.write(':\n\n');
    waiting = body.readableLength;
  }, heartbeatMs);
  heartbeat.unref();
  const oldAge = setTimeout(() => body.end(), MAX_AGE_MS);
  oldAge.unref();
  body.once('close', () => {
    clearInterval(heartbeat);
    clearTimeout(oldAge);
  });
  body.write(`retry: ${RETRY_MS}\n\n`);
  return {
    body,
    send({ id, event, data }) {
      if (body.writable) {
        body.write(`${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
      }
    },
    end: () => void body.end(),
    onClose: (closed) => void body.once('close', closed),
  };
}
