import { randomUUID } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { audited, recordAction } from '../../core/operators/audit.ts';
import { endSession, SESSION_S } from '../../core/operators/operator-sessions.ts';
import { seal, unseal } from '../../core/locations/settings-key.ts';
import { SESSION_TOKEN } from '../operator/identify.ts';
import { withinBound } from '../operator/guard-routes.ts';
import { actionFrom, bearerOf, sourceOf } from '../request.ts';
import { oidcClient, readPerson, type OidcSettings } from './oidc-client.ts';
import { MOST_REFUSALS, openSessionOf, type SignInDeps } from './oidc-routes.ts';

/** A sign-in in progress. Only the command has it, sealed, so that any process can finish it. */
const Flow = z.object({ deviceCode: z.string(), endsAt: z.number(), opens: z.uuid() });
const PLACE = 'login/device';

/** At most this many sign-ins of one source begin per minute, because each is a request to the issuer. */
const MOST_BEGUN = 20;
/** A sign-in must be finished within this many seconds, even if the issuer allows more. */
const FLOW_MAX_S = 900;

/**
 * The routes by which a command signs a person in at the issuer of OIDC_ISSUER: the device authorization grant,
 * https://www.rfc-editor.org/rfc/rfc8628. The service talks to the issuer, so the command needs no client of its own.
 *
 * - `POST /login/device`: `200` `{handle, userCode, verificationUri, verificationUriComplete, intervalS, expiresInS}`;
 *   `404` nobody can sign in by OIDC here, or the issuer does not offer this grant
 * - `POST /login/token` `{handle}`: `200` `{state: 'pending', intervalS}` or `{state: 'done', token, expiresInS}`, a token
 *   for the operator API; `403` the person may not sign in, or refused; `400` the handle is not valid, or no longer
 * - `DELETE /login`, with such a token as Bearer: `204` the session has ended
 */
export function deviceRoutes(scope: FastifyInstance, deps: SignInDeps & { settings: OidcSettings | undefined }): void {
  const { pool, now, identify, judge, keys, settings } = deps;
  const client = settings && oidcClient(settings);
  const mayBegin = withinBound(MOST_BEGUN, 60_000);
  const isWritten = withinBound(MOST_REFUSALS, 60 * 60_000);
  const api = scope.withTypeProvider<ZodTypeProvider>();
  const notOffered = (): Error =>
    scope.httpErrors.notFound(
      'People cannot sign in here by a device code. Use a named token: expediter login --token',
    );

  api.post('/login/device', async (request) => {
    if (client === undefined) throw notOffered();
    if (!mayBegin(sourceOf(request))) {
      throw scope.httpErrors.tooManyRequests('Too many sign-ins began at your address. Try again in a minute.');
    }
    const begun = await client.beginDevice().catch(() => {
      throw scope.httpErrors.serviceUnavailable('The issuer where people sign in cannot be reached. Try again.');
    });
    if (begun === undefined) throw notOffered();
    const { deviceCode, expiresInS, ...shown } = begun;
    const lastsS = Math.min(expiresInS, FLOW_MAX_S);
    const flow = { deviceCode, endsAt: now().getTime() + lastsS * 1_000, opens: randomUUID() };
    return { handle: await seal(keys, flow, PLACE), expiresInS: lastsS, ...shown };
  });

  const Finish = z.strictObject({ handle: z.string().max(10_000) });
  api.post('/login/token', { schema: { body: Finish } }, async (request) => {
    const flow = await judge(request, 'oidc', [request.body.handle], async () => {
      const opened = await unseal(keys, request.body.handle, PLACE).catch(() => undefined);
      return Flow.safeParse(opened).data;
    });
    if (client === undefined || settings === undefined || flow === undefined || flow.endsAt <= now().getTime()) {
      throw scope.httpErrors.badRequest('The sign-in has expired. Run expediter login again.');
    }
    const claims = await client.finishDevice(flow.deviceCode).catch(() => {
      throw scope.httpErrors.serviceUnavailable('The issuer where people sign in cannot be reached. Try again.');
    });
    if (claims === 'refused') throw scope.httpErrors.forbidden('The sign-in was refused, or has expired. Try again.');
    if (claims === 'pending' || claims === 'slow_down')
      return { state: 'pending', intervalS: claims === 'pending' ? 5 : 10 };
    const opened = await openSessionOf(request, { claims, opens: flow.opens, replaces: [] }, { ...deps, settings });
    if ('problem' in opened) {
      const person = readPerson(claims, settings);
      if (isWritten(person.id)) {
        const action = { action: 'sign in', ...actionFrom(request) };
        await recordAction(pool, person, action, { outcome: 'refused', after: opened.problem });
      }
      const says = {
        not_allowed: 'You are not one of the people who may sign in here. Ask an administrator.',
        no_role: 'You have no role here yet. Ask an administrator for one.',
        used: 'This sign-in was used already. Run expediter login again.',
      };
      throw scope.httpErrors.forbidden(says[opened.problem]);
    }
    return { state: 'done', token: `${SESSION_TOKEN}${opened.cookie}`, expiresInS: SESSION_S };
  });

  scope.delete('/login', async (request, reply) => {
    const operator = await judgeBearer(request);
    const { sessionId } = operator?.session ?? {};
    if (operator !== undefined && sessionId !== undefined) {
      await audited(pool, operator, { action: 'sign out', ...actionFrom(request) }, () => endSession(pool, sessionId));
      identify.invalidateCache();
    }
    return reply.code(204).send();
  });

  async function judgeBearer(request: FastifyRequest) {
    const token = bearerOf(request.headers);
    return judge(request, 'bearer', token === undefined ? [] : [token], () => identify.byToken(token));
  }
}
