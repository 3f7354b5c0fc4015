import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NotAuthentic } from '../core/domain/errors.ts';
import type { Observe, SignalObserved } from '../core/domain/observed.ts';
import { SIGNAL_PATH } from '../core/domain/paths.ts';
import type { Authenticate as AuthenticateToken } from '../core/locations/authenticate-tokens.ts';
import { findOrderId } from '../core/signals/find-order-id.ts';
import type { SignalOutcome } from '../core/signals/record-signals.ts';
import type { SignalToken } from '../core/signals/signal-tokens.ts';
import type { Authenticate } from './bound-connections.ts';
import { sendProblem } from './problem.ts';
import { type BodyBudget, readBody, takeRawBodies } from './read-body.ts';
import { refuse } from './refuse.ts';
import { bearerOf, flattenHeaders, sourceOf, traceOf } from './request.ts';
import type { VerifySignal } from './verify-signal.ts';

/** Bytes of the largest signal. An order of a shop has some 100 kB. */
const BODY_LIMIT = 2 ** 20;

export type SignalDeps = {
  authenticateToken: AuthenticateToken<SignalToken, never>;
  verify: VerifySignal;
  /** Resolves when the signal is committed. */
  recordSignal: (serviceOrderId: string) => Promise<SignalOutcome>;
  observe: Observe;
  /** Of the bodies of webhooks too. */
  budget: BodyBudget;
  authenticate: Authenticate;
};

type Found = ReturnType<typeof findOrderId>;

declare module 'fastify' {
  interface FastifyRequest {
    /** Set when the token of a signal was authenticated. */
    signalToken: SignalToken | undefined;
  }
}

/**
 * The endpoint for signals of a platform without Pub/Sub. It commits the signal and does nothing else. It ignores
 * Content-Type.
 *
 * - `204` the signal was recorded or is known already
 * - `400` a problem: the body names no order, or has more than 1 MiB. Nothing was recorded
 * - `401` the token or the signature is wrong. The answer is the same for every reason. It comes before the body is read,
 *   unless a signature was wrong. The connection is closed
 * - `500` not recorded, or the token or the signature could not be checked, or the bodies of this token take too much
 *   memory. The same request may succeed later
 */
export async function signalRoutes(scope: FastifyInstance, deps: SignalDeps): Promise<void> {
  type About = Pick<SignalObserved, 'outcome' | 'serviceOrderId' | 'detail' | 'error'>;
  const report = (request: FastifyRequest, reply: FastifyReply, about: About): void => {
    const base = { from: 'http', requestId: request.id, trace: traceOf(request.headers) } as const;
    const { tokenId } = request.signalToken ?? {};
    deps.observe({ what: 'signal', ...base, milliseconds: reply.elapsedTime, tokenId, ...about });
  };
  const unauthorized = (request: FastifyRequest, reply: FastifyReply, detail: string): Promise<void> => {
    report(request, reply, { outcome: 'unauthorized', detail });
    deps.observe({ what: 'failed authentication', endpoint: 'signal', outcome: 'refused', source: sourceOf(request) });
    reply.raw.shouldKeepAlive = false;
    return refuse(request, reply, BODY_LIMIT);
  };

  takeRawBodies(scope);
  scope.decorateRequest('signalToken');
  scope.addHook('onRequest', async (request, reply) => {
    const { token = bearerOf(request.headers) } = request.query as { token?: unknown };
    // A query with two tokens gives an array, which is not valid.
    const found = typeof token === 'string' ? await deps.authenticateToken(token, () => sourceOf(request)) : undefined;
    if (found === undefined) return unauthorized(request, reply, 'the token is missing or not valid');
    request.signalToken = found;
    return deps.authenticate(reply.raw, found.tokenId);
  });

  scope.setErrorHandler(async (error, request, reply) => {
    if (error instanceof NotAuthentic) return unauthorized(request, reply, error.message);
    report(request, reply, { outcome: 'not_recorded', error });
    if (!request.raw.complete) reply.header('connection', 'close');
    return reply.code(500).header('retry-after', '1').send({ error: 'send it again later' });
  });

  /** Reads and verifies a body. The body takes memory only until the order's id is known. */
  const read = async ({ raw }: FastifyRequest, reply: FastifyReply, token: SignalToken): Promise<Found> => {
    const reservation = deps.budget.open(token.tokenId);
    try {
      // guard: signal-in-budget
      const { body, truncated } = await readBody(raw, BODY_LIMIT, { onBytes: reservation.take });
      if (truncated) {
        reply.header('connection', 'close');
        return { lacks: `the body has more than ${BODY_LIMIT} bytes` };
      }
      // guard: signal-verified
      await deps.verify(token, { headers: flattenHeaders(raw.rawHeaders), body });
      return findOrderId(token.kind, body);
    } finally {
      reservation.release();
    }
  };

  scope.post(SIGNAL_PATH, async (request, reply) => {
    const token = request.signalToken;
    if (token === undefined) throw new Error('a signal was not authenticated');
    const found = await read(request, reply, token);
    if ('lacks' in found) {
      report(request, reply, { outcome: 'poison', detail: found.lacks });
      return sendProblem(reply, 400, `The signal names no order: ${found.lacks}.`);
    }
    const { orderId: serviceOrderId } = found;
    report(request, reply, { outcome: await deps.recordSignal(serviceOrderId), serviceOrderId });
    return reply.code(204).send();
  });
}
