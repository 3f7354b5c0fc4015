import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { TranslatedWebhook, WebhookOutcome } from '../core/domain/webhook.ts';
import { withTimeout } from '../core/domain/with-timeout.ts';
import { WEBHOOK_PATH } from '../core/domain/webhook-path.ts';
import type { Accepted } from '../core/statuses/batch-webhooks.ts';
import type { Observe, WebhookRefused } from '../core/domain/observed.ts';
import type { AuthenticateToken, TokenScope } from '../core/locations/webhook-tokens.ts';
import { bodyBudget } from './body-budget.ts';
import type { Recognise } from './bound-connections.ts';
import { BeyondShare, fairShare } from './fair-share.ts';
import { takeRawBodies } from './raw-bodies.ts';
import { readBody } from './read-body.ts';
import { SMALL_BODY, refuse } from './refuse.ts';
import { traceOf } from './request-ids.ts';
import { translateRequest, type TranslateDeps } from './translate-request.ts';

export type WebhookDeps = TranslateDeps & {
  authenticateToken: AuthenticateToken;
  /** Resolves once the webhook is committed; `deadline` is in milliseconds since the epoch. */
  accept: (webhook: TranslatedWebhook, deadline: number) => Promise<Accepted>;
  observe: Observe;
  bodyBudget: number;
  /** Webhooks a second that one location may always send, however busy the others are. */
  perSecond: number;
};

/** Time for an answer. A sender gets one within 1.5 s, whatever Postgres does. */
const ANSWER_MS = 1_400;
/** What becomes of a webhook that is beyond the quota. */
const NOT_KEPT: Accepted = { outcome: 'dropped', serviceOrderIds: [] };
const lateToken = (): Error => new Error(`the token was not looked up in ${ANSWER_MS} ms`);

/**
 * Mounts the return door: first the token, then the bytes, then the provider verifies and translates, then one commit.
 *
 * - `200` the change is durable: `{"outcome", "webhookId"}`, with outcome applied, parked, duplicate, stale, unmatched,
 *   ignored or dropped; `webhookId` is null if it was dropped and not kept
 * - `401` the token is not valid here; the same answer for every reason, before the body is read
 * - `500` not committed, or the token could not be checked: the same request may succeed later (`Retry-After`)
 *
 * There is no other answer: vendors interpret others in their own ways.
 */
export function webhookDoor(app: FastifyInstance, deps: WebhookDeps, recognise: Recognise): void {
  const budget = bodyBudget(deps.bodyBudget);
  const share = fairShare(deps.perSecond, (locationId) =>
    app.log.warn({ locationId }, 'location floods: held back for the others'),
  );
  app.addHook('onClose', async () => share.stop());
  const authenticated = new WeakMap<FastifyRequest, { scope: TokenScope; spentMs: number }>();
  const turnAway = (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    deps.observe(refusedBy(request, reply, 'unauthorized'));
    return refuse(request, reply, deps.bodyLimit);
  };

  const authenticate = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { integration, locationId } = request.params as { integration: string; locationId: string };
    const { token } = request.query as { token?: unknown };
    const began = performance.now();
    // A token given twice is an array, and not valid.
    const found = typeof token === 'string' && token !== '' ? deps.authenticateToken(token) : undefined;
    const scope = found instanceof Promise ? await withTimeout(ANSWER_MS, () => found, lateToken) : found;
    if (scope?.integration !== integration || scope.locationId !== locationId) {
      return turnAway(request, reply);
    }
    recognise(reply.raw);
    authenticated.set(request, { scope, spentMs: performance.now() - began });
    return undefined;
  };

  const receive = async (
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<{ outcome: WebhookOutcome; webhookId: string | null }> => {
    const { scope, spentMs } = authenticated.get(request) ?? {};
    if (scope === undefined || spentMs === undefined) throw new Error('a webhook came past its token');
    share.enter(scope.locationId);
    const room = budget.open(scope.locationId);
    const onBytes = (bytes: number): void => {
      room.take(bytes);
      share.spend(scope.locationId, bytes);
    };
    try {
      const read = await readBody(request.raw, deps.bodyLimit, { onBytes });
      const deadline = Date.now() + ANSWER_MS - spentMs;
      const webhook = await translateRequest(request, scope, { ...read, deadline }, deps);
      if (webhook.dropped?.unproven === true) share.distrust(scope.locationId);
      const { outcome, serviceOrderIds } = webhook.id === null ? NOT_KEPT : await deps.accept(webhook, deadline);
      deps.observe({
        what: 'webhook',
        outcome,
        requestId: request.id,
        trace: traceOf(request.headers),
        milliseconds: reply.elapsedTime,
        integration: scope.integration,
        locationId: scope.locationId,
        tokenId: scope.tokenId,
        webhookId: webhook.id,
        serviceOrderIds,
        dropped: webhook.dropped,
      });
      return { outcome, webhookId: webhook.id };
    } finally {
      room.release();
    }
  };

  void app.register(async (scope) => {
    takeRawBodies(scope);
    scope.setErrorHandler(async (error, request, reply) => {
      reply.code(500).header('retry-after', '1');
      const { locationId } = authenticated.get(request)?.scope ?? {};
      const floods = error instanceof BeyondShare;
      deps.observe({
        ...refusedBy(request, reply, 'not_committed'),
        locationId,
        error: floods ? undefined : error,
      });
      // In a flood, a new connection for every webhook would cost more than the webhook.
      const isSmall = Number(request.headers['content-length'] ?? Infinity) <= SMALL_BODY;
      if (!(floods && isSmall)) reply.header('connection', 'close');
      return reply.send({ error: 'send it again later' });
    });
    scope.post(`${WEBHOOK_PATH}/:integration/:locationId`, { onRequest: authenticate }, async (request, reply) => {
      const answer = await receive(request, reply);
      if (!request.raw.complete) reply.header('connection', 'close');
      return answer;
    });
    // Any other path is wrong, and is answered like a wrong token.
    for (const path of [WEBHOOK_PATH, `${WEBHOOK_PATH}/*`]) {
      scope.post(path, { onRequest: turnAway }, () => undefined);
    }
  });
}

function refusedBy(request: FastifyRequest, reply: FastifyReply, outcome: WebhookRefused['outcome']): WebhookRefused {
  const { integration, locationId } = request.params as { integration?: string; locationId?: string };
  const asked = { requestId: request.id, trace: traceOf(request.headers), milliseconds: reply.elapsedTime };
  return { what: 'webhook refused', outcome, ...asked, integration, claimedLocationId: locationId };
}
