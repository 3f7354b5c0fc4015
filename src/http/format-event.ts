/** A proxy that compresses a stream keeps its events until it has enough of them, unless it may not transform it. */
export const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};

/**
 * Lines that stand alone, and end no event: after a blank line, some clients hand their page an event without data. A
 * comment keeps a connection from being idle.
 */
export const HEARTBEAT = ':\n';
/** @param milliseconds how long a client waits before it reconnects */
export const retryAfter = (milliseconds: number): string => `retry: ${milliseconds}\n`;

/** Writes a server-sent event. https://html.spec.whatwg.org/multipage/server-sent-events.html */
export function formatEvent({ id, event, data }: { id?: number; event: string; data: unknown }): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
