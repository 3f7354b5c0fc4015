import type { RequestMade } from '../domain/observed.ts';

/** Makes a fetch that remembers its last request, for traces. */
export function noteRequests(send: typeof fetch): { fetch: typeof fetch; last: () => RequestMade | undefined } {
  let last: RequestMade | undefined;
  return {
    fetch: async (input, init) => {
      const { method, url } = input instanceof Request ? input : { method: 'GET', url: input };
      const made: RequestMade = {
        method: (init?.method ?? method).toUpperCase(),
        // Only the origin, because the rest of the URL may contain a key.
        origin: URL.parse(String(url))?.origin,
      };
      last = made;
      const response = await send(input, init);
      made.status = response.status;
      return response;
    },
    last: () => last,
  };
}

/** The default limit in bytes of an answer, after decompression. No POS needs more to name an order. */
const ANSWER_LIMIT = 2 ** 20;

/** The answer is larger than its limit. The rest after the limit is not decompressed. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

/** Explains a failed request by the error's cause, because the message of fetch is always "fetch failed". */
export function describeFailure(error: unknown, timeoutMs: number): string {
  if ((error as Error).name === 'TimeoutError') return `no answer in ${timeoutMs / 1000} s`;
  if (error instanceof AnswerTooLarge) return error.message;
  const { cause } = error as { cause?: { code?: unknown; message?: unknown } };
  const { code, message } = cause ?? {};
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `its name cannot be resolved (${code})`;
  if (code === 'ECONNREFUSED') return 'no service listens there (ECONNREFUSED)';
  if (typeof code === 'string') return `no connection (${code})`;
  return typeof message === 'string' && message !== '' ? 'no connection' : 'no usable answer';
}

/**
 * Makes a fetch for requests to other systems. It does not follow a 3xx but returns it, because a redirect would send a
 * token elsewhere. Reading more than `limit` bytes of a body throws AnswerTooLarge; memory never holds more of it.
 * @param send the function that sends the request. By default Node's own fetch, for hosts that the environment names
 */
export function boundedFetch(limit: number = ANSWER_LIMIT, send: typeof fetch = fetch): typeof fetch {
  return async (input, init) => {
    const { body, status, headers } = await send(input, { ...init, redirect: 'manual' });
    // `new Response` throws for any other status.
    const known = status >= 200 && status <= 599 ? status : 502;
    return new Response(body?.pipeThrough(endAt(limit)) ?? null, { status: known, headers });
  };
}

function endAt(limit: number): TransformStream<Uint8Array, Uint8Array> {
  let size = 0;
  return new TransformStream({
    transform(chunk, controller) {
      size += chunk.length;
      if (size > limit) controller.error(new AnswerTooLarge(`the answer is larger than ${limit} bytes`));
      else controller.enqueue(chunk);
    },
  });
}
