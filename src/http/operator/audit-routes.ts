import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { Id } from '../../core/domain/order.ts';
import { ASKED_OUTCOMES, ListedActs, readAudit } from '../../core/operators/read-audit.ts';
import { failures, json } from './answers.ts';
import { locationsWithin } from './guard-routes.ts';
import type { OperatorDeps } from './mount-routes.ts';
import { When, oneOf, paging } from './request-fields.ts';

const AuditQuery = z.strictObject({
  actor: Id.optional().meta({ description: 'By whom: their name as the audit has it, or their id.' }),
  did: Id.optional().meta({ description: 'What was done.', examples: ['replay'] }),
  location: Id.optional().meta({ description: 'At this location.' }),
  order: Id.optional().meta({ description: 'About this order. Replays of its webhooks stand in its story.' }),
  outcome: oneOf(ASKED_OUTCOMES, 'How it ended; `unknown`: it is under way, or its process died.').optional(),
  since: When.optional().describe('Begun then or later.'),
  until: When.optional().describe('Begun before.'),
  ...paging(z.string().regex(/^\d{1,18}$/, { error: 'is not the `next` of a page' })),
});

/** Mounts `GET /audit`: what operators did and were refused, newest first. */
export function auditRoutes(scope: FastifyInstance, { pool }: Pick<OperatorDeps, 'pool'>): void {
  const api = scope.withTypeProvider<ZodTypeProvider>();
  api.get(
    '/audit',
    {
      schema: {
        operationId: 'readAudit',
        tags: ['Operators'],
        summary: 'What operators did, looked into and were refused, newest first',
        description:
          'Codes and ids, nothing of a member. An admin of some locations reads what was done at those; what belongs to ' +
          'no location only an admin of all reads. Whatever is asked for, a page costs a bounded number of reads.',
        querystring: AuditQuery,
        response: { 200: json('A page of acts.', ListedActs), ...failures() },
      },
    },
    async (request) => {
      const { location, order, limit, cursor, ...filter } = request.query;
      const locations = locationsWithin(request, location);
      return readAudit(pool, { ...filter, locations, serviceOrderId: order }, { before: cursor, limit });
    },
  );
}
