import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';
import type { RefusedHost } from '../domain/placement-cause.ts';

/** The kind of an address that is not public. */
type AddressKind = Exclude<RefusedHost, 'plain http'>;

/**
 * The ranges that are not globally reachable, by https://www.iana.org/assignments/iana-ipv4-special-registry and
 * https://www.iana.org/assignments/iana-ipv6-special-registry, with multicast.
 */
const IPV4: Readonly<Record<AddressKind, readonly string[]>> = {
  loopback: ['127.0.0.0/8'],
  'link-local': ['169.254.0.0/16'],
  private: ['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16'],
  reserved: [
    '0.0.0.0/8',
    // Contains Oracle's metadata service.
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.88.99.0/24',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
    '224.0.0.0/4',
    '240.0.0.0/4',
    // Public, but only Azure's own platform has it: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
    '168.63.129.16/32',
  ],
};
const IPV6: Readonly<Record<AddressKind, readonly string[]>> = {
  loopback: ['::1/128'],
  'link-local': ['fe80::/10'],
  private: ['fc00::/7', 'fec0::/10'],
  // Teredo, benchmarks and others; documentation; 6to4, which can reach any IPv4 address.
  reserved: ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
};
/** An IPv4 address behind a NAT64 has the kind of the IPv4 address: https://www.rfc-editor.org/rfc/rfc6052#section-2.1 */
const NAT64 = '64:ff9b::';
/** All other IPv6 addresses are reserved, including multicast (ff00::/8) and IPv4 in IPv6. */
const GLOBAL_IPV6 = listOf(['2000::/3', `${NAT64}/96`]);

const KINDS = (Object.keys(IPV4) as AddressKind[]).map((kind) => ({
  kind,
  ranges: listOf([...IPV4[kind], ...IPV6[kind], ...IPV4[kind].map(behindNat64)]),
}));

/** @param address an IPv4 or IPv6 address; other text is reserved @returns undefined for a public address */
export function kindOfAddress(address: string): AddressKind | undefined {
  const family = isIPv4(address) ? 'ipv4' : 'ipv6';
  if (family === 'ipv6' && !isIPv6(address)) return 'reserved';
  // The zone of a link-local address is irrelevant, and BlockList does not accept it.
  const [plain = ''] = address.split('%');
  const special = KINDS.find(({ ranges }) => ranges.check(plain, family));
  if (special !== undefined) return special.kind;
  return family === 'ipv4' || GLOBAL_IPV6.check(plain, family) ? undefined : 'reserved';
}

/** @param ranges networks in CIDR notation, such as `10.0.0.0/8` */
function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/');
    list.addSubnet(network, Number(prefix), isIPv4(network) ? 'ipv4' : 'ipv6');
  }
  return list;
}

function behindNat64(range: string): string {
  const [network, prefix] = range.split('/');
  return `${NAT64}${network}/${96 + Number(prefix)}`;
}

/** The hosts of `ALLOW_PRIVATE_HOSTS`. Settings may name them although they are private, or have no TLS. */
export type AllowedHosts = { names: ReadonlySet<string>; addresses: BlockList };

/**
 * Reads a list such as `pos.lan, 10.8.0.0/16, fd00::1`.
 * @throws Error with the number of the wrong entry, but not its text
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
    else throw new Error(`entry ${index + 1} is not a host name, address or range: no scheme, port or "*" is allowed`);
  }
  return { names, addresses: listOf(ranges) };
}

export function allowsAddress({ addresses }: Pick<AllowedHosts, 'addresses'>, address: string): boolean {
  const [plain = ''] = address.split('%');
  return addresses.check(plain, isIPv4(plain) ? 'ipv4' : 'ipv6');
}

/** @param hostname the host as `URL` writes it: in lower case, with an IPv6 address in brackets */
export function allowsHost(allowed: AllowedHosts, hostname: string): boolean {
  const address = addressIn(hostname);
  return address === undefined ? allowed.names.has(withoutDot(hostname)) : allowsAddress(allowed, address);
}

/** The address in a URL's host; undefined if the host is a name. */
function addressIn(hostname: string): string | undefined {
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

/** Returns the name as `URL` writes it. A name of digits is refused, because `URL` reads it as an address. */
function nameOf(entry: string): string | undefined {
  if (!/^[\p{L}\p{N}._-]+$/u.test(entry)) return undefined;
  const hostname = URL.parse(`http://${entry}/`)?.hostname ?? '';
  return hostname === '' || addressIn(hostname) !== undefined ? undefined : withoutDot(hostname);
}

/** Removes the dot at the end, which stands for the DNS root and does not change the meaning of a name. */
function withoutDot(hostname: string): string {
  return hostname.replace(/\.$/, '');
}

/**
 * Checks a URL of a location's settings before its name is resolved. Hosts of `ALLOW_PRIVATE_HOSTS` may be private and
 * without TLS, because a till in the restaurant's network rarely has a certificate. `localhost` needs no TLS either.
 * @returns why the URL may not be called; undefined if it may
 */
export function refuseUrl({ protocol, hostname }: URL, allowed: AllowedHosts): RefusedHost | undefined {
  if (allowsHost(allowed, hostname)) return undefined;
  const address = addressIn(hostname);
  const kind = address === undefined ? undefined : kindOfAddress(address);
  if (kind !== undefined) return kind;
  return protocol === 'https:' || isLoopback(hostname) ? undefined : 'plain http';
}

const LOOPBACK = { addresses: listOf([...IPV4.loopback, ...IPV6.loopback]) };

/** True for plain http to another machine. */
export function isPlainElsewhere(text: string): boolean {
  const { protocol, hostname = '' } = URL.parse(text) ?? {};
  return protocol === 'http:' && !isLoopback(hostname);
}

/**
 * Whether a host is this machine. No other code decides this, because `127.evil.example` is not.
 * @param host a name or an address, as in HOST or in a URL. `localhost` and names below it never leave the machine:
 *   https://www.rfc-editor.org/rfc/rfc6761#section-6.3
 */
export function isLoopback(host: string): boolean {
  const address = addressIn(host);
  // guard: own-machine
  return address === undefined ? /^(.+\.)?localhost$/.test(withoutDot(host)) : allowsAddress(LOOPBACK, address);
}
