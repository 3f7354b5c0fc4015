import { setTimeout as sleep } from 'node:timers/promises';

/** Time for the end of a body, once its status is there. */
const BODY_MS = 2_000;

/** A fetch that remembers the last exchange, as one line without secrets. */
export type WatchedFetch = { fetch: typeof fetch; lastExchange: () => Promise<string | undefined> };

/** @returns a fetch that does the same as `send` */
export function watchFetch(send: typeof fetch): WatchedFetch {
  let last: Promise<string> | undefined;
  return {
    fetch: async (input, init) => {
      const { method = 'GET', url } = input instanceof Request ? input : { ...init, url: String(input) };
      const { origin, pathname } = new URL(url);
      const request = `${method} ${origin}${pathname}`;
      const began = performance.now();
      last = Promise.resolve(`${request}, which was not answered`);
      const response = await send(input, init);
      const milliseconds = Math.round(performance.now() - began);
      const said = `${request}, answered ${response.status} in ${milliseconds} ms`;
      const text = response
        .clone()
        .text()
        .then(describeBody, () => 'a body that was cut off');
      // Whoever called does not read on where the status says it all.
      last = Promise.race([text, sleep(BODY_MS, 'a body that does not end', { ref: false })]).then(
        (body) => `${said}: ${body}`,
      );
      return response;
    },
    lastExchange: async () => last,
  };
}

/** Names fields and no values: the answer may be to a login. */
function describeBody(text: string): string {
  if (text.trim() === '') return 'an empty body';
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json !== 'object' || json === null || Array.isArray(json)) return 'JSON, but no object';
    const names = Object.keys(json).slice(0, 20);
    return names.length === 0 ? 'an empty JSON object' : `JSON with ${names.join(', ')}`;
  } catch {
    return 'no JSON';
  }
}
