import { Agent, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import { serveHttp } from '../../world/network/serve-http.ts';

export type CuttingNetwork = {
  url: string;
  /** Streams that were cut so far: by this network, by the death of their process, and by its replacement. */
  readonly cuts: { network: number; died: number; drained: number };
  /** Cuts one of the streams that are open for HEARD_AFTER_MS. @param chance chooses the stream: 0 to less than 1 */
  cut(chance: number): void;
  stop(): Promise<void>;
};

type Stream = { response: ServerResponse; since: number; fate?: Fate };

/**
 * - `reset`: the stream is reset at once, for both sides
 * - `torn`: it is cut in the middle of the next bytes, or after TORN_WITHIN_MS without bytes
 * - `silent`: nothing arrives any more, and neither side notices
 */
type Fate = 'reset' | 'torn' | 'silent';

/** A stream that is cut before its first bytes looks like a missing service. Its phone would wait longer each time. */
const HEARD_AFTER_MS = 300;
const TORN_WITHIN_MS = 1_000;
/** One of this many cuts is silent. They are rare because a phone needs most of a minute to notice one. */
const SILENT_EVERY = 100;
/** The last events of a stream. A close after one of them does not count as a cut. */
const LAST_EVENTS = /^event: (end|expired)$/m;

/** The network between phones and `target`, which cuts streams. */
export async function startCuttingNetwork(target: string): Promise<CuttingNetwork> {
  const agent = new Agent({ keepAlive: true });
  const streams = new Set<Stream>();
  const cuts = { network: 0, died: 0, drained: 0 };

  const carry = (answer: IncomingMessage, response: ServerResponse): void => {
    const stream: Stream = { response, since: performance.now() };
    let isOver = false;
    streams.add(stream);
    response.once('close', () => streams.delete(stream));
    answer.on('data', (bytes: Buffer) => {
      if (stream.fate === 'silent') return;
      isOver ||= LAST_EVENTS.test(bytes.toString());
      if (stream.fate === 'torn') response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
      else response.write(bytes);
    });
    answer.on('end', () => {
      if (stream.fate === 'silent') return;
      if (!isOver && stream.fate === undefined) cuts.drained += 1;
      response.end();
    });
    answer.on('error', () => {
      if (stream.fate === 'silent') return;
      if (!isOver && stream.fate === undefined) cuts.died += 1;
      response.destroy();
    });
  };

  const server = await serveHttp((request, response) => {
    const { method, url = '', rawHeaders: headers } = request;
    const upstream = send(new URL(url, target), { method, headers, agent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      if (answer.headers['content-type']?.startsWith('text/event-stream') === true) carry(answer, response);
      else answer.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    upstream.end();
  });

  return {
    url: server.url,
    cuts,
    cut(chance) {
      const before = performance.now() - HEARD_AFTER_MS;
      const open = [...streams].filter(({ fate, since }) => fate === undefined && since < before);
      const stream = open[Math.floor(chance * open.length)];
      if (stream === undefined) return;
      cuts.network += 1;
      if (cuts.network % SILENT_EVERY === 0) stream.fate = 'silent';
      else stream.fate = cuts.network % 2 === 0 ? 'torn' : 'reset';
      const reset = (): void => void stream.response.socket?.resetAndDestroy();
      if (stream.fate === 'reset') reset();
      if (stream.fate === 'torn') setTimeout(reset, TORN_WITHIN_MS).unref();
    },
    async stop() {
      await server.stop();
      agent.destroy();
    },
  };
}
