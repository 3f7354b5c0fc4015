import { createParser } from 'eventsource-parser';

export type ReadEvents = {
  status: number;
  headers: Headers;
  /** Events so far. */
  events: { id: string | undefined; event: string | undefined; data: unknown }[];
  retries: number[];
  /** Resolves when the server or `leave` ended it. */
  ended: Promise<void>;
  leave(): void;
};

/** Reads server-sent events as they come. Resolves when the answer begins. */
export async function readEvents(url: string, headers: Record<string, string>): Promise<ReadEvents> {
  const left = new AbortController();
  const response = await fetch(url, { headers, signal: left.signal });
  const events: ReadEvents['events'] = [];
  const retries: number[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data }) => void events.push({ id, event, data: JSON.parse(data) as unknown }),
    onRetry: (retry) => void retries.push(retry),
  });
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
    } catch (error) {
      if (!left.signal.aborted) throw error;
    }
  };
  const isStream = response.headers.get('content-type') === 'text/event-stream';
  if (!isStream) await response.arrayBuffer();
  return {
    status: response.status,
    headers: response.headers,
    events,
    retries,
    ended: isStream ? read() : Promise.resolve(),
    leave: () => left.abort(),
  };
}
