import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { failures } from './answers.ts';

export type RenderMetrics = () => Promise<{ contentType: string; body: string }>;

/** Mounts `GET /metrics` for Prometheus. It sends no query to Postgres. */
export function metricsRoute(scope: FastifyInstance, render: RenderMetrics): void {
  scope.get(
    '/metrics',
    {
      schema: {
        operationId: 'metrics',
        summary: 'The metrics of this process, for Prometheus',
        response: {
          200: {
            description: "In Prometheus' text format.",
            content: { 'text/plain': { schema: z.string() } },
          },
          ...failures(),
        },
      },
    },
    async (_request, reply) => {
      const { contentType, body } = await render();
      return reply.type(contentType).send(body);
    },
  );
}
