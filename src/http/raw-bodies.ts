import type { FastifyInstance } from 'fastify';

/**
 * Lets a scope's handlers read bodies themselves. Content-Type decides nothing there: a sender never sees the
 * framework's own 400, 413 or 415, which it would take for an answer to what it sent.
 */
export function takeRawBodies(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  scope.addHook('onRequest', async (request) => {
    // Fastify refuses a malformed content type before it asks any parser.
    request.raw.headers['content-type'] = 'application/octet-stream';
  });
}
