import { isRecord } from '../core/domain/json-text.ts';
import { PUSH_PATH } from '../core/domain/paths.ts';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Now } from '../core/postgres/database-clock.ts';
import { issuerKeys, verifyClaims } from '../identity/issuer-keys.ts';
import type { Observe, SignalObserved } from '../core/domain/observed.ts';
import { dataOf, idIn, idOf, lacking, parseJson } from '../core/signals/find-order-id.ts';
import type { Authenticate } from './bound-connections.ts';
import { readBody, takeRawBodies } from './read-body.ts';
import { sourceOf, traceOf } from './request.ts';

/** The token is missing, forged, expired or for another audience. */
class BadPushToken extends Error {
  override readonly name = 'BadPushToken';
}

type PushTokenSettings = {
  jwksUrl: string;
  issuer: string;
  /** The exact audience in the subscription's push configuration. */
  audience: string;
  /** The e-mail address of the subscription's service account. */
  serviceAccount: string;
};

/** Verifies a request's `Authorization`. Throws unless Google issued the token, for this endpoint. */
export type VerifyPushToken = (authorization: string | undefined) => Promise<void>;

const GOOGLE = 'https://accounts.google.com';

/** Cloud Run removes it after its own check: https://cloud.google.com/run/docs/troubleshooting */
const SIGNATURE_REMOVED =
  'Cloud Run has removed the signature, because it checks callers itself. Let it pass all callers to the service ' +
  '(--no-invoker-iam-check), which checks the token';

/**
 * Makes a verifier of a push's OIDC token (https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions). It
 * checks the RS256 signature, issuer, audience, service account, verified e-mail and expiry. It throws BadPushToken or
 * CannotVerify. Neither error contains any part of the token.
 */
export function createPushTokenVerifier(settings: PushTokenSettings, now: Now): VerifyPushToken {
  const keys = issuerKeys(settings.jwksUrl);
  // Google has issued tokens under both names: https://developers.google.com/identity/openid-connect/openid-connect#an-id-tokens-payload
  const issuer = settings.issuer === GOOGLE ? [GOOGLE, 'accounts.google.com'] : settings.issuer;

  return async (authorization) => {
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) throw new BadPushToken('no bearer token');
    if (token.endsWith('.SIGNATURE_REMOVED_BY_GOOGLE')) throw new BadPushToken(SIGNATURE_REMOVED);
    const options = { algorithms: ['RS256'], issuer, requiredClaims: ['exp'], currentDate: now() };
    const claims = await verifyClaims(token, keys, options, (why) => new BadPushToken(why));
    // jose accepts a token with several audiences if one is ours. We refuse it, because others accept it too.
    if (claims.aud !== settings.audience) throw new BadPushToken('aud is not this endpoint');
    if (claims['email'] !== settings.serviceAccount) throw new BadPushToken('email is not the service account');
    if (claims['email_verified'] !== true) throw new BadPushToken('email_verified is not true');
  };
}

/** The order id of a push. `poison` says why the push has no order id, without quoting the payload. */
type Signal =
  | { orderId: string; messageId: string | undefined; subscription: string | undefined }
  | { poison: string; messageId: string | undefined };

/**
 * Finds the order id of an `orderPlaced` push: `attributes.orderId`, or else the id in the data (see `idIn`). Nothing else
 * in the payload is trusted, so nothing else is read.
 *
 * Pub/Sub pushes in two forms (https://cloud.google.com/pubsub/docs/payload-unwrapping). Wrapped: `{"message": {"data":
 * base64, "messageId", "attributes"}, "subscription"}`. Unwrapped: the body is the data. The attributes and
 * `x-goog-pubsub-message-id` are then headers, if the subscription writes metadata. Without metadata, the data of a
 * platform may look like a wrapped push, so a push that has no id in one form is read in the other.
 */
export function signalOrderId(body: Buffer, headers: IncomingHttpHeaders): Signal {
  const metadataId = headers['x-goog-pubsub-message-id'];
  const parsed = parseJson(body);
  const fields = isRecord(parsed) ? parsed : {};
  const message = metadataId === undefined ? fields['message'] : undefined;
  if (isRecord(message)) {
    const messageId = shortened(message['messageId']);
    const attributes = isRecord(message['attributes']) ? message['attributes'] : {};
    const data = typeof message['data'] === 'string' ? Buffer.from(message['data'], 'base64') : Buffer.alloc(0);
    const read = parseJson(data);
    // guard: other-form
    const orderId = idOf(attributes['orderId']) ?? idIn(read) ?? idIn(parsed);
    if (orderId !== undefined) return { orderId, messageId, subscription: nameOf(fields['subscription']) };
    return { poison: `no order id in message.attributes; ${lacking('message.data', data, read)}`, messageId };
  }
  const messageId = shortened(metadataId);
  const orderId = idOf(headers['orderid']) ?? idIn(parsed) ?? idIn(dataOf(fields['message']));
  if (orderId !== undefined) {
    return { orderId, messageId, subscription: nameOf(headers['x-goog-pubsub-subscription-name']) };
  }
  return { poison: `no order id in the headers; ${lacking('the body', body, parsed)}`, messageId };
}

/** Returns the last part of `projects/…/subscriptions/…`. Pub/Sub allows at most 255 characters. */
function nameOf(subscription: unknown): string | undefined {
  return typeof subscription === 'string' ? subscription.split('/').at(-1)?.slice(0, 255) : undefined;
}

/** Shortens a message id for the log. Pub/Sub's ids have some 16 digits. */
function shortened(messageId: unknown): string | undefined {
  return typeof messageId === 'string' ? messageId.slice(0, 64) : undefined;
}

/** Bytes of the largest push. A Pub/Sub message has at most 10 MB, and base64 adds a third. */
const PUSH_BODY_LIMIT = 16 * 2 ** 20;

export type PushDeps = {
  /** Undefined while `PUSH_AUTH` is `off`. */
  verifyPushToken: VerifyPushToken | undefined;
  /** Resolves when the signal is committed. */
  recordSignal: (serviceOrderId: string) => Promise<'recorded' | 'known'>;
  observe: Observe;
  authenticate: Authenticate;
};

/**
 * The endpoint for Pub/Sub pushes. It commits the signal and does nothing else. It ignores Content-Type.
 *
 * - `204` the signal was recorded or is known already. A push without an order id (poison) is also acknowledged, and
 *   logged, because the same push would fail again
 * - `401` bad OIDC token, answered before the body is read; the connection is closed
 * - `503` not recorded, or the token could not be verified; Pub/Sub sends the push again
 */
export async function pubsubPush(scope: FastifyInstance, deps: PushDeps): Promise<void> {
  const report = (
    request: FastifyRequest,
    reply: FastifyReply,
    about: Pick<SignalObserved, 'outcome' | 'serviceOrderId' | 'messageId' | 'subscription' | 'detail' | 'error'>,
  ): void => {
    const base = {
      from: 'push',
      requestId: request.id,
      trace: traceOf(request.headers),
      milliseconds: reply.elapsedTime,
    } as const;
    deps.observe({ what: 'signal', ...base, ...about });
  };

  takeRawBodies(scope);
  scope.addHook('onRequest', async (request, reply) => {
    await deps.verifyPushToken?.(request.headers.authorization);
    deps.authenticate(reply.raw, 'push');
  });

  scope.setErrorHandler(async (error, request, reply) => {
    if (error instanceof BadPushToken) {
      report(request, reply, { outcome: 'unauthorized', detail: error.message });
      deps.observe({ what: 'failed authentication', endpoint: 'push', outcome: 'refused', source: sourceOf(request) });
      return reply.code(401).header('connection', 'close').send();
    }
    report(request, reply, { outcome: 'not_recorded', error });
    return reply.code(503).header('retry-after', '1').send();
  });

  scope.post(PUSH_PATH, async (request, reply) => {
    const { body, truncated } = await readBody(request.raw, PUSH_BODY_LIMIT);
    if (truncated) {
      report(request, reply, { outcome: 'poison', detail: `over ${PUSH_BODY_LIMIT} bytes` });
      return reply.code(204).header('connection', 'close').send();
    }
    const signal = signalOrderId(body, request.headers);
    if ('poison' in signal) {
      report(request, reply, { outcome: 'poison', messageId: signal.messageId, detail: signal.poison });
    } else {
      const { orderId: serviceOrderId, messageId, subscription } = signal;
      const outcome = await deps.recordSignal(serviceOrderId);
      report(request, reply, { outcome, serviceOrderId, messageId, subscription });
    }
    return reply.code(204).send();
  });
}
