import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import type { DeliveryOutcome } from '../../core/domain/webhook.ts';
import { findDelivery } from '../../core/replay/stored-webhook.ts';
import { listDeliveries, type DeliveryFilter, type DeliveryKey } from '../../core/replay/list-webhooks.ts';
import type { StatusEvent } from '../../core/domain/order.ts';
import { endOfRun, replayDeliveries } from '../../core/replay/replay-webhooks.ts';
import { replayDelivery } from '../../core/replay/replay-webhook.ts';
import { showDelivery } from '../../core/replay/show-webhook.ts';
import { failures, json } from './answers.ts';
import { audit } from './audit.ts';
import type { OperatorDeps } from './mount-routes.ts';
import {
  DeliveriesQuery,
  DeliveryParams,
  DeliveryQuery,
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
const COUNT_MS = 5_000;
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
        description: 'Nothing of their contents. Whatever is asked for, a page costs a bounded number of reads.',
        querystring: DeliveriesQuery,
        response: { 200: json('A page of deliveries.', ListedDeliveries), ...failures() },
      },
    },
    async ({ query: { location, order, limit, cursor, ...filter } }) => {
      const after = await whereFrom(cursor);
      const { deliveries: found, next } = await listDeliveries(
        pool,
        { ...filter, locationId: location, serviceOrderId: order },
        { oldestFirst: false, after, limit },
      );
      return { deliveries: found, next: next?.deliveryId ?? null };
    },
  );

  api.get(
    '/deliveries/:deliveryId',
    {
      schema: {
        operationId: 'showDelivery',
        tags,
        summary: 'One delivery with its headers and its body',
        description:
          'They may hold what a member wrote: that they were read is logged. With `contents=false` they stay out.',
        params: DeliveryParams,
        querystring: DeliveryQuery,
        response: { 200: json('The delivery.', ShownDelivery), ...failures(404) },
      },
    },
    async (request) => {
      const shown = await showDelivery(translating, request.params.deliveryId);
      if (shown === undefined) throw noSuchDelivery();
      const { body, headers, today, ...rest } = shown;
      const about = { ...rest, bytes: body.length };
      if (request.query.contents === false) {
        return { ...about, today: 'events' in today ? { events: today.events.map(withoutReason) } : today };
      }
      audit(request, 'read delivery', { deliveryId: shown.deliveryId, locationId: shown.locationId });
      return {
        ...about,
        headers,
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
          'caller leaves: `left` says how many are to do, as far as they were counted, and `next` where it goes on.',
        body: ReplayMany,
        response: { 200: json('What became of them.', ReplayedMany), ...failures(413, 415) },
      },
    },
    async (request) => {
      const { dryRun, again, limit, location, cursor, ...filter } = request.body;
      const after = await whereFrom(cursor);
      const end = await endOfRun(pool, filter.until);
      const matching = { ...filter, until: end, locationId: location, replayable: again ? 'all' : 'open' } as const;
      const done: z.infer<typeof ReplayedMany> = {
        dryRun,
        until: end,
        outcomes: {},
        replayed: [],
        refused: [],
        left: 0,
        next: null,
      };
      const until = performance.now() + REPLAY_MS;
      const isOver = (): boolean => closing.aborted || request.socket.destroyed || performance.now() > until;
      let reached: DeliveryKey | undefined;
      const tell = (left?: number): void => {
        if (dryRun) return;
        deps.wake();
        audit(request, 'replay many', { ...filter, locationId: location, outcomes: done.outcomes, left });
      };
      try {
        const run = replayDeliveries({ ...translating, ...deps, dryRun }, matching, {
          from: after,
          passed(upTo) {
            if (!isOver()) return undefined;
            reached = upTo;
            return 'enough';
          },
        });
        for await (const { of, replayed } of run) {
          const { deliveryId, locationId, integration } = of;
          if ('refused' in replayed) done.refused.push({ deliveryId, locationId, integration, ...replayed });
          else {
            done.replayed.push(replayed);
            count(done.outcomes, replayed.outcome);
          }
          if (isOver() || done.replayed.length + done.refused.length === limit) {
            reached = of;
            break;
          }
        }
        if (reached !== undefined) {
          const { counted, isAll } = await countFrom(matching, reached);
          done.left = counted;
          if (counted > 0 || !isAll) done.next = reached.deliveryId;
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

  async function whereFrom(cursor: string | undefined): Promise<DeliveryKey | undefined> {
    if (cursor === undefined) return undefined;
    const after = await findDelivery(pool, cursor);
    if (after === undefined)
      throw scope.httpErrors.badRequest('cursor: is not the `next` of a page, or no longer kept');
    return after;
  }

  async function countFrom(filter: DeliveryFilter, from: DeliveryKey): Promise<{ counted: number; isAll: boolean }> {
    const until = performance.now() + COUNT_MS;
    let counted = 0;
    let after: DeliveryKey | undefined = from;
    while (after !== undefined && counted < COUNT_MAX && performance.now() < until) {
      const page = await listDeliveries(pool, filter, { oldestFirst: true, after, limit: COUNT_PAGE });
      counted += page.deliveries.length;
      after = page.next;
    }
    return { counted, isAll: after === undefined };
  }
}

/** A POS may quote the member in it. */
function withoutReason({ reason: _reason, ...event }: StatusEvent): StatusEvent {
  return event;
}

function count(outcomes: Partial<Record<DeliveryOutcome, number>>, outcome: DeliveryOutcome): void {
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
}
