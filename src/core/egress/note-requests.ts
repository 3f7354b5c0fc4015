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
        origin: URL.parse(url)?.origin,
      };
      last = made;
      const response = await send(input, init);
      made.status = response.status;
      return response;
    },
    last: () => last,
  };
}
