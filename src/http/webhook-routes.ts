import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ArrivedWebhook, TranslatedWebhook, WebhookOutcome } from '../core/domain/webhook.ts';
import { WEBHOOK_PATH } from '../core/domain/paths.ts';
import type { Observe, WebhookObserved, WebhookRefused } from '../core/domain/observed.ts';
import { uuidV7 } from '../core/domain/uuid-v7.ts';
import type { ListedToken } from '../core/locations/changed-tokens.ts';
import { isOld, type OldToken, type TokenScope } from '../core/locations/webhook-tokens.ts';
import { isDataError } from '../core/postgres/transactions.ts';
import type { Now } from '../core/postgres/database-clock.ts';
import type { DatabaseWatch } from '../core/postgres/watch-database.ts';
import type { SpilledWebhook, SpillWebhook } from '../core/spill/spill-webhook.ts';
import type { Accepted } from '../core/statuses/batch-webhooks.ts';
import { storeArrived, type StoreDeps, type StoreRefused, NOT_STORED } from '../core/statuses/store-webhooks.ts';
import { translateArrived, type TranslateRules } from '../core/statuses/translate-webhook-request.ts';
import { type BodyBudget, readBody, takeRawBodies } from './read-body.ts';
import type { Authenticate } from './bound-connections.ts';
import { BeyondShare, fairShare } from './fair-share.ts';
import { flattenHeaders, sourceOf, traceOf } from './request.ts';
import type { JudgeToken } from './judge-token.ts';
import { SMALL_BODY, refuse } from './refuse.ts';

export type WebhookDeps = StoreDeps &
  TranslateRules & {
    now: Now;
    judgeToken: JudgeToken;
    /** Resolves when the webhook is committed; `deadline` is in milliseconds since the epoch. */
    accept: (webhook: TranslatedWebhook, deadline: number) => Promise<Accepted>;
    watch: Pick<DatabaseWatch, 'check'>;
    /** Stores webhooks that Postgres does not commit in time. Undefined if there is no spill. */
    spill: SpillWebhook | undefined;
    /** Stores webhooks that were refused because their token is old. Undefined if they are not stored. */
    storeRefused: StoreRefused | undefined;
    observe: Observe;
    budget: BodyBudget;
    limits: AnswerLimits;
    authenticate: Authenticate;
  };

/**
 * `answerMs`: time limit for the answer to a webhook. `commitMs`: the part of it for Postgres, if there is a spill.
 * `perSecond`: webhooks per second that one location may always send, even under overload.
 */
export type AnswerLimits = { answerMs: number; commitMs: number; perSecond: number };
/**
 * A sender gets an answer within 1.5 s. A kitchen sends less than one webhook a second, and a process handles thousands:
 * a share of 100 leaves room for a POS that sends everything again, and a flood at its share harms nobody.
 */
export const ANSWER_LIMITS: AnswerLimits = { answerMs: 1_400, commitMs: 800, perSecond: 100 };
type Answer =
  | { outcome: WebhookOutcome; webhookId: string | null; [asTheVendorWants: string]: string | null }
  | { outcome: 'accepted'; deliveryId: string };
/** A ListedToken (found in the list while Postgres does not respond) has no settings. Its webhook goes to the spill. */
type Scope = TokenScope | ListedToken;
/** Returns the fields that all reports about a request share, with the milliseconds since it arrived. */
type RequestFields = () => Pick<WebhookObserved, 'requestId' | 'trace' | 'milliseconds' | 'integration' | 'locationId'>;
type Reservation = ReturnType<BodyBudget['open']>;

declare module 'fastify' {
  interface FastifyRequest {
    /** Set when the token of a webhook was verified. */
    authenticated: { scope: Scope; token: string; spentMs: number } | undefined;
  }
}

/**
 * The endpoint for webhooks. It checks the token and reads the body. The provider verifies and translates the webhook.
 * One transaction commits its effects.
 *
 * - `200` the change is durable: `{"outcome", "webhookId"}`, with outcome applied, parked, duplicate, stale, unmatched,
 *   ignored or dropped; `webhookId` is null if the webhook was dropped and not stored. The answer to a POS availability
 *   update also has the fields that the vendor requires
 * - `200` `{"outcome": "accepted", "deliveryId"}`: Postgres did not commit in time; the webhook is durable in the spill
 * - `401` the token is not valid for this path. The answer is the same for every reason, and comes before the body is
 *   read. If the token was once issued for exactly this path, the body is stored after the answer
 * - `500` the webhook is not durable, or the token could not be checked. The same request may succeed later
 *
 * No other status is used, because each vendor interprets other statuses in its own way.
 */
export async function webhookRoutes(scope: FastifyInstance, deps: WebhookDeps): Promise<void> {
  const endpoint: Endpoint = {
    ...deps,
    share: fairShare(deps.limits.perSecond, (locationId) =>
      scope.log.warn({ locationId }, 'location floods: its webhooks are limited so that others do not wait'),
    ),
    get databaseMs() {
      return deps.spill === undefined ? deps.limits.answerMs : deps.limits.commitMs;
    },
  };
  scope.addHook('onClose', async () => endpoint.share.stop());
  takeRawBodies(scope);
  scope.decorateRequest('authenticated');
  // Fastify makes a logger for each request. That costs more than most of a request's other work, and we need none.
  scope.setChildLoggerFactory((log) => log);
  scope.setErrorHandler((error, request, reply) => askForRetry(endpoint, error, request, reply));
  const onRequest = authenticator(endpoint);
  scope.post(`${WEBHOOK_PATH}/:integration/:locationId`, { onRequest }, async (request, reply) => {
    const answer = await receive(endpoint, request, reply);
    if (!request.raw.complete) reply.header('connection', 'close');
    return answer;
  });
  // All other paths below /webhook get the answer to a wrong token.
  const refuseAll = (request: FastifyRequest, reply: FastifyReply): Promise<void> =>
    rejectToken(endpoint, request, reply);
  for (const path of [WEBHOOK_PATH, `${WEBHOOK_PATH}/*`]) scope.post(path, { onRequest: refuseAll }, () => undefined);
}

type Endpoint = WebhookDeps & {
  share: ReturnType<typeof fairShare>;
  /** Milliseconds in which Postgres must check the token and commit. */
  readonly databaseMs: number;
};

async function askForRetry(
  endpoint: Endpoint,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  reply.code(500).header('retry-after', '1');
  const { locationId } = request.authenticated?.scope ?? {};
  const floods = error instanceof BeyondShare;
  endpoint.observe({
    ...refusedBy(request, reply, 'not_committed'),
    locationId,
    error: floods ? undefined : error,
  });
  // If a flooding location sent a small body, the connection stays open: a new one costs more than the webhook.
  const isSmall = Number(request.headers['content-length'] ?? Infinity) <= SMALL_BODY;
  if (!(floods && isSmall)) reply.header('connection', 'close');
  return reply.send({ error: 'send it again later' });
}

function rejectToken(endpoint: Endpoint, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  endpoint.observe(refusedBy(request, reply, 'unauthorized'));
  endpoint.observe({
    what: 'failed authentication',
    endpoint: 'webhook',
    outcome: 'refused',
    source: sourceOf(request),
  });
  return refuse(request, reply, endpoint.bodyLimit);
}

/** Refuses a token that was once issued for exactly this path, and stores the body after the answer. */
async function rejectOldToken(
  endpoint: Endpoint,
  request: FastifyRequest,
  reply: FastifyReply,
  { token, old }: { token: string; old: OldToken },
): Promise<void> {
  const { storeRefused } = endpoint;
  const { integration, locationId, tokenId, state } = old;
  // This id belongs to no location, so webhooks with old tokens take no memory from the location's valid webhooks.
  const reservation = endpoint.budget.open(`\0${locationId}`);
  const { rawHeaders, url: target = '' } = request.raw;
  const about = { requestId: request.id, trace: traceOf(request.headers) };
  let webhookId: string | null = null;
  let error: unknown;
  try {
    // The refusal reads and discards the same bytes, so storing them costs no further reading and no time.
    const reading = storeRefused && readBody(request.raw, endpoint.bodyLimit, { onBytes: reservation.take });
    const read = reading?.catch((cause: unknown) => void (error = cause));
    await rejectToken(endpoint, request, reply);
    const body = await read;
    if (storeRefused !== undefined && body !== undefined) {
      const headers = flattenHeaders(rawHeaders);
      const receivedAt = endpoint.now();
      const arrived = { id: uuidV7(), locationId, integration, receivedAt, target, token, headers, ...body };
      webhookId = await storeRefused(arrived, old);
    }
  } catch (cause) {
    error = cause;
  } finally {
    reservation.release();
  }
  const seen = { ...about, milliseconds: reply.elapsedTime, integration, locationId };
  endpoint.observe({ what: 'old token', ...seen, tokenId, webhookId, state, error });
}

function authenticator(
  endpoint: Endpoint,
): (request: FastifyRequest, reply: FastifyReply, done: () => void) => Promise<void> | undefined {
  const admit = (
    request: FastifyRequest,
    reply: FastifyReply,
    about: { scope: Scope | OldToken | undefined; token: string; began: number },
  ): Promise<void> | undefined => {
    const { integration, locationId } = request.params as { integration: string; locationId: string };
    const { scope, token, began } = about;
    // guard: own-location
    if (scope?.integration !== integration || scope.locationId !== locationId)
      return rejectToken(endpoint, request, reply);
    if (isOld(scope)) return rejectOldToken(endpoint, request, reply, { token, old: scope });
    endpoint.authenticate(reply.raw, scope.tokenId);
    request.authenticated = { scope, token, spentMs: performance.now() - began };
    return undefined;
  };

  return (request, reply, done) => {
    const { token } = request.query as { token?: unknown };
    const began = performance.now();
    // A query with two tokens gives an array, which is not valid.
    if (typeof token !== 'string') return rejectToken(endpoint, request, reply);
    const judged = endpoint.judgeToken(token, endpoint.databaseMs, () => sourceOf(request));
    if (judged instanceof Promise) return judged.then((scope) => admit(request, reply, { scope, token, began }));
    // A cached token is judged without a promise.
    const refused = admit(request, reply, { scope: judged, token, began });
    if (refused === undefined) done();
    return refused;
  };
}

async function receive(endpoint: Endpoint, request: FastifyRequest, reply: FastifyReply): Promise<Answer> {
  if (request.authenticated === undefined) throw new Error('a webhook was not authenticated');
  const { scope, token, spentMs } = request.authenticated;
  const { locationId, integration, tokenId } = scope;
  endpoint.share.admit(locationId);
  const reservation = endpoint.budget.open(locationId);
  const onBytes = (bytes: number): void => {
    reservation.take(bytes);
    endpoint.share.spend(locationId, bytes);
  };
  try {
    const read = await readBody(request.raw, endpoint.bodyLimit, { onBytes });
    const began = Date.now() - spentMs;
    const id = uuidV7();
    const { rawHeaders, url: target = '' } = request.raw;
    const headers = flattenHeaders(rawHeaders);
    // guard: postgres-clock
    const arrived = { id, locationId, integration, receivedAt: endpoint.now(), target, token, headers, ...read };
    const about = { requestId: request.id, trace: traceOf(request.headers) };
    const requestFields: RequestFields = () => ({ ...about, milliseconds: reply.elapsedTime, integration, locationId });
    const put = endpoint.spill;
    let failure: unknown;
    if (isOpen(scope)) {
      try {
        return await commit(endpoint, requestFields, arrived, { scope, deadline: began + endpoint.databaseMs });
      } catch (error) {
        // If Postgres refuses the data itself, the spill does not help: Postgres would refuse the same data again.
        if (put === undefined || isDataError((error as Error).cause)) throw error;
        void endpoint.watch.check();
        failure = error;
      }
    }
    if (put === undefined) throw new Error('a token was found in the list of valid tokens, but there is no spill');
    const spilled = { ...arrived, ...about, tokenId };
    return await spill({ put, observe: endpoint.observe }, requestFields, spilled, {
      reservation,
      deadline: began + endpoint.limits.answerMs,
      failure,
    });
  } finally {
    reservation.release();
  }
}

async function commit(
  endpoint: Endpoint,
  requestFields: RequestFields,
  arrived: ArrivedWebhook,
  { scope, deadline }: { scope: TokenScope; deadline: number },
): Promise<Answer> {
  const translated = translateArrived(arrived, scope, endpoint);
  const webhook = await storeArrived(arrived, scope.provider, translated, deadline, endpoint);
  const { id: webhookId, dropped } = webhook;
  if (dropped?.unproven === true) endpoint.share.distrust(scope.locationId);
  const { outcome, serviceOrderIds } = webhook.id === null ? NOT_STORED : await endpoint.accept(webhook, deadline);
  const { tokenId } = scope;
  endpoint.observe({ what: 'webhook', ...requestFields(), outcome, tokenId, webhookId, serviceOrderIds, dropped });
  return { ...(outcome === 'applied' && translated.kitchen?.answer), outcome, webhookId };
}

async function spill(
  { put, observe }: { put: SpillWebhook; observe: Observe },
  requestFields: RequestFields,
  spilled: SpilledWebhook,
  about: { reservation: Reservation; deadline: number; failure: unknown },
): Promise<Answer> {
  const { reservation, deadline, failure } = about;
  const report = (outcome: 'spilled' | 'refused'): void =>
    observe({ what: 'spill', ...requestFields(), outcome, webhookId: spilled.id, error: failure });
  try {
    await put(spilled, { take: reservation.take, deadline });
  } catch (error) {
    report('refused');
    throw error;
  }
  report('spilled');
  return { outcome: 'accepted', deliveryId: spilled.id };
}

function isOpen(scope: Scope): scope is TokenScope {
  return 'provider' in scope;
}

function refusedBy(request: FastifyRequest, reply: FastifyReply, outcome: WebhookRefused['outcome']): WebhookRefused {
  const { integration, locationId } = request.params as { integration?: string; locationId?: string };
  const requestFields = { requestId: request.id, trace: traceOf(request.headers), milliseconds: reply.elapsedTime };
  return { what: 'webhook refused', outcome, ...requestFields, integration, claimedLocationId: locationId };
}
