import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { failures, json } from './answers.ts';
import type { OperatorDeps } from './mount-routes.ts';
import { SpillAnswer } from './spill-answer.ts';

/** Mounts `GET /spill`: what waits while Postgres is away. It sends no query to Postgres. */
export function spillRoutes(
  scope: FastifyInstance,
  { readiness, spillState }: Pick<OperatorDeps, 'readiness' | 'spillState'>,
): void {
  scope.withTypeProvider<ZodTypeProvider>().get(
    '/spill',
    {
      schema: {
        operationId: 'readSpill',
        tags: ['Process'],
        summary: 'Whether Postgres is away, and how many webhooks wait for it',
        description:
          'As this process sees it; every process counts its own. It is answered while Postgres is away. With the spill ' +
          'off, none waits.',
        response: { 200: json('What it knows now.', SpillAnswer), ...failures() },
      },
    },
    async () => {
      const { waiting, oldestAt } = spillState();
      return { database: readiness().database, waiting, oldestAt: oldestAt?.toISOString() ?? null };
    },
  );
}
