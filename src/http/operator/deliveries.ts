import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import type { DeliveryOutcome } from '../../core/apply-deliveries.ts';
import { findDelivery } from '../../core/kept-delivery.ts';
import { listDeliveries, type DeliveryFilter, type ListedDelivery } from '../../core/list-deliveries.ts';
import { replayDeliveries } from '../../core/replay-deliveries.ts';
import { replayDelivery } from '../../core/replay-delivery.ts';
import { showDelivery } from '../../core/show-delivery.ts';
import { failures, json } from './answers.ts';
import { audit } from './audit.ts';
import type { OperatorDeps } from './operator.ts';
import {
  DeliveriesQuery,
  DeliveryParams,
  ListedDeliveries,
  Replay,
  ReplayMany,
  Replayed,
  ReplayedMany,
  ShownDelivery,
} from './shapes.ts';

const tags = ['Deliveries'];
/** Before the usual load balancer gives up on the answer. */
const REPLAY_MS = 20_000;
const COUNT_PAGE = 1_000;
const COUNT_MAX = 10_000;

/**
 * - `GET /deliveries` webhooks as they arrived, newest first
 * - `GET /deliveries/:deliveryId` one with its headers and its body
 * - `POST /deliveries/:deliveryId/replay` applies it anew, as a delivery of its own
 * - `POST /deliveries/replay` the same with all that match
 *
 * @param closing stops a long replay between two deliveries
 */
export function deliveries(scope: FastifyInstance, deps: OperatorDeps, closing: AbortSignal): void {
  const { translating } = deps;
  const { pool } = translating;
  const api = scope.withTypeProvider<ZodTypeProvider>();
  const noSuchDelivery = (): Error => scope.httpErrors.notFound('no delivery that is kept has this id');

  api.get(
    '/deliveries',
    {
      schema: {
        operationId: 'listDeliveries',
        tags,
        summary: 'Webhooks as they arrived, newest first',
        description: 'Nothing of their contents.',
        querystring: DeliveriesQuery,
        response: { 200: json('A page of deliveries.', ListedDeliveries), ...failures() },
      },
    },
    async ({ query: { location, order, limit, cursor, ...filter } }) => {
      const after = cursor === undefined ? undefined : await findDelivery(pool, cursor);
      if (cursor !== undefined && after === undefined) {
        throw scope.httpErrors.badRequest('cursor: is not the `next` of a page, or no longer kept');
      }
      const found = await listDeliveries(
        pool,
        { ...filter, locationId: location, serviceOrderId: order },
        { oldestFirst: false, after, limit },
      );
      return { deliveries: found, next: found.length === limit ? (found.at(-1)?.deliveryId ?? null) : null };
    },
  );

  api.get(
    '/deliveries/:deliveryId',
    {
      schema: {
        operationId: 'showDelivery',
        tags,
        summary: 'One delivery with its headers and its body',
        description: 'They may hold what a member wrote: that they were read is logged.',
        params: DeliveryParams,
        response: { 200: json('The delivery.', ShownDelivery), ...failures(404) },
      },
    },
    async (request) => {
      const shown = await showDelivery(translating, request.params.deliveryId);
      if (shown === undefined) throw noSuchDelivery();
      audit(request, 'read delivery', { deliveryId: shown.deliveryId, locationId: shown.locationId });
      const { body, today } = shown;
      return {
        ...shown,
        body: { base64: body.toString('base64'), ...(isUtf8(body) && { text: body.toString() }) },
        today: 'events' in today ? { events: [...today.events] } : today,
      };
    },
  );

  api.post(
    '/deliveries/:deliveryId/replay',
    {
      schema: {
        operationId: 'replayDelivery',
        tags,
        summary: 'Apply a kept webhook anew',
        description: "As a delivery of its own, by today's settings. A repeat moves nothing.",
        params: DeliveryParams,
        body: Replay,
        response: { 200: json('What became of it.', Replayed), ...failures(404, 409, 413, 415) },
      },
    },
    async (request) => {
      const { dryRun } = request.body;
      const replayed = await replayDelivery({ ...translating, ...deps, dryRun }, request.params.deliveryId);
      if (replayed === undefined) throw noSuchDelivery();
      if ('refused' in replayed) throw scope.httpErrors.conflict(replayed.refused);
      if (dryRun) return replayed;
      deps.wake();
      const { deliveryId, replayOf, locationId, integration, outcome } = replayed;
      audit(request, 'replay', { deliveryId, replayOf, locationId, integration, outcome });
      return replayed;
    },
  );

  api.post(
    '/deliveries/replay',
    {
      schema: {
        operationId: 'replayDeliveries',
        tags,
        summary: 'Apply anew all kept webhooks that match, oldest first',
        description:
          'Each with its own commit, as a delivery of its own; one that cannot be replayed stops no other. Left out are ' +
          'replays, and webhooks of which a replay has made something else already. Ends early after 20 s, and when the ' +
          'caller leaves: `left` says how many are to do.',
        body: ReplayMany,
        response: { 200: json('What became of them.', ReplayedMany), ...failures(413, 415) },
      },
    },
    async (request) => {
      const { dryRun, again, limit, location, ...filter } = request.body;
      const matching = { ...filter, locationId: location, replayable: again ? 'all' : 'open' } as const;
      const done: z.infer<typeof ReplayedMany> = { dryRun, outcomes: {}, replayed: [], refused: [], left: 0 };
      const until = performance.now() + REPLAY_MS;
      let last: ListedDelivery | undefined;
      const tell = (left?: number): void => {
        if (dryRun) return;
        deps.wake();
        audit(request, 'replay many', { ...filter, locationId: location, outcomes: done.outcomes, left });
      };
      try {
        for await (const { of, replayed } of replayDeliveries({ ...translating, ...deps, dryRun }, matching)) {
          last = of;
          const { deliveryId, locationId, integration } = of;
          if ('refused' in replayed) done.refused.push({ deliveryId, locationId, integration, ...replayed });
          else {
            done.replayed.push(replayed);
            count(done.outcomes, replayed.outcome);
          }
          const isOver = closing.aborted || request.socket.destroyed || performance.now() > until;
          if (isOver || done.replayed.length + done.refused.length === limit) {
            done.left = await countFrom(matching, last);
            break;
          }
        }
      } catch (error) {
        // What was replayed until Postgres went away is committed all the same.
        tell();
        throw error;
      }
      tell(done.left);
      return done;
    },
  );

  async function countFrom(filter: DeliveryFilter, last: ListedDelivery): Promise<number> {
    let counted = 0;
    for (let after = last; counted < COUNT_MAX;) {
      const page = await listDeliveries(pool, filter, { oldestFirst: true, after, limit: COUNT_PAGE });
      counted += page.length;
      const end = page.at(-1);
      if (end === undefined || page.length < COUNT_PAGE) break;
      after = end;
    }
    return counted;
  }
}

function count(outcomes: Partial<Record<DeliveryOutcome, number>>, outcome: DeliveryOutcome): void {
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
}
