import type { FastifyInstance } from 'fastify';

/**
 * Makes a scope's handlers read bodies themselves. Content-Type decides nothing there: a sender must never see the
 * framework's 400, 413 or 415, which it would take for an answer to its payload.
 */
export function takeRawBodies(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  scope.addHook('onRequest', (request, _reply, done) => {
    // Fastify refuses a malformed content type before it asks any parser.
    delete request.raw.headers['content-type'];
    done();
  });
}
