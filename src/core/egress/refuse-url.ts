import type { RefusedHost } from '../domain/placement-cause.ts';
import { addressIn, allowsHost, type AllowedHosts } from './allowed-hosts.ts';
import { kindOfAddress } from './kind-of-address.ts';

/**
 * Judges a URL of a location's settings before anybody is asked where its name leads. Hosts of `ALLOW_PRIVATE_HOSTS`
 * may be private, and without TLS: a till in the restaurant's network rarely has a certificate. `localhost` needs none.
 * @returns why it may not be called
 */
export function refuseUrl({ protocol, hostname }: URL, allowed: AllowedHosts): RefusedHost | undefined {
  if (allowsHost(allowed, hostname)) return undefined;
  const address = addressIn(hostname);
  const kind = address === undefined ? undefined : kindOfAddress(address);
  if (kind !== undefined) return kind;
  return protocol === 'https:' || /^(.+\.)?localhost\.?$/.test(hostname) ? undefined : 'plain http';
}

/** The first URL among settings that may not be called, by the names of the fields that lead to it. */
export function findRefusedUrl(
  value: unknown,
  allowed: AllowedHosts,
): { path: string[]; refused: RefusedHost } | undefined {
  if (typeof value === 'string') {
    const url = /^https?:/i.test(value) ? URL.parse(value) : null;
    const refused = url === null ? undefined : refuseUrl(url, allowed);
    return refused && { path: [], refused };
  }
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, each] of Object.entries(value)) {
    const found = findRefusedUrl(each, allowed);
    if (found !== undefined) return { ...found, path: [name, ...found.path] };
  }
  return undefined;
}
