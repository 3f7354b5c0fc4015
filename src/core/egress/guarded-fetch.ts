import { lookup as lookUp, type LookupAddress, type LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { NeedsOperator } from '../domain/errors.ts';
import { describeCause } from '../domain/explain-cause.ts';
import type { RefusedHost } from '../domain/placement-cause.ts';
import { type AllowedHosts, allowsAddress, allowsHost, kindOfAddress, refuseUrl } from './allowed-hosts.ts';
import { boundedFetch } from './bounded-fetch.ts';

/** Resolves a name to all its addresses, like `lookup` of `node:dns`. */
export type ResolveAll = (
  hostname: string,
  options: LookupOptions & { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * Makes the fetch for URLs of a location's settings: a `boundedFetch` that connects only to public addresses and to
 * hosts of `ALLOW_PRIVATE_HOSTS`. The addresses of a name are checked at each connection, because they may change. For
 * a refused address it throws NeedsOperator before anything is sent. It uses the fetch of the package undici, because
 * Node does not export its own `Agent`, and its fetch may not accept the `Agent` of another version of undici.
 */
export function guardedFetch(allowed: AllowedHosts, resolve: ResolveAll = lookUp): typeof fetch {
  let undici: Promise<Undici> | undefined;
  const load = async (): Promise<Undici> => {
    const { Agent, fetch } = await loadUndici();
    return { fetch, dispatcher: new Agent({ connect: { lookup: publicLookup(allowed, resolve) } }) };
  };
  return boundedFetch(undefined, async (input, init) => {
    // undici's fetch accepts neither Node's Request nor its FormData, so it gets their bytes. It also gets the caller's
    // own signal, because the signal of an intermediate Request stops working when that Request is garbage-collected.
    const request = new Request(input, { ...init, signal: null });
    const signal = init?.signal ?? (input instanceof Request ? input.signal : null);
    const url = new URL(request.url);
    const reason = refuseUrl(url, allowed);
    if (reason !== undefined) throw refusalOf(url.hostname, reason);
    const { fetch, dispatcher } = await (undici ??= load());
    const { method, redirect } = request;
    const headers = [...request.headers];
    const body = request.body === null ? null : await request.bytes();
    try {
      return await fetch(url, { method, headers, body, signal, redirect, dispatcher });
    } catch (error) {
      const { cause } = error as { cause?: unknown };
      throw cause instanceof NeedsOperator ? cause : error;
    }
  });
}

/** Loads the package for the first call. This blocks the process for some 50 ms. */
export const loadUndici = (): Promise<typeof import('undici')> => import('undici');

type Undici = { fetch: typeof import('undici').fetch; dispatcher: import('undici').Agent };

/** Filters a name's addresses to those that may be called. `refuseUrl` checks an address in a URL itself. */
function publicLookup(allowed: AllowedHosts, resolve: ResolveAll): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, []);
      const isNamed = allowsHost(allowed, hostname);
      const judged = found.map((entry) => ({ entry, kind: kindOfAddress(entry.address) }));
      const addresses = judged
        .filter(({ entry, kind }) => isNamed || kind === undefined || allowsAddress(allowed, entry.address))
        .map(({ entry }) => entry);
      const [first] = addresses;
      if (first === undefined) return callback(refusalOf(hostname, judged[0]?.kind ?? 'reserved'), []);
      if (options.all === true) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}

function refusalOf(host: string, reason: RefusedHost): NeedsOperator {
  const cause = { code: 'pos_host_refused', reason } as const;
  return new NeedsOperator(`${host}: ${describeCause(cause)}`, { cause });
}
