import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CHUNK_BYTES } from './read-body.ts';

/** How long the connection stays open for a sender that is still writing, so that it can read the answer. */
const LINGER_MS = 1_000;

/** Up to this many bytes, reading and discarding a body is cheaper than a new connection. */
export const SMALL_BODY = 64 * 1024;
const BODY = JSON.stringify({ error: 'unauthorized' });

/**
 * Answers 401, mostly before the body is read, then closes the connection. Up to `limit` bytes of the body are read and
 * discarded first, because an immediate close would reset the connection before a sender that still writes reads the
 * answer. If the body is small, the connection may stay open: a load balancer may use it for other senders too.
 * @param limit bytes; a chunk counts for at least `CHUNK_BYTES`
 */
export async function refuse(request: FastifyRequest, reply: FastifyReply, limit: number): Promise<void> {
  const isRead = request.raw.readableEnded;
  const keepsOpen = reply.raw.shouldKeepAlive && bytesOf(request) <= SMALL_BODY;
  reply.hijack();
  reply.raw.writeHead(401, {
    ...(!keepsOpen && { connection: 'close' }),
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(BODY),
  });
  if (keepsOpen || isRead) {
    // Node discards the body before it reads the next request.
    reply.raw.end(BODY);
    return;
  }
  reply.raw.write(BODY);
  await Promise.race([discard(request.raw, limit), sleep(LINGER_MS, undefined, { ref: false })]);
  reply.raw.end();
}

/** The announced length of the body. Infinity if the sender did not announce it. */
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
