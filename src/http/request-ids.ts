import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Makes ids of requests, unique across processes. An id from the request is not used: it could hold anything. */
export function requestIds(): () => string {
  const process = randomBytes(6).toString('base64url');
  let count = 0;
  return () => `${process}-${(count += 1)}`;
}

/** The trace id in `traceparent` (W3C) and in Google's own header. The rest of either is not ours. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/;
const CLOUD_TRACE = /^([0-9a-f]{32})(?:[/;]|$)/;

/** Returns the trace id of a request, if a header has it in exactly the right form. */
export function traceOf(headers: IncomingHttpHeaders): string | undefined {
  const { traceparent } = headers;
  const cloud = headers['x-cloud-trace-context'];
  if (typeof traceparent === 'string') return TRACEPARENT.exec(traceparent)?.[1];
  return typeof cloud === 'string' ? CLOUD_TRACE.exec(cloud)?.[1] : undefined;
}
