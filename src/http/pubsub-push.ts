import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { SignalObserved, Observe } from '../core/domain/observed.ts';
import type { Recognise } from './bound-connections.ts';
import { BadPushToken } from './push-token.ts';
import type { VerifyPushToken } from './push-token.ts';
import { takeRawBodies } from './raw-bodies.ts';
import { readBody } from './read-body.ts';
import { traceOf } from './request-ids.ts';
import { sourceOf } from './source-of.ts';
import { signalOrderId } from './signal-order-id.ts';

export const PUSH_PATH = '/pubsub/push';
/** Bytes of the largest push. Pub/Sub sends at most 10 MB of message, a third more as base64. */
const PUSH_BODY_LIMIT = 16 * 2 ** 20;

export type PushDeps = {
  /** Undefined while `PUSH_AUTH` is `off`. */
  verifyPushToken: VerifyPushToken | undefined;
  /** Resolves once the signal is committed. */
  recordSignal: (serviceOrderId: string) => Promise<'recorded' | 'known'>;
  observe: Observe;
  recognise: Recognise;
};

/**
 * The forward endpoint, which only makes a signal durable.
 *
 * - `204` recorded, known already, or poison: no redelivery would mend it, so it is logged and acknowledged
 * - `401` bad OIDC token, answered before the body is read; the connection is closed
 * - `503` not recorded, or the token could not be verified; Pub/Sub sends it again
 *
 * A plugin with a scope of its own, where Content-Type decides nothing.
 */
export async function pubsubPush(scope: FastifyInstance, deps: PushDeps): Promise<void> {
  const report = (
    request: FastifyRequest,
    reply: FastifyReply,
    about: Pick<SignalObserved, 'outcome' | 'serviceOrderId' | 'messageId' | 'subscription' | 'why' | 'error'>,
  ): void => {
    const base = { requestId: request.id, trace: traceOf(request.headers), milliseconds: reply.elapsedTime };
    deps.observe({ what: 'signal', ...base, ...about });
  };

  takeRawBodies(scope);
  scope.addHook('onRequest', async (request, reply) => {
    await deps.verifyPushToken?.(request.headers.authorization);
    deps.recognise(reply.raw, 'push');
  });

  scope.setErrorHandler(async (error, request, reply) => {
    if (error instanceof BadPushToken) {
      report(request, reply, { outcome: 'unauthorized', why: error.message });
      deps.observe({ what: 'guess', door: 'push', outcome: 'refused', source: sourceOf(request) });
      return reply.code(401).header('connection', 'close').send();
    }
    report(request, reply, { outcome: 'not_recorded', error });
    return reply.code(503).header('retry-after', '1').send();
  });

  scope.post(PUSH_PATH, async (request, reply) => {
    const { body, truncated } = await readBody(request.raw, PUSH_BODY_LIMIT);
    if (truncated) {
      report(request, reply, { outcome: 'poison', why: `over ${PUSH_BODY_LIMIT} bytes` });
      return reply.code(204).header('connection', 'close').send();
    }
    const signal = signalOrderId(body, request.headers);
    if ('poison' in signal) {
      report(request, reply, { outcome: 'poison', messageId: signal.messageId, why: signal.poison });
    } else {
      const { orderId: serviceOrderId, messageId, subscription } = signal;
      const outcome = await deps.recordSignal(serviceOrderId);
      report(request, reply, { outcome, serviceOrderId, messageId, subscription });
    }
    return reply.code(204).send();
  });
}
