import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { Act } from '../core/operators/audit.ts';

type Sent = Pick<FastifyRequest, 'ip' | 'raw'>;

/** What the audit says of a request, and the log that says the same. */
export function actFrom(request: FastifyRequest): Required<Pick<Act, 'source' | 'requestId' | 'log'>> {
  return { source: addressOf(request), requestId: request.id, log: request.log };
}

/** The address that a request comes from: its sender's, or what a proxy of TRUSTED_PROXIES says, if that is one. */
export function addressOf({ ip, raw }: Sent): string {
  const address = isIP(ip) === 0 ? (raw.socket.remoteAddress ?? '') : ip;
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}

/** Whom wrong credentials are counted for: an address, or of IPv6 its /64, which whoever has one has whole. */
export function sourceOf(request: Sent): string {
  const address = addressOf(request);
  const written = isIP(address) === 6 ? URL.parse(`http://[${address.replace(/%.*/s, '')}]`)?.hostname : undefined;
  if (written === undefined) return address;
  const [before = '', after] = written.slice(1, -1).split('::');
  const groups = before === '' ? [] : before.split(':');
  const last = after === undefined || after === '' ? [] : after.split(':');
  const zeros = after === undefined ? 0 : 8 - groups.length - last.length;
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...last];
  return `${all.slice(0, 4).join(':')}::/64`;
}
