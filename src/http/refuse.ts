import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CannotVerify } from './issuer-keys.ts';
import { CHUNK_BYTES } from './read-body.ts';

/**
 * Says why jose refuses a token, without any value of it: its messages name claims and headers, but for `crit` the names
 * are values.
 * @throws CannotVerify if the error is one, which says nothing of the token
 */
export function whyRefused(error: unknown): string {
  if (error instanceof CannotVerify) throw error;
  if (!(error instanceof Error)) return 'unknown';
  if (error.message.startsWith('Extension Header Parameter')) return 'crit names what is not supported';
  return error.message;
}

/** Time for a sender that still writes to read the answer. */
const LINGER_MS = 1_000;

/** Bytes of a body that are cheaper to read and discard than a new connection. */
export const SMALL_BODY = 64 * 1024;
const BODY = JSON.stringify({ error: 'unauthorized' });

/**
 * Answers 401 before the body is read, and closes the connection. An immediate close would reset it under a sender that
 * still writes, which would never see the answer: so a bounded rest is read and discarded first. A connection that may be
 * kept is, where the rest is small: it may be a load balancer's, with others' webhooks on it.
 * @param limit bytes of the rest, of which a chunk counts for 64 at the least
 */
export async function refuse(request: FastifyRequest, reply: FastifyReply, limit: number): Promise<void> {
  const keeps = reply.raw.shouldKeepAlive && bytesOf(request) <= SMALL_BODY;
  reply.hijack();
  reply.raw.writeHead(401, {
    ...(!keeps && { connection: 'close' }),
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(BODY),
  });
  if (keeps) {
    // Node discards the rest before it reads the next request.
    reply.raw.end(BODY);
    return;
  }
  reply.raw.write(BODY);
  await Promise.race([discard(request.raw, limit), sleep(LINGER_MS, undefined, { ref: false })]);
  reply.raw.end();
}

/** The length of its body; Infinity where its end is not known beforehand. */
function bytesOf({ headers }: FastifyRequest): number {
  if (headers['transfer-encoding'] !== undefined) return Infinity;
  return Number(headers['content-length'] ?? 0);
}

async function discard(stream: FastifyRequest['raw'], limit: number): Promise<void> {
  let cost = 0;
  const stopped = new AbortController();
  stream.on('data', (chunk: Buffer) => {
    cost += Math.max(chunk.length, CHUNK_BYTES);
    if (cost > limit) stopped.abort();
  });
  stream.on('error', () => stopped.abort());
  await Promise.race([
    once(stream, 'end', { signal: stopped.signal }),
    once(stream, 'close', { signal: stopped.signal }),
  ]).catch(() => {});
  stream.pause();
}
