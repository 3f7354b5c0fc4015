import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

export type TokenGate = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/**
 * Lets nobody past who does not have the operator's token; the same 401 for every reason, before the body is read.
 * Both sides are hashed first, so that neither their first difference nor their length shows in the time it takes.
 */
export function operatorToken(token: string): { bearer: TokenGate; bearerOrBasic: TokenGate } {
  const ours = digest(token);
  const isOurs = (given: string | undefined): boolean => timingSafeEqual(digest(given ?? ''), ours);
  const refuse = (reply: FastifyReply, challenge: string): FastifyReply =>
    reply
      .code(401)
      .headers({ 'www-authenticate': challenge, connection: 'close', 'cache-control': 'no-store' })
      .send({ error: 'unauthorized' });

  return {
    async bearer(request, reply) {
      if (!isOurs(bearerOf(request))) return refuse(reply, 'Bearer realm="expediter"');
      return undefined;
    },
    /** For pages that a browser opens, with any user name: it sends Basic by itself, so never for what changes something. */
    async bearerOrBasic(request, reply) {
      if (!isOurs(bearerOf(request) ?? passwordOf(request))) return refuse(reply, 'Basic realm="expediter"');
      return undefined;
    },
  };
}

function bearerOf({ headers }: FastifyRequest): string | undefined {
  return /^bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
}

function passwordOf({ headers }: FastifyRequest): string | undefined {
  const [, base64] = /^basic +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  if (base64 === undefined) return undefined;
  const pair = Buffer.from(base64, 'base64').toString();
  return pair.slice(pair.indexOf(':') + 1);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
