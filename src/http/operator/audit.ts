import type { FastifyRequest } from 'fastify';

/** Logs what an operator changed, or read about a member. Not who: there is one token. */
export function audit(request: FastifyRequest, did: string, about: object): void {
  request.log.info({ did, ...about }, 'operator');
}
