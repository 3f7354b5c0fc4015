import type { FastifyInstance } from 'fastify';
import type { DatabaseState } from '../core/postgres/watch-database.ts';

export type Readiness = {
  ready: boolean;
  /** For information: `ready` ignores it, because an outage of Postgres would make all instances unready at once. */
  database: DatabaseState;
};

/**
 * - `GET /healthz` `200` while the process responds
 * - `GET /readyz` `200` or `503` with the readiness as JSON
 */
export async function health(scope: FastifyInstance, { readiness }: { readiness: () => Readiness }): Promise<void> {
  scope.get('/healthz', async () => ({ status: 'ok' }));
  scope.get('/readyz', async (_request, reply) => {
    const now = readiness();
    return reply.code(now.ready ? 200 : 503).send(now);
  });
}
