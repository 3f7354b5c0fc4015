import type { FastifyReply, FastifyRequest } from 'fastify';
import { bearerOf } from '../bearer-of.ts';
import type { Recognise } from '../bound-connections.ts';
import type { JudgeSlowly } from '../slow-guesses.ts';
import type { Identify } from './identify.ts';

export type TokenGate = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/** Refuses every request without an operator's token, with the same 401 for every reason, before the body is read. */
export function tokenGate(
  { identify, judge }: { identify: Identify; judge: JudgeSlowly },
  recognise: Recognise,
): { bearer: TokenGate; bearerOrBasic: TokenGate } {
  const gate =
    (scheme: 'Bearer' | 'Basic', tokenOf: (request: FastifyRequest) => string | undefined): TokenGate =>
    async (request, reply) => {
      const token = tokenOf(request);
      request.identifyAgain = () => identify.byToken(token);
      const door = scheme === 'Bearer' ? 'bearer' : 'basic';
      request.operator = await judge(request, door, token === undefined ? [] : [token], request.identifyAgain);
      if (request.operator === undefined) return unauthorized(reply, scheme);
      recognise(reply.raw, request.operator.id);
      return undefined;
    };
  return {
    bearer: gate('Bearer', ({ headers }) => bearerOf(headers)),
    /** For pages in a browser, with any user name. Never for changes: a browser sends Basic without being asked. */
    bearerOrBasic: gate('Basic', (request) => bearerOf(request.headers) ?? passwordOf(request)),
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
