import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import type { WebhookOutcome } from '../../core/domain/webhook.ts';
import { findWebhook } from '../../core/replay/stored-webhook.ts';
import { ListedWebhooks, listWebhooks, type WebhookFilter, type WebhookKey } from '../../core/replay/list-webhooks.ts';
import { ReplayedMany, endOfRun, replayWebhooks, runAsAct, runInCounts } from '../../core/replay/replay-webhooks.ts';
import { Replayed, replayWebhook } from '../../core/replay/replay-webhook.ts';
import { ShownWebhook, showWebhook } from '../../core/replay/show-webhook.ts';
import { addressOf } from '../source-of.ts';
import { failures, json } from './answers.ts';
import { conflict } from './conflict.ts';
import { operatorOf } from './guard-routes.ts';
import type { OperatorDeps } from './mount-routes.ts';
import { locationsWithin } from './guard-routes.ts';
import { noSuch } from './no-such.ts';
import { Replay, ReplayMany, WebhookParams, WebhookQuery, WebhooksQuery } from './webhook-requests.ts';

const tags = ['Webhooks'];
/** Time for a replay, below a usual load balancer's time-out. */
const REPLAY_MS = 20_000;
const COUNT_MS = 5_000;
const COUNT_PAGE = 1_000;
const COUNT_MAX = 10_000;

/**
 * - `GET /webhooks` webhooks as they arrived, newest first
 * - `GET /webhooks/:webhookId` one with its headers and its body
 * - `POST /webhooks/:webhookId/replay` applies it again, as a new webhook
 * - `POST /webhooks/replay` the same with all that match
 *
 * @param closing stops a long replay between two webhooks
 */
export function webhookRoutes(scope: FastifyInstance, deps: OperatorDeps, closing: AbortSignal): void {
  const { translating } = deps;
  const { pool } = translating;
  const api = scope.withTypeProvider<ZodTypeProvider>();
  const noSuchWebhook = (): Error => scope.httpErrors.notFound(noSuch.webhook);

  api.get(
    '/webhooks',
    {
      schema: {
        operationId: 'listWebhooks',
        tags,
        summary: 'Webhooks as they arrived, newest first',
        description: 'Nothing of their contents. Whatever is asked for, a page costs a bounded number of reads.',
        querystring: WebhooksQuery,
        response: { 200: json('A page of webhooks.', ListedWebhooks), ...failures() },
      },
    },
    async (request) => {
      const { location, order, limit, cursor, ...filter } = request.query;
      const locations = locationsWithin(request, location);
      const after = await whereFrom(cursor, locations);
      const { webhooks: found, next } = await listWebhooks(
        pool,
        { ...filter, locations, serviceOrderId: order },
        { oldestFirst: false, after, limit },
      );
      return { webhooks: found, next: next?.webhookId ?? null };
    },
  );

  api.get(
    '/webhooks/:webhookId',
    {
      schema: {
        operationId: 'showWebhook',
        tags,
        summary: 'One webhook with its headers and its body',
        description:
          'They may hold what a member wrote: who read them is in the audit. With `contents=false` they stay out.',
        params: WebhookParams,
        querystring: WebhookQuery,
        response: { 200: json('The webhook.', ShownWebhook), ...failures(404) },
      },
    },
    async (request) => {
      const shown = await showWebhook({ ...translating, registry: deps.registry }, request.params.webhookId);
      if (shown === undefined) throw noSuchWebhook();
      if (request.query.contents === false) return withoutContents(shown);
      return shown;
    },
  );

  api.post(
    '/webhooks/:webhookId/replay',
    {
      schema: {
        operationId: 'replayWebhook',
        tags,
        summary: 'Apply a kept webhook anew',
        description: "As a webhook of its own, by today's settings. A repeat moves nothing.",
        params: WebhookParams,
        body: Replay,
        response: { 200: json('What became of it.', Replayed), ...failures(404, 409, 413, 415) },
      },
    },
    async (request) => {
      const { dryRun } = request.body;
      const replayed = await replayWebhook({ ...translating, ...deps, dryRun }, request.params.webhookId);
      if (replayed === undefined) throw noSuchWebhook();
      if ('refused' in replayed) throw conflict(replayed);
      if (dryRun) return replayed;
      deps.wake();
      if (request.act !== undefined) request.act.after = replayed.outcome;
      return replayed;
    },
  );

  api.post(
    '/webhooks/replay',
    {
      config: {
        about(request) {
          const { location, again, ...filter } = request.body as z.infer<typeof ReplayMany>;
          const locations = locationsWithin(request, location);
          return runAsAct(pool, { ...filter, locations, replayable: again ? 'all' : 'open' });
        },
      },
      schema: {
        operationId: 'replayWebhooks',
        tags,
        summary: 'Apply anew all kept webhooks that match, oldest first',
        description:
          'Each with its own commit, as a webhook of its own; one that cannot be replayed stops no other. Left out are ' +
          'replays, and webhooks of which a replay has made something else already. Ends early after 20 s, and when the ' +
          'caller leaves: `left` says how many are to do, as far as they were counted, and `next` where it goes on.',
        body: ReplayMany,
        response: { 200: json('What became of them.', ReplayedMany), ...failures(413, 415) },
      },
    },
    async (request) => {
      const { dryRun, again, limit, location, cursor, ...filter } = request.body;
      const locations = locationsWithin(request, location);
      const after = await whereFrom(cursor, locations);
      const end = await endOfRun(pool, filter.until);
      const matching = { ...filter, until: end, locations, replayable: again ? 'all' : 'open' } as const;
      const done: ReplayedMany = {
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
      let reached: WebhookKey | undefined;
      const ended = (): void => {
        if (dryRun) return;
        deps.wake();
        if (request.act !== undefined) request.act.after = runInCounts(done);
      };
      try {
        const run = replayWebhooks({ ...translating, ...deps, dryRun }, matching, {
          by: { ...operatorOf(request), source: addressOf(request), requestId: request.id },
          from: after,
          passed(upTo) {
            if (!isOver()) return undefined;
            reached = upTo;
            return 'enough';
          },
        });
        for await (const { of, replayed } of run) {
          const { webhookId, locationId, integration } = of;
          if ('refused' in replayed) done.refused.push({ webhookId, locationId, integration, ...replayed });
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
          if (counted > 0 || !isAll) done.next = reached.webhookId;
        }
      } catch (error) {
        // Webhooks replayed before Postgres went away are committed.
        ended();
        throw error;
      }
      ended();
      return done;
    },
  );

  async function whereFrom(
    cursor: string | undefined,
    locations: readonly string[] | undefined,
  ): Promise<WebhookKey | undefined> {
    if (cursor === undefined) return undefined;
    const after = await findWebhook(pool, cursor);
    if (after === undefined || locations?.includes(after.locationId) === false)
      throw scope.httpErrors.badRequest('cursor: is not the `next` of a page, or no longer kept');
    return after;
  }

  async function countFrom(filter: WebhookFilter, from: WebhookKey): Promise<{ counted: number; isAll: boolean }> {
    const until = performance.now() + COUNT_MS;
    let counted = 0;
    let after: WebhookKey | undefined = from;
    while (after !== undefined && counted < COUNT_MAX && performance.now() < until) {
      const page = await listWebhooks(pool, filter, { oldestFirst: true, after, limit: COUNT_PAGE });
      counted += page.webhooks.length;
      after = page.next;
    }
    return { counted, isAll: after === undefined };
  }
}

/** Removes contents and reasons: a POS may quote the member in a reason. */
function withoutContents({ body: _body, headers: _headers, today, ...about }: ShownWebhook): ShownWebhook {
  if (!('events' in today)) return { ...about, today };
  return { ...about, today: { events: today.events.map(({ reason: _reason, ...event }) => event) } };
}

function count(outcomes: Partial<Record<WebhookOutcome, number>>, outcome: WebhookOutcome): void {
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
}
