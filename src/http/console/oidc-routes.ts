import { randomBytes, randomUUID } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Pool } from 'pg';
import { z } from 'zod';
import type { SettingsKeys } from '../../core/locations/settings-key.ts';
import { audited, recordAction } from '../../core/operators/audit.ts';
import { hasGrant } from '../../core/operators/operator-grants.ts';
import { SESSION_S, startSession } from '../../core/operators/operator-sessions.ts';
import type { Now } from '../../core/postgres/database-clock.ts';
import type { Identify } from '../operator/identify.ts';
import { TooManyFailures, type JudgeSlowly } from '../throttle-failures.ts';
import { withinBound } from '../operator/guard-routes.ts';
import { actionFrom, addressOf } from '../request.ts';
import {
  consolePath,
  type Flow,
  FLOW_S,
  flowCookie,
  IssuerAway,
  oidcClient,
  type OidcPerson,
  type OidcSettings,
  openFlow,
  readPerson,
  sealFlow,
} from '../../identity/oidc-client.ts';
import { sessionCookie, sessionCookies } from './session-cookie.ts';

const Start = z.object({ to: z.string().optional(), again: z.literal('1').optional() });

/** The issuer's clock may differ from ours by this many milliseconds. */
const CLOCK_MS = 60_000;

/** The console explains this problem to the person after a refused sign-in. */
type Problem = 'not_allowed' | 'no_role' | 'expired' | 'failed';
/** The exact reason, for the audit and the log. */
type Refusal =
  | 'no_flow'
  | 'state'
  | 'slowed'
  | 'issuer_away'
  | 'not_valid'
  | 'other_person'
  | 'not_recent'
  | 'used'
  | Problem;

type Deps = {
  pool: Pool;
  now: Now;
  identify: Identify;
  judge: JudgeSlowly;
  keys: SettingsKeys;
  settings: OidcSettings;
};

/** At most this many refused sign-ins of one person are recorded in the audit per hour. */
const MOST_REFUSALS = 30;

/**
 * The routes of a sign-in by OIDC: the authorization code flow, with PKCE, state and nonce.
 *
 * - `start`: `GET /session/oidc?to=&again=1` `302` to the issuer, `503` if the issuer cannot be reached. `again`: a
 *   person who is signed in must prove their identity again
 * - `callback`: `GET /session/callback` `303` to the page `to`, or to `/console/?problem=`
 *
 * Only the callback accepts requests from another site. It refuses a request without the cookie that `start` set.
 */
export function oidcRoutes({ pool, now, identify, judge, keys, settings }: Deps): {
  start(scope: FastifyInstance): void;
  callback(scope: FastifyInstance): void;
} {
  const client = oidcClient(settings);
  const { name: flowName, attributes: flowAttributes } = flowCookie(settings.consoleUrl);
  const session = sessionCookie(!settings.consoleUrl.startsWith('https:'));
  const refuse = refuser(pool);
  const random = (): string => randomBytes(32).toString('base64url');

  return {
    start(scope) {
      const api = scope.withTypeProvider<ZodTypeProvider>();
      api.get('/session/oidc', { exposeHeadRoute: false, schema: { querystring: Start } }, async (request, reply) => {
        const { to, again } = request.query;
        const cookies = sessionCookies(request, URL.parse(settings.consoleUrl)?.origin);
        const current = await judge(request, 'session', cookies, () => identify.bySession(cookies));
        const flow: Flow = {
          state: random(),
          nonce: random(),
          verifier: random(),
          startedAt: now().getTime(),
          to: consolePath(to),
          opens: randomUUID(),
          replaces: current?.session?.sessionId,
          again: again !== undefined && current?.kind === 'person' ? current.id : undefined,
        };
        const url = await client.startUrl({ ...flow, again: flow.again !== undefined }).catch((error: unknown) => {
          request.log.warn({ code: codeOf(error) }, 'sign-in by OIDC failed: the issuer cannot be reached');
          throw scope.httpErrors.serviceUnavailable(
            'The issuer where people sign in cannot be reached. Try again, or sign in with a token.',
          );
        });
        return reply
          .setCookie(flowName, await sealFlow(keys, flow), { ...flowAttributes, maxAge: FLOW_S })
          .redirect(url.href, 302);
      });
    },

    callback(scope) {
      scope.get('/session/callback', { exposeHeadRoute: false }, async (request, reply) => {
        const search = /\?.*/s.exec(request.url)?.[0] ?? '';
        const flow = await openFlow(keys, request.cookies[flowName], now());
        // Any page may send a browser here. Without our cookie we contact no issuer and count no failed authentication.
        if (flow === undefined) return refuse(request, reply, 'expired', 'no_flow');
        if (new URLSearchParams(search).get('state') !== flow.state) return refuse(request, reply, 'expired', 'state');
        let wrong: [Refusal, code?: string] = ['not_valid'];
        // Throttles senders of invented codes, because each code costs a request to the issuer.
        const finished = await judge(request, 'oidc', [search], async () => {
          try {
            return { said: await client.finish(search, flow) };
          } catch (error) {
            const isAway = error instanceof IssuerAway;
            wrong = [isAway ? 'issuer_away' : 'not_valid', codeOf(error)];
            return isAway ? { said: undefined } : undefined;
          }
        }).catch((error: unknown) => {
          if (!(error instanceof TooManyFailures)) throw error;
          return 'slowed' as const;
        });
        // The code was not checked, so the browser keeps its sign-in cookie and may try again.
        if (finished === 'slowed') return refuse(request, reply, 'failed', 'slowed');
        reply.clearCookie(flowName, flowAttributes);
        const { said } = finished ?? {};
        if (said === undefined) {
          const [refusal, code] = wrong;
          return refuse(request, reply, 'failed', refusal, undefined, code);
        }
        const person = readPerson(said, settings);
        if (flow.again !== undefined) {
          if (person.id !== flow.again) return refuse(request, reply, 'failed', 'other_person', person);
          if (!isRecent(said[0]?.['auth_time'], flow)) return refuse(request, reply, 'failed', 'not_recent', person);
        }
        const { opens, replaces } = flow;
        const about = { claims: said, opens, replaces: replaces === undefined ? [] : [replaces] };
        const opened = await openSessionOf(request, about, { pool, identify, settings });
        if ('problem' in opened) {
          const { problem } = opened;
          return refuse(request, reply, problem === 'used' ? 'expired' : problem, problem, person);
        }
        return reply
          .setCookie(session.name, opened.cookie, { ...session.attributes, maxAge: SESSION_S })
          .redirect(flow.to, 303);
      });
    },
  };
}

/**
 * Opens a session for the person whom the issuer names.
 * @param about.opens the session's id: one sign-in opens one session
 * @param about.replaces the sessions that end
 * @returns the cookie; or why there is no session
 */
async function openSessionOf(
  request: FastifyRequest,
  about: {
    claims: Awaited<ReturnType<ReturnType<typeof oidcClient>['finish']>>;
    opens: string;
    replaces: readonly string[];
  },
  { pool, identify, settings }: Pick<Deps, 'pool' | 'identify' | 'settings'>,
): Promise<{ cookie: string } | { problem: 'not_allowed' | 'no_role' | 'used' }> {
  const { claims, opens, replaces } = about;
  const { isAllowed, unread: _unread, ...person } = readPerson(claims, settings);
  if (!isAllowed) return { problem: 'not_allowed' };
  if (!(await hasGrant(pool, person.email, person.groups))) return { problem: 'no_role' };
  const signedIn = {
    ...person,
    provedAt: timeOf(claims[0]?.['auth_time']) ?? LONG_AGO,
    sessionId: opens,
    source: addressOf(request),
    userAgent: request.headers['user-agent'],
  };
  try {
    const cookie = await audited(pool, person, { action: 'sign in', subject: opens, ...actionFrom(request) }, () =>
      startSession(pool, signedIn, replaces),
    );
    identify.invalidateCache();
    return { cookie };
  } catch (error) {
    if ((error as { code?: unknown }).code === UNIQUE_VIOLATION) return { problem: 'used' };
    throw error;
  }
}

/**
 * Makes the function that refuses sign-ins. If the issuer named the person, the refusal is recorded in the audit. There
 * is a limit per hour, because anyone may have an account at the issuer.
 */
function refuser(pool: Pool) {
  const isWritten = withinBound(MOST_REFUSALS, 60 * 60_000);
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    problem: Problem,
    refusal: Refusal,
    person?: OidcPerson,
    code?: string,
  ): Promise<FastifyReply> => {
    const claims = person?.unread;
    request.log.warn({ refusal, code, claims, source: addressOf(request) }, 'sign-in by OIDC refused');
    if (person !== undefined && isWritten(person.id)) {
      const action = { action: 'sign in', ...actionFrom(request) };
      await recordAction(pool, person, action, { outcome: 'refused', after: refusal });
    }
    return reply.redirect(`/console/?problem=${problem}`, 303);
  };
}

const UNIQUE_VIOLATION = '23505';

/** The assumed time of authentication if the issuer does not report it. */
const LONG_AGO = new Date(0);

/** Returns the time when the person authenticated at the issuer; undefined if the issuer does not report it. */
function timeOf(authTime: unknown): Date | undefined {
  return typeof authTime === 'number' && authTime >= 0 && authTime < 1e11 ? new Date(authTime * 1000) : undefined;
}

/** Whether the person authenticated at the issuer after this sign-in began. */
function isRecent(authTime: unknown, { startedAt }: Flow): boolean {
  return (timeOf(authTime) ?? LONG_AGO).getTime() >= startedAt - CLOCK_MS;
}

/** The code of a library error or of its cause. It is logged instead of the message, which may quote tokens. */
function codeOf(error: unknown): string {
  const { code, cause, name } = error as { code?: unknown; cause?: unknown; name?: unknown };
  if (typeof code === 'string') return code;
  return cause === undefined ? String(name) : codeOf(cause);
}
