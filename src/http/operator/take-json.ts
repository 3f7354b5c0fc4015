import type { FastifyInstance } from 'fastify';

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
