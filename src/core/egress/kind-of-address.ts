import { BlockList, isIPv4, isIPv6 } from 'node:net';
import type { RefusedHost } from '../domain/placement-cause.ts';

/** What an address is, if it is not one of the public internet. */
export type AddressKind = Exclude<RefusedHost, 'plain http'>;

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
    // Oracle's metadata is in it.
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.88.99.0/24',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
    '224.0.0.0/4',
    '240.0.0.0/4',
    // Public, and only the platform of a machine at Azure: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
    '168.63.129.16/32',
  ],
};
const IPV6: Readonly<Record<AddressKind, readonly string[]>> = {
  loopback: ['::1/128'],
  'link-local': ['fe80::/10'],
  private: ['fc00::/7', 'fec0::/10'],
  // Teredo, benchmarks and others; documentation; 6to4, which leads to any IPv4 address.
  reserved: ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
};
/** An IPv4 address behind a NAT64 is what it is without: https://www.rfc-editor.org/rfc/rfc6052#section-2.1 */
const NAT64 = '64:ff9b::';
/** All other IPv6 addresses are reserved, multicast (ff00::/8) and IPv4 in IPv6 among them. */
const GLOBAL_IPV6 = listOf(['2000::/3', `${NAT64}/96`]);

const KINDS = (Object.keys(IPV4) as AddressKind[]).map((kind) => ({
  kind,
  ranges: listOf([...IPV4[kind], ...IPV6[kind], ...IPV4[kind].map(behindNat64)]),
}));

/** @param address of IPv4 or IPv6; anything else is reserved @returns undefined for a public address */
export function kindOfAddress(address: string): AddressKind | undefined {
  const family = isIPv4(address) ? 'ipv4' : 'ipv6';
  if (family === 'ipv6' && !isIPv6(address)) return 'reserved';
  // The zone of a link-local address says nothing here, and BlockList takes none.
  const [plain = ''] = address.split('%');
  const special = KINDS.find(({ ranges }) => ranges.check(plain, family));
  if (special !== undefined) return special.kind;
  return family === 'ipv4' || GLOBAL_IPV6.check(plain, family) ? undefined : 'reserved';
}

/** @param ranges addresses with the length of their prefix, such as `10.0.0.0/8` */
export function listOf(ranges: readonly string[]): BlockList {
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
