import type { FastifyReply, FastifyRequest } from 'fastify';
import { bearerOf } from '../bearer-of.ts';
import type { Recognise } from '../bound-connections.ts';
import type { JudgeSlowly } from '../slow-guesses.ts';
import type { Identify } from './identify.ts';

/** Refuses every request without an operator's token, with the same 401 for every reason, before the body is read. */
export function bearerGate(
  { identify, judge }: { identify: Identify; judge: JudgeSlowly },
  recognise: Recognise,
): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> {
  return async (request, reply) => {
    const token = bearerOf(request.headers);
    request.identifyAgain = () => identify.byToken(token);
    request.operator = await judge(request, 'bearer', token === undefined ? [] : [token], request.identifyAgain);
    if (request.operator === undefined) return unauthorized(reply, 'Bearer');
    recognise(reply.raw, request.operator.id);
    return undefined;
  };
}

/** Answers 401 and closes the connection, since the body may be on its way and nobody will read it. */
export function unauthorized(reply: FastifyReply, scheme: 'Bearer' | 'Cookie'): FastifyReply {
  return reply
    .code(401)
    .headers({ 'www-authenticate': `${scheme} realm="expediter"`, connection: 'close', 'cache-control': 'no-store' })
    .send({ error: 'unauthorized' });
}
