import { pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import type { Dispatcher } from 'undici';

/** Bytes of an answer after decompression, where nobody says otherwise. No POS needs more to name an order. */
const ANSWER_LIMIT = 2 ** 20;
const DECODERS: Record<string, () => NodeJS.ReadWriteStream> = { gzip: createGunzip, br: createBrotliDecompress };
/** What fetch says of itself. */
const OURS = { accept: '*/*', 'accept-encoding': Object.keys(DECODERS).join(', '), 'user-agent': 'undici' };
/** Statuses that have no body, which `Response` insists on. */
const BODILESS = new Set([204, 205, 304]);

/** The answer is larger than what is read of it. The rest was never decompressed. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

type Undici = typeof import('undici');

/** Loads what the first call needs: some 50 ms in which nothing else happens. */
export const loadUndici = (): Promise<Undici> => import('undici');

/**
 * Makes a fetch for all that we ask of others. It follows no redirect, which would carry a token elsewhere: its answer
 * is the 3xx. Reading more than `limit` bytes of a body throws AnswerTooLarge, after as many and no more were held.
 *
 * It asks by undici's `request`, at a fifth of what `fetch` costs the processor: of the time that an order takes, most
 * went there.
 * @param agentOf makes what connects; by default as Node's own fetch does, for what the environment names
 */
export function boundedFetch(
  limit: number = ANSWER_LIMIT,
  agentOf: (undici: Undici) => Dispatcher = usual,
): typeof fetch {
  let loaded: Promise<{ ask: Undici['request']; dispatcher: Dispatcher }> | undefined;
  const load = async (): Promise<{ ask: Undici['request']; dispatcher: Dispatcher }> => {
    const undici = await loadUndici();
    return { ask: undici.request, dispatcher: agentOf(undici) };
  };
  return async (input, init) => {
    // The signal is the caller's own: that of a Request in between is silent once the Request is collected.
    const request = new Request(input, { ...init, signal: null });
    const signal = init?.signal ?? (input instanceof Request ? input.signal : null);
    const body = request.body === null ? null : await request.bytes();
    const { ask, dispatcher } = await (loaded ??= load());
    let answer: Dispatcher.ResponseData;
    try {
      const headers = { ...OURS, ...Object.fromEntries(request.headers) };
      const { method } = request;
      answer = await ask(request.url, { method, headers, body, signal, dispatcher });
    } catch (error) {
      throw signal?.aborted === true ? error : new TypeError('fetch failed', { cause: error });
    }
    const headers = new Headers();
    for (const [name, values = []] of Object.entries(answer.headers)) {
      for (const value of [values].flat()) headers.append(name, value);
    }
    const { statusCode: status } = answer;
    if (BODILESS.has(status)) answer.body.resume();
    const decode = DECODERS[headers.get('content-encoding')?.toLowerCase() ?? ''];
    const bytes = decode === undefined ? answer.body : pipeline(answer.body, decode(), () => {});
    return new Response(BODILESS.has(status) ? null : endAt(limit, bytes as Readable), { status, headers });
  };
}

function usual({ Agent, EnvHttpProxyAgent }: Undici): Dispatcher {
  return process.env['NODE_USE_ENV_PROXY'] === '1' ? new EnvHttpProxyAgent() : new Agent();
}

function endAt(limit: number, bytes: Readable): ReadableStream<Uint8Array> {
  const chunks = bytes[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, undefined>;
  // An answer that is not read to its end breaks off, and nobody else listens.
  bytes.on('error', () => {});
  let size = 0;
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done === true) return controller.close();
        size += value.length;
        if (size <= limit) return controller.enqueue(value);
        bytes.destroy();
        throw new AnswerTooLarge(`the answer is larger than ${limit} bytes`);
      },
      cancel: () => void bytes.destroy(),
    },
    { highWaterMark: 0 },
  );
}
