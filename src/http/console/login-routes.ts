import { hash, randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { seal, unseal } from '../../core/locations/settings-key.ts';
import { audited } from '../../core/operators/audit.ts';
import { Actor } from '../../core/operators/operator.ts';
import { endSession, startSessionFrom } from '../../core/operators/operator-sessions.ts';
import { unauthorized } from '../operator/bearer-auth.ts';
import { SESSION_TOKEN } from '../operator/identify.ts';
import type { OperatorDeps } from '../operator/operator-deps.ts';
import { sendProblem } from '../problem.ts';
import { actionFrom, addressOf, bearerOf } from '../request.ts';
import type { OidcSettings } from '../../identity/oidc-client.ts';
import { sessionCookies } from './session-cookie.ts';

type Deps = Pick<OperatorDeps, 'pool' | 'now' | 'identify' | 'judge' | 'translating' | 'oidc'>;

/** What a command asks for. It listens on a port of 127.0.0.1. Only the command has the verifier of the challenge. */
const Asked = z.strictObject({
  port: z.coerce.number().int().min(1_024).max(65_535),
  challenge: z.string().regex(/^[\w-]{43}$/),
  state: z.string().regex(/^[\w-]{43}$/),
});
const Answered = Asked.extend({ allow: z.boolean() });
const Redeemed = z.strictObject({ code: z.string().max(10_000), verifier: z.string().max(128) });

/** What a person has allowed. It is sealed in the code, so that any process can redeem it. */
const Allowed = z.object({
  challenge: z.string(),
  endsAt: z.number(),
  by: Actor,
  /** The session of the person's browser. */
  from: z.uuid(),
  /** The session to open. The id is chosen now, so one code cannot open two sessions. */
  opens: z.uuid(),
});
const PLACE = 'console/login';

const NO_DEVICE = 'Sign-in by a device code was removed. Update the command line, or use expediter login --token.';

/** A code must be redeemed within this time. */
const CODE_MS = 2 * 60_000;
/** A person may allow a command for this long after their session has opened. */
const RECENT_MS = 10 * 60_000;

/**
 * The routes by which a command signs a person in: https://www.rfc-editor.org/rfc/rfc8252 (loopback redirect, PKCE).
 *
 * - `GET /login?port=&challenge=&state=`, in a browser: `302` to the sign-in at the issuer, which leads to the console's
 *   page that asks the person; `404` nobody can sign in by OIDC here
 * - `POST /login/token` `{code, verifier}`: `200` `{token}`, a token for the operator API; `400` the code is not valid, or
 *   no longer; `403` it was used, or the person has no session or no role any more
 * - `DELETE /login`, with such a token as Bearer: `204` the session has ended
 */
export function loginRoutes(scope: FastifyInstance, { pool, now, identify, judge, translating, oidc }: Deps): void {
  const api = scope.withTypeProvider<ZodTypeProvider>();

  api.get('/login', { exposeHeadRoute: false, schema: { querystring: Asked } }, async ({ query }, reply) => {
    if (oidc === undefined) {
      throw scope.httpErrors.notFound('People cannot sign in here by OIDC. Use a named token: expediter login --token');
    }
    const to = `/console/login?${new URLSearchParams({ ...query, port: String(query.port) }).toString()}`;
    return reply.redirect(`${oidc.consoleUrl}/console/session/oidc?to=${encodeURIComponent(to)}`, 302);
  });

  api.post('/login/token', { schema: { body: Redeemed } }, async (request) => {
    const { code, verifier } = request.body;
    const allowed = await judge(request, 'oidc', [code], async () => {
      const { data } = Allowed.safeParse(await unseal(translating.keys, code, PLACE).catch(() => undefined));
      return data?.challenge === hash('sha256', verifier, 'base64url') ? data : undefined;
    });
    if (allowed === undefined) throw scope.httpErrors.badRequest('This code is not valid. Run expediter login again.');
    if (allowed.endsAt <= now().getTime()) {
      throw scope.httpErrors.badRequest('This code has expired after two minutes. Run expediter login again.');
    }
    const { by, from, opens } = allowed;
    const about = { sessionId: opens, source: addressOf(request), userAgent: request.headers['user-agent'] };
    const secret = await audited(pool, by, { action: 'sign in', subject: opens, ...actionFrom(request) }, () =>
      startSessionFrom(pool, from, about),
    );
    if (secret !== undefined) return { token: `${SESSION_TOKEN}${secret}` };
    throw scope.httpErrors.forbidden(
      'This code was used already, or you have no session or no role at the console any more. Run expediter login again.',
    );
  });

  scope.delete('/login', async (request, reply) => {
    const token = bearerOf(request.headers);
    const shown = token === undefined ? [] : [token];
    const operator = await judge(request, 'bearer', shown, () => identify.byToken(token));
    const { sessionId } = operator?.session ?? {};
    if (operator !== undefined && sessionId !== undefined) {
      await audited(pool, operator, { action: 'sign out', ...actionFrom(request) }, () => endSession(pool, sessionId));
      identify.invalidateCache();
    }
    return reply.code(204).send();
  });

  scope.post('/login/device', (_request, reply) => sendProblem(reply, 410, NO_DEVICE));
}

/**
 * The console's route by which a person answers a command.
 *
 * - `POST /session/command` `{port, challenge, state, allow}`: `200` `{to}`, the URL of the command, where the browser goes
 *   with a code or a refusal; `401` no session; `403` the person did not sign in just now
 */
export function answerCommand(
  scope: FastifyInstance,
  { pool, now, identify, judge, translating, consoleUrl }: Omit<Deps, 'oidc'> & Pick<OidcSettings, 'consoleUrl'>,
): void {
  const { origin } = new URL(consoleUrl);
  const api = scope.withTypeProvider<ZodTypeProvider>();
  api.post('/session/command', { schema: { body: Answered } }, async (request, reply) => {
    const { port, challenge, state, allow } = request.body;
    const cookies = sessionCookies(request, origin);
    const operator = await judge(request, 'session', cookies, () => identify.bySession(cookies));
    if (operator?.session === undefined) return unauthorized(reply, 'Cookie');
    const { kind, id, name, session } = operator;
    const at = now().getTime();
    // The session of a token, or one that was left open, proves too little.
    if (kind !== 'person' || at - session.openedAt.getTime() > RECENT_MS) {
      throw scope.httpErrors.forbidden(
        'The command line needs a sign-in of yours just now. Run expediter login again.',
      );
    }
    const allowed: z.infer<typeof Allowed> = {
      challenge,
      endsAt: at + CODE_MS,
      by: { kind, id, name },
      from: session.sessionId,
      opens: randomUUID(),
    };
    // The session that may follow is recorded as a sign-in, with the same id.
    const action = { action: 'allow command line', subject: allowed.opens, ...actionFrom(request) };
    const code = await audited(pool, operator, action, async () =>
      allow ? seal(translating.keys, allowed, PLACE) : undefined,
    );
    const said = code === undefined ? { error: 'access_denied' } : { code };
    // `iss`, so that a command at another service cannot be given this code: https://www.rfc-editor.org/rfc/rfc9207
    const query = new URLSearchParams({ ...said, state, iss: origin });
    return { to: `http://127.0.0.1:${port}/?${query.toString()}` };
  });
}
