import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { OpenSession, endSession, listSessions } from '../../core/operators/operator-sessions.ts';
import { failures, json } from './answers.ts';
import type { OperatorDeps } from './mount-routes.ts';

const tags = ['Operators'];

export const SessionParams = z.strictObject({
  sessionId: z
    .uuid({ error: 'is not the id of a session, such as 0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11' })
    .meta({ description: 'Its id, as the list shows it.', examples: ['0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11'] }),
});

/** Mounts `GET /operators/sessions` and `POST /operators/sessions/:sessionId/revoke`: the browsers that signed in. */
export function operatorSessionRoutes(scope: FastifyInstance, { pool, identify, operatorToken }: OperatorDeps): void {
  const api = scope.withTypeProvider<ZodTypeProvider>();

  api.get(
    '/operators/sessions',
    {
      schema: {
        operationId: 'listSessions',
        tags,
        summary: 'The browsers that are signed in',
        description: 'By when they were seen last. What they may do is what their tokens or grants say by now.',
        response: { 200: json('All open sessions.', z.object({ sessions: z.array(OpenSession) })), ...failures() },
      },
    },
    async () => ({ sessions: await listSessions(pool, { operatorToken }) }),
  );

  api.post(
    '/operators/sessions/:sessionId/revoke',
    {
      schema: {
        operationId: 'revokeSession',
        tags,
        summary: 'Shut a browser out, within five seconds',
        description: 'For good, its open streams as well; also where it was already. Whoever it is may sign in again.',
        params: SessionParams,
        response: {
          200: json('It opens nothing any more.', z.object({ sessionId: z.string(), revoked: z.literal(true) })),
          ...failures(404, 413, 415),
        },
      },
    },
    async (request) => {
      const { sessionId } = request.params;
      if (!(await endSession(pool, sessionId))) throw scope.httpErrors.notFound('no session has this id');
      identify.lookAnew();
      return { sessionId, revoked: true as const };
    },
  );
}
