import type { FastifyInstance } from 'fastify';

/** Bytes; nobody has that much to say. */
export const BODY_LIMIT = 64 * 1024;

/** A scope's bodies are JSON of a modest size, or nothing. */
export function takeJson(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  const parse = scope.getDefaultJsonParser('error', 'error');
  scope.addContentTypeParser(
    'application/json',
    { parseAs: 'string', bodyLimit: BODY_LIMIT },
    (request, body: string, done) => {
      // As some clients send a POST without a body.
      if (body === '') done(null, undefined);
      else void parse(request, body, done);
    },
  );
}
