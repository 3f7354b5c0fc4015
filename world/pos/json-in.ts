import type { IncomingMessage } from 'node:http';

/** Parses a body. Undefined if it is not JSON. */
export function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

export function isJson(request: IncomingMessage): boolean {
  return /^application\/json\b/.test(request.headers['content-type'] ?? '');
}
