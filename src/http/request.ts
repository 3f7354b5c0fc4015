import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Action } from '../core/operators/audit.ts';

export function bearerOf({ authorization }: IncomingHttpHeaders): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
}

type Sent = Pick<FastifyRequest, 'ip' | 'raw'>;

/** The fields of an audit action that come from the request, and the request's log. */
export function actionFrom(request: FastifyRequest): Required<Pick<Action, 'source' | 'requestId' | 'log'>> {
  return { source: addressOf(request), requestId: request.id, log: request.log };
}

/** The sender's address. Behind a proxy of TRUSTED_PROXIES, the address that the proxy reports. */
export function addressOf({ ip, raw }: Sent): string {
  // Some proxies report a port too: `192.0.2.7:50312`, `[2001:db8::7]:50312`.
  const reported = ip.replace(/^(\d+(?:\.\d+){3}):\d+$|^\[([^\]]*)\](?::\d+)?$/, '$1$2');
  const address = isIP(reported) === 0 ? (raw.socket.remoteAddress ?? '') : reported;
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}

/**
 * The source for which failed authentications are counted: the IPv4 address, or the /64 network of an IPv6 address,
 * because one owner has all addresses of a /64 network.
 */
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

/** Makes request ids that are unique across processes. An id sent by the client is ignored, because it is untrusted. */
export function requestIds(): () => string {
  const process = randomBytes(6).toString('base64url');
  let count = 0;
  return () => `${process}-${(count += 1)}`;
}

/** These patterns find the trace id in `traceparent` (W3C) and in Google's header. We ignore the rest of both. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/;
const CLOUD_TRACE = /^([0-9a-f]{32})(?:[/;]|$)/;

/** Returns the trace id of a request, or undefined if no header has a well-formed one. */
export function traceOf(headers: IncomingHttpHeaders): string | undefined {
  const { traceparent } = headers;
  const cloud = headers['x-cloud-trace-context'];
  if (typeof traceparent === 'string') return TRACEPARENT.exec(traceparent)?.[1];
  return typeof cloud === 'string' ? CLOUD_TRACE.exec(cloud)?.[1] : undefined;
}

/** Returns the headers with names in lower case. Repeated headers are joined as RFC 9110 section 5.3 says. */
export function flattenHeaders(rawHeaders: readonly string[]): Record<string, string> {
  // The object has no prototype, so that a header named `__proto__` is stored like any other.
  const headers = Object.create(null) as Record<string, string>;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? '';
    const value = rawHeaders[i + 1] ?? '';
    const before = headers[name];
    headers[name] = before === undefined ? value : `${before}, ${value}`;
  }
  return headers;
}
