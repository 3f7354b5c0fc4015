export const STREAM_HEADERS = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };

/** Writes a server-sent event. https://html.spec.whatwg.org/multipage/server-sent-events.html */
export function formatEvent({ id, event, data }: { id?: number; event: string; data: unknown }): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
