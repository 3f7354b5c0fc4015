import { setTimeout as sleep } from 'node:timers/promises';
import type { PosContext } from '../core/domain/provider.ts';
import { askPos, type PosDeps } from '../core/locations/check-location.ts';
import type { Location } from '../core/locations/locations.ts';

/** How long a body may take to end after its status came. */
const BODY_MS = 2_000;

/** One request and its answer. `line` must contain no secret. `idKind`: the type of the answer's `providerOrderId`. */
export type Exchange = { line: string; status?: number; idKind?: string };

/** The result of a call to a POS, and the last exchange of the call, if there was one. */
export type WatchedCall<Result> = { milliseconds: number; exchange: Exchange | undefined } & (
  | { given: Result }
  | { error: unknown }
);

/**
 * Makes one call to the POS, and records its last exchange.
 * @throws the reason of `stopping`, if that aborts before the call or during it
 */
export async function callWatched<Result>(
  deps: PosDeps & { stopping?: AbortSignal },
  location: Pick<Location, 'integration' | 'provider' | 'settings'>,
  answerMs: number,
  ask: (context: PosContext<unknown>) => Promise<Result>,
): Promise<WatchedCall<Result>> {
  const { stopping } = deps;
  stopping?.throwIfAborted();
  const { fetch, lastExchange } = watchFetch(deps.posFetch);
  const began = performance.now();
  const since = (): number => Math.round(performance.now() - began);
  try {
    const limit = { seconds: answerMs / 1000, sent: true, ...(stopping && { stopping }) };
    const given = await askPos({ ...deps, posFetch: fetch }, location, limit, ask);
    const milliseconds = since();
    return { given, milliseconds, exchange: await lastExchange() };
  } catch (error) {
    stopping?.throwIfAborted();
    const milliseconds = since();
    return { error, milliseconds, exchange: await lastExchange() };
  }
}

function watchFetch(send: typeof fetch): { fetch: typeof fetch; lastExchange: () => Promise<Exchange | undefined> } {
  let last: Promise<Exchange> | undefined;
  return {
    fetch: async (input, init) => {
      const { method = 'GET', url } = input instanceof Request ? input : { ...init, url: String(input) };
      const request = `${method} ${new URL(url).origin}/…`;
      const began = performance.now();
      last = Promise.resolve({ line: `${request}, which got no answer` });
      const response = await send(input, init);
      const milliseconds = Math.round(performance.now() - began);
      const said = `${request}, answered ${response.status} in ${milliseconds} ms`;
      const text = response
        .clone()
        .text()
        .then(describeBody, () => ({ line: 'a body that was cut off' }));
      // The body is read here too, because the caller may not read it.
      last = Promise.race([text, sleep(BODY_MS, { line: 'a body that does not end' }, { ref: false })]).then(
        (body) => ({ ...body, status: response.status, line: `${said}: ${body.line}` }),
      );
      return response;
    },
    lastExchange: async () => last,
  };
}

/** Names the fields of a body, but never their values, because a login's answer contains a token. */
export function describeBody(text: string): Exchange {
  if (text.trim() === '') return { line: 'an empty body' };
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json !== 'object' || json === null || Array.isArray(json)) return { line: 'JSON, but not an object' };
    const names = Object.keys(json).slice(0, 20);
    const line = names.length === 0 ? 'an empty JSON object' : `JSON with ${names.join(', ')}`;
    return 'providerOrderId' in json ? { line, idKind: kindOf(json.providerOrderId) } : { line };
  } catch {
    return { line: 'no JSON' };
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (value === '') return 'an empty string';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
