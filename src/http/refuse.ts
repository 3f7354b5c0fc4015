import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CHUNK_BYTES } from './read-body.ts';

/** Time for a sender that still writes to read the answer. */
const LINGER_MS = 1_000;

/**
 * Answers 401 before the body is read, and closes the connection. An immediate close would reset it under a sender that
 * still writes, which would never see the answer: so a bounded rest is read and discarded first.
 * @param limit bytes of the rest, of which a chunk counts for 64 at the least
 */
export async function refuse(request: FastifyRequest, reply: FastifyReply, limit: number): Promise<void> {
  const body = JSON.stringify({ error: 'unauthorized' });
  reply.hijack();
  reply.raw.writeHead(401, {
    connection: 'close',
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  });
  reply.raw.write(body);
  await Promise.race([discard(request.raw, limit), sleep(LINGER_MS, undefined, { ref: false })]);
  reply.raw.end();
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
