import { lookup as lookUp, type LookupAddress, type LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { NeedsOperator } from '../domain/errors.ts';
import { describeCause, type RefusedHost } from '../domain/placement-cause.ts';
import { allowsAddress, allowsHost, type AllowedHosts } from './allowed-hosts.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { kindOfAddress } from './kind-of-address.ts';
import { refuseUrl } from './refuse-url.ts';

/** Resolves a name to all its addresses, as `lookup` of `node:dns`. */
export type ResolveAll = (
  hostname: string,
  options: LookupOptions & { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * Makes the fetch for URLs of a location's settings: `boundedFetch`, which connects to public addresses alone, and to
 * what `ALLOW_PRIVATE_HOSTS` names. A name's addresses are judged at each connection: it may lead elsewhere by then. It
 * throws NeedsOperator before anything is sent, and otherwise as fetch does.
 */
export function guardedFetch(allowed: AllowedHosts, resolve: ResolveAll = lookUp): typeof fetch {
  const ask = boundedFetch(
    undefined,
    ({ Agent }) => new Agent({ connect: { lookup: publicLookup(allowed, resolve) } }),
  );
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const reason = refuseUrl(url, allowed);
    if (reason !== undefined) throw refusalOf(url.hostname, reason);
    try {
      return await ask(input, init);
    } catch (error) {
      const { cause } = error as { cause?: unknown };
      throw cause instanceof NeedsOperator ? cause : error;
    }
  };
}

/** Leaves of a name's addresses those that may be called. An address in a URL never gets here: `refuseUrl` judges it. */
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
