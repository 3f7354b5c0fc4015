import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Ids of requests, unlike in all processes. Nothing of the request is taken over: it could hold anything. */
export function requestIds(): () => string {
  const process = randomBytes(6).toString('base64url');
  let count = 0;
  return () => `${process}-${(count += 1)}`;
}

/** `traceparent` (W3C) and Google's own header: the trace's id and what follows, which is not ours. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/;
const CLOUD_TRACE = /^([0-9a-f]{32})(?:[/;]|$)/;

/** The trace that a request came in with, where a header says so in the very form it must have. */
export function traceOf(headers: IncomingHttpHeaders): string | undefined {
  const { traceparent } = headers;
  const cloud = headers['x-cloud-trace-context'];
  if (typeof traceparent === 'string') return TRACEPARENT.exec(traceparent)?.[1];
  return typeof cloud === 'string' ? CLOUD_TRACE.exec(cloud)?.[1] : undefined;
}
