import type { FastifyError, FastifyInstance } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { TooManyGuesses } from '../slow-guesses.ts';
import { isDatabaseAway } from './is-database-away.ts';
import { BODY_LIMIT } from './take-json.ts';

const IN_WORDS: Record<number, string> = {
  413: `the body is over ${BODY_LIMIT} bytes`,
  415: 'the body is sent as application/json',
};

const PLACES = { body: 'body', headers: 'headers', params: 'path', querystring: 'query' };

/** Answers errors: says what is wrong with the request, and nothing about failures of ours. */
export function answerErrors(scope: FastifyInstance): void {
  scope.setErrorHandler<FastifyError>((error, request, reply) => {
    if (hasZodFastifySchemaValidationErrors(error)) {
      const where = PLACES[error.validationContext ?? 'body'];
      const problems = error.validation.map(({ instancePath, message }) => ({
        field: instancePath.slice(1).replaceAll('/', '.') || where,
        problem: message ?? 'is wrong',
      }));
      return reply.code(400).send({ error: `wrong ${where}`, problems });
    }
    if (error instanceof TooManyGuesses) {
      // The body may be on its way, and nobody will read it.
      const headers = { 'retry-after': error.retryAfterS, connection: 'close', 'cache-control': 'no-store' };
      return reply.code(429).headers(headers).send({ error: error.message });
    }
    if (isDatabaseAway(error)) {
      request.log.warn({ err: error }, 'operator not answered: Postgres is away');
      return reply.code(503).header('retry-after', '2').send({ error: 'Postgres cannot be used now: ask again later' });
    }
    const { statusCode } = error;
    if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
      const why = (statusCode === 403 || statusCode === 409) && error.cause !== undefined ? { cause: error.cause } : {};
      return reply.code(statusCode).send({ error: IN_WORDS[statusCode] ?? error.message, ...why });
    }
    if (statusCode === 503) return reply.code(503).header('retry-after', '2').send({ error: error.message });
    request.log.error({ err: error }, 'operator not answered');
    return reply.code(500).send({ error: 'it failed here: see the log' });
  });
}
