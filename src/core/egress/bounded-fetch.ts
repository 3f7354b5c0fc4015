import type { RequestMade } from '../domain/observed.ts';

/** Makes a fetch that remembers its last request, for whoever traces what was asked with it. */
export function noteRequests(send: typeof fetch): { fetch: typeof fetch; last: () => RequestMade | undefined } {
  let last: RequestMade | undefined;
  return {
    fetch: async (input, init) => {
      const { method, url } = input instanceof Request ? input : { method: 'GET', url: input };
      const made: RequestMade = {
        method: (init?.method ?? method).toUpperCase(),
        // No more of the URL: it may hold a key.
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

/** Bytes of an answer after decompression, where nobody says otherwise. No POS needs more to name an order. */
const ANSWER_LIMIT = 2 ** 20;

/** The answer is larger than what is read of it. The rest was never decompressed. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

/**
 * Makes a fetch for all that we ask of others. It follows no redirect, which would carry a token elsewhere: its answer
 * is the 3xx. Reading more than `limit` bytes of a body throws AnswerTooLarge, after as many and no more were held.
 * @param send sends the request; by default Node's own fetch, for what the environment names
 */
export function boundedFetch(limit: number = ANSWER_LIMIT, send: typeof fetch = fetch): typeof fetch {
  return async (input, init) => {
    const { body, status, headers } = await send(input, { ...init, redirect: 'manual' });
    // HTTP knows no other status of an answer, and a Response takes none.
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
