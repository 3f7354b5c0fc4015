import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { toMemberMessage, toMemberSnapshot } from '../../core/domain/member-message.ts';
import type { Observe } from '../../core/domain/observed.ts';
import type { OrderFeed } from '../../core/live/order-feed.ts';
import type { ReadLive } from '../../core/live/read-live.ts';
import type { Now } from '../../core/postgres/database-clock.ts';
import { bearerOf, sourceOf } from '../request.ts';
import type { Authenticate } from '../bound-connections.ts';
import { formatEvent } from '../format-event.ts';
import { CannotVerify } from '../../identity/issuer-keys.ts';
import { BadFollowToken, NO_TOKEN, type VerifyFollowToken } from '../../identity/follow-token.ts';
import type { MemberStream, MemberStreams } from './member-streams.ts';

export type FollowDeps = {
  verify: VerifyFollowToken;
  follow: OrderFeed['follow'];
  streams: Pick<MemberStreams, 'admit'>;
  /** Origins of pages that may read a stream: MEMBER_ORIGINS. */
  origins: readonly string[];
  now: Now;
  observe: Observe;
  authenticate: Authenticate;
};

export const FOLLOW_PATH = '/follow';
const PREFLIGHT = {
  'access-control-allow-methods': 'GET',
  // A page whose requests are traced adds headers of its tracer. Older browsers know no wildcard.
  'access-control-allow-headers': 'authorization, last-event-id, traceparent, tracestate, baggage, *',
  'access-control-max-age': '7200',
};

/**
 * The endpoint where a member follows one order by server-sent events, with a token that the platform signed.
 *
 * - `200` the stream: `snapshot`, `orderStatusChanged`, then `end` or `expired`
 * - `204` the order has ended, and the last event id is its last message. An EventSource does not reconnect after a 204
 * - `401` the token is not valid; the same answer for every reason
 * - `503` too many streams, or the platform's keys cannot be fetched (`Retry-After`)
 */
export async function followRoutes(scope: FastifyInstance, deps: FollowDeps): Promise<void> {
  scope.addHook('onRequest', async (request, reply) => {
    reply.headers({
      ...corsFor(request, deps.origins),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
  });

  scope.setErrorHandler(async (error, request, reply) => {
    const { message } = error as Error;
    if (error instanceof BadFollowToken) {
      const reason = message === NO_TOKEN ? 'no_token' : 'bad_token';
      deps.observe({ what: 'follow', action: 'refuse', reason, detail: message });
      deps.observe({
        what: 'failed authentication',
        endpoint: 'follow',
        outcome: 'refused',
        source: sourceOf(request),
      });
      return reply.code(401).header('www-authenticate', 'Bearer realm="expediter"').send({ error: 'unauthorized' });
    }
    // The reason is `error` if, for example, the database clock has no time yet.
    const reason = error instanceof CannotVerify ? 'no_keys' : 'error';
    deps.observe({ what: 'follow', action: 'refuse', reason, detail: message });
    return tryLater(reply);
  });

  scope.options(FOLLOW_PATH, async (_request, reply) => reply.code(204).headers(PREFLIGHT).send());

  scope.get(FOLLOW_PATH, { exposeHeadRoute: false }, async (request, reply) => {
    const { serviceOrderId, expiresAt } = await deps.verify(tokenOf(request));
    // No stream can be opened: the reader has disconnected, or did not wait for the end of its previous response.
    if (reply.raw.destroyed || reply.raw.socket === null) {
      request.raw.socket.destroy();
      return reply.hijack();
    }
    let unfollow = (): void => {};
    const stream = deps.streams.admit(reply.raw, {
      serviceOrderId,
      headers: reply.getHeaders() as OutgoingHttpHeaders,
      livesMs: expiresAt.getTime() - deps.now().getTime(),
      onClose: () => unfollow(),
    });
    if (typeof stream === 'string') {
      deps.observe({ what: 'follow', action: 'refuse', reason: stream, detail: 'too many streams are open' });
      return tryLater(reply);
    }
    deps.authenticate(reply.raw, serviceOrderId);
    reply.hijack();
    const last = lastOf(request);
    // guard: messages-of-meanwhile
    unfollow = deps.follow(serviceOrderId, last, writeNews(stream, last, deps));
    return reply;
  });
}

/** Makes a function that writes an order's messages into a stream, each message once. */
function writeNews(
  stream: MemberStream,
  last: number | undefined,
  { now, observe }: Pick<FollowDeps, 'now' | 'observe'>,
): (news: ReadLive | undefined) => void {
  let sent = last;
  let isFirst = true;

  return (news) => {
    const wasFirst = isFirst;
    isFirst = false;
    const { messages = [], ended = false } = news ?? {};
    const snapshot = toMemberSnapshot(news?.state);
    const hasAll = messages.length === 0 && snapshot.sequence <= (sent ?? -1);
    if (wasFirst && ended && hasAll && !stream.isOpen()) {
      stream.endUnopened();
      return;
    }
    let events = '';
    for (const message of messages) {
      sent = message.sequence;
      const data = toMemberMessage(message, news?.state.requestedAt ?? null);
      events += formatEvent({ event: 'orderStatusChanged', data, id: sent });
      const milliseconds = now().getTime() - Date.parse(message.appliedAt);
      if (!wasFirst) observe({ what: 'follow', action: 'deliver', milliseconds });
    }
    // A snapshot is sent if the stream starts at the beginning, or if earlier messages are no longer stored.
    if (sent === undefined || snapshot.sequence > sent) {
      sent = snapshot.sequence;
      events += formatEvent({ event: 'snapshot', data: snapshot, id: sent });
    }
    if (ended) stream.end('ended', events + formatEvent({ event: 'end', data: { sequence: sent } }));
    else stream.write(events);
  };
}

/** @returns undefined if there is no token, or more than one */
function tokenOf({ headers, query }: FastifyRequest): string | undefined {
  const token = bearerOf(headers) ?? (query as { token?: unknown }).token;
  return typeof token === 'string' && token !== '' ? token : undefined;
}

/**
 * @returns the `Last-Event-ID`, which Yaffle's EventSource sends as a parameter; undefined if it is not one of our ids:
 *   then the stream starts from the beginning
 */
function lastOf({ headers, query }: FastifyRequest): number | undefined {
  const last = headers['last-event-id'] ?? (query as { lastEventId?: unknown }).lastEventId;
  return typeof last === 'string' && /^\d{1,9}$/.test(last) ? Number(last) : undefined;
}

function corsFor({ headers: { origin = '' } }: FastifyRequest, origins: readonly string[]): OutgoingHttpHeaders {
  if (!origins.includes(origin)) return { vary: 'origin' };
  return { vary: 'origin', 'access-control-allow-origin': origin, 'access-control-expose-headers': 'retry-after' };
}

/** The delay is random, so that clients refused together do not reconnect together. */
function tryLater(reply: FastifyReply): FastifyReply {
  return reply
    .code(503)
    .header('retry-after', `${5 + Math.floor(Math.random() * 10)}`)
    .send({ error: 'cannot be followed now' });
}
