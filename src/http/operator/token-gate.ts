import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { bearerOf } from '../bearer-of.ts';
import type { Recognise } from '../bound-connections.ts';

export type TokenGate = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/**
 * Refuses every request without the operator's token, with the same 401 for every reason, before the body is read. Both
 * sides are hashed before they are compared, so the time shows neither the first difference nor the length.
 */
export function tokenGate(
  token: string,
  recognise: Recognise,
): {
  isOurs: (given: string | undefined) => boolean;
  bearer: TokenGate;
  bearerOrBasic: TokenGate;
} {
  const ours = digest(token);
  const isOurs = (given: string | undefined): boolean => timingSafeEqual(digest(given ?? ''), ours);

  return {
    isOurs,
    async bearer(request, reply) {
      if (!isOurs(bearerOf(request.headers))) return unauthorized(reply, 'Bearer');
      recognise(reply.raw);
      return undefined;
    },
    /** For pages in a browser, with any user name. Never for changes: a browser sends Basic without being asked. */
    async bearerOrBasic(request, reply) {
      if (!isOurs(bearerOf(request.headers) ?? passwordOf(request))) return unauthorized(reply, 'Basic');
      recognise(reply.raw);
      return undefined;
    },
  };
}

/** Answers 401 and closes the connection, since the body may be on its way and nobody will read it. */
export function unauthorized(reply: FastifyReply, scheme: 'Bearer' | 'Basic' | 'Cookie'): FastifyReply {
  return reply
    .code(401)
    .headers({ 'www-authenticate': `${scheme} realm="expediter"`, connection: 'close', 'cache-control': 'no-store' })
    .send({ error: 'unauthorized' });
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
