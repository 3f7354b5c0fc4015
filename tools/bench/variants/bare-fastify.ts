import { createHmac, hash, timingSafeEqual } from 'node:crypto';
import fastify, { type FastifyInstance } from 'fastify';
import type { Sender } from '../stage/prepare-bench-database.ts';

/** Stores a webhook before it is answered. */
export type Keep = (webhook: { locationId: string; webhookId: string; payload: object }) => Promise<unknown>;

/**
 * The fastest possible Fastify: finds the token's hash, verifies the body's signature, and answers. Queries no database
 * and writes no log.
 * @param keep gets each parsed webhook with a valid signature; without `keep`, nothing is parsed
 */
export function bareFastify(senders: readonly Sender[], keep?: Keep): FastifyInstance {
  const known = new Map(
    senders.map(({ locationId, token, secret }) => [
      hash('sha256', token),
      { locationId, key: Buffer.from(secret.replace('whsec_', ''), 'base64') },
    ]),
  );
  const app = fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.post('/webhook/standard/:locationId', (request, reply) => {
    const { locationId } = request.params as { locationId: string };
    const { token } = request.query as { token: string };
    const scope = known.get(hash('sha256', token));
    if (scope?.locationId !== locationId) return reply.code(401).send();
    const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = request.headers;
    const right = createHmac('sha256', scope.key)
      .update(`${String(id)}.${String(timestamp)}.`)
      .update(request.body as Buffer)
      .digest();
    const given = Buffer.from(String(signature).slice('v1,'.length), 'base64');
    const isRight = given.length === right.length && timingSafeEqual(given, right);
    const answer = { outcome: isRight ? 'applied' : 'dropped', webhookId: '019a0000-0000-7000-8000-000000000000' };
    if (keep === undefined || !isRight) return reply.send(answer);
    const payload = JSON.parse(String(request.body)) as object;
    return keep({ locationId, webhookId: String(id), payload }).then(() => answer);
  });
  return app;
}
