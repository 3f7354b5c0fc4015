import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

export type TokenGate = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/**
 * Lets nobody past who does not have the operator's token; the same 401 for every reason, before the body is read.
 * Both sides are hashed first, so that neither their first difference nor their length shows in the time it takes.
 */
export function tokenGate(token: string): {
  isOurs: (given: string | undefined) => boolean;
  bearer: TokenGate;
  bearerOrBasic: TokenGate;
} {
  const ours = digest(token);
  const isOurs = (given: string | undefined): boolean => timingSafeEqual(digest(given ?? ''), ours);

  return {
    isOurs,
    async bearer(request, reply) {
      if (!isOurs(bearerOf(request))) return unauthorized(reply, 'Bearer');
      return undefined;
    },
    /** For pages that a browser opens, with any user name: it sends Basic by itself, so never for what changes something. */
    async bearerOrBasic(request, reply) {
      if (!isOurs(bearerOf(request) ?? passwordOf(request))) return unauthorized(reply, 'Basic');
      return undefined;
    },
  };
}

/** The one 401. The connection is closed: a body may be on its way that nobody will read. */
export function unauthorized(reply: FastifyReply, scheme: 'Bearer' | 'Basic' | 'Cookie'): FastifyReply {
  return reply
    .code(401)
    .headers({ 'www-authenticate': `${scheme} realm="expediter"`, connection: 'close', 'cache-control': 'no-store' })
    .send({ error: 'unauthorized' });
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
