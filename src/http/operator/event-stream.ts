import { PassThrough, type Readable } from 'node:stream';
import { formatEvent } from '../format-event.ts';

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
