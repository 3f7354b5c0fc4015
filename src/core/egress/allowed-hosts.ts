import { type BlockList, isIP, isIPv4, isIPv6 } from 'node:net';
import { listOf } from './kind-of-address.ts';

/** The hosts of `ALLOW_PRIVATE_HOSTS`, which settings may lead to though they are private, or speak no TLS. */
export type AllowedHosts = { names: ReadonlySet<string>; addresses: BlockList };

/**
 * Reads a list such as `pos.lan, 10.8.0.0/16, fd00::1`.
 * @throws Error that says which entry is wrong, and not what is in it
 */
export function parseAllowedHosts(text: string): AllowedHosts {
  const names = new Set<string>();
  const ranges: string[] = [];
  const entries = text.split(',').map((entry) => entry.trim());
  for (const [index, entry] of entries.entries()) {
    if (entry === '') continue;
    const range = rangeOf(entry);
    const name = range === undefined ? nameOf(entry) : undefined;
    if (range !== undefined) ranges.push(range);
    else if (name !== undefined) names.add(name);
    else throw new Error(`entry ${index + 1} is no host name, no address and no range; without scheme, port and "*"`);
  }
  return { names, addresses: listOf(ranges) };
}

export function allowsAddress({ addresses }: AllowedHosts, address: string): boolean {
  const [plain = ''] = address.split('%');
  return addresses.check(plain, isIPv4(plain) ? 'ipv4' : 'ipv6');
}

/** @param hostname as `URL` has it: in lower case, and an IPv6 address in brackets */
export function allowsHost(allowed: AllowedHosts, hostname: string): boolean {
  const address = addressIn(hostname);
  return address === undefined ? allowed.names.has(withoutDot(hostname)) : allowsAddress(allowed, address);
}

/** The address that a URL's host is, if it is no name. */
export function addressIn(hostname: string): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(bare) === 0 ? undefined : bare;
}

function rangeOf(entry: string): string | undefined {
  const [address = '', prefix, more] = entry.split('/');
  const longest = isIPv4(address) ? 32 : isIPv6(address) && !address.includes('%') ? 128 : undefined;
  if (longest === undefined || more !== undefined) return undefined;
  if (prefix === undefined) return `${address}/${longest}`;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= longest ? `${address}/${prefix}` : undefined;
}

/** A host name as `URL` has it. A name of digits is an address to `URL`, and should be written as one. */
function nameOf(entry: string): string | undefined {
  if (!/^[\p{L}\p{N}._-]+$/u.test(entry)) return undefined;
  const hostname = URL.parse(`http://${entry}/`)?.hostname ?? '';
  return hostname === '' || addressIn(hostname) !== undefined ? undefined : withoutDot(hostname);
}

/** The root's dot at the end of a name changes nothing of where it leads. */
function withoutDot(hostname: string): string {
  return hostname.replace(/\.$/, '');
}
