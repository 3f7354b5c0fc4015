import pg from 'pg';
import type { FastifyError, FastifyInstance } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { TooManyFailures } from '../throttle-failures.ts';

/** Makes a 409: nothing was changed, and why. */
export function conflict({ refused, cause }: { refused: string; cause: { code: string } }): Error {
  return Object.assign(new Error(refused, { cause }), { statusCode: 409 });
}

/** Errors of the client library, which carry no code. */
const LOST =
  /^(Postgres has not told the time yet|timeout exceeded when trying to connect|Connection terminated|Client has encountered|Query read timeout)/;
const UNREACHABLE = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'];

/** True if Postgres cannot be used now, or is overloaded: the same request may succeed later. */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isDatabaseAway);
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  if (error instanceof pg.DatabaseError) return /^(08|25006|40|53|55|57)/.test(error.code ?? '');
  return UNREACHABLE.includes(String(code)) || LOST.test(error.message) || isDatabaseAway(error.cause);
}

/** Bytes of the largest body. No operator needs more. */
export const BODY_LIMIT = 64 * 1024;

/** Makes a scope accept JSON of a modest size, or no body. */
export function takeJson(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  const parse = scope.getDefaultJsonParser('error', 'error');
  scope.addContentTypeParser(
    'application/json',
    { parseAs: 'string', bodyLimit: BODY_LIMIT },
    (request, body: string, done) => {
      // Some clients send a POST without a body.
      if (body === '') done(null, undefined);
      else void parse(request, body, done);
    },
  );
}

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
    if (error instanceof TooManyFailures) {
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
