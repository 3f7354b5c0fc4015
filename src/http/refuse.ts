import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CannotVerify } from './issuer-keys.ts';
import { CHUNK_BYTES } from './read-body.ts';

/**
 * Why jose refuses a token, without any value of it. Its messages name claims and headers; for `crit` the names are
 * values, so that message is replaced.
 * @throws CannotVerify if the error is one, since it says nothing about the token
 */
export function whyRefused(error: unknown): string {
  if (error instanceof CannotVerify) throw error;
  if (!(error instanceof Error)) return 'unknown';
  if (error.message.startsWith('Extension Header Parameter')) return 'crit names an unsupported header';
  return error.message;
}

/** Time for a sender that is still writing to read the answer. */
const LINGER_MS = 1_000;

/** Bytes of a body up to which reading and discarding is cheaper than a new connection. */
export const SMALL_BODY = 64 * 1024;
const BODY = JSON.stringify({ error: 'unauthorized' });

/**
 * Answers 401 before the body is read, and closes the connection. An immediate close would reset it while the sender
 * writes, and the sender would never see the answer: so a limited rest is read and discarded first. With a small rest the
 * connection stays open if it may: it may be a load balancer's and carry other senders' webhooks.
 * @param limit bytes of the rest; a chunk counts for at least 64
 */
export async function refuse(request: FastifyRequest, reply: FastifyReply, limit: number): Promise<void> {
  const keepsOpen = reply.raw.shouldKeepAlive && bytesOf(request) <= SMALL_BODY;
  reply.hijack();
  reply.raw.writeHead(401, {
    ...(!keepsOpen && { connection: 'close' }),
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(BODY),
  });
  if (keepsOpen) {
    // Node discards the rest before it reads the next request.
    reply.raw.end(BODY);
    return;
  }
  reply.raw.write(BODY);
  await Promise.race([discard(request.raw, limit), sleep(LINGER_MS, undefined, { ref: false })]);
  reply.raw.end();
}

/** The length of the body; Infinity if it is not known beforehand. */
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
