import type { FastifyRequest } from 'fastify';

/** Writes down what an operator did, or read of a member, and about what: there is one token, so not who. */
export function audit(request: FastifyRequest, did: string, about: object): void {
  request.log.info({ did, ...about }, 'operator');
}
