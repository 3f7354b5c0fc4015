import cookie from '@fastify/cookie';
import type { FastifyInstance } from 'fastify';
import type { Authenticate } from '../bound-connections.ts';
import { answerErrors } from '../operator/answer-errors.ts';
import { guardRoutes } from '../operator/guard-routes.ts';
import { NOTHING_HERE, speakJson } from '../operator/mount-routes.ts';
import type { OperatorDeps } from '../operator/operator-deps.ts';
import { sendProblem } from '../problem.ts';
import { unauthorized } from '../operator/bearer-auth.ts';
import { answerCommand } from './login-routes.ts';
import { BUILT, isSameOrigin, pageFiles, secureHeaders } from './page-files.ts';
import { sessionCookies } from './session-cookie.ts';
import { sessionRoutes } from './session-routes.ts';

/**
 * Mounts the console: its public page, the routes of sessions, and a second copy of the operator API under `/api`. This
 * copy accepts only a session's cookie. The API for programs accepts only a bearer token.
 */
export async function sessionAuth(
  scope: FastifyInstance,
  deps: OperatorDeps,
  authenticate: Authenticate,
  mountApi: (scope: FastifyInstance) => void,
): Promise<void> {
  const publicOrigin = URL.parse(deps.consoleUrl ?? deps.translating.publicUrl)?.origin;
  const { pool, identify, judge, operatorToken, now, oidc: settings } = deps;
  const { keys } = deps.translating;
  const oidc = settings && (await import('./oidc-routes.ts')).oidcRoutes({ ...deps, keys, settings });
  scope.addHook('onRequest', async (_request, reply) => void reply.headers(secureHeaders));
  answerErrors(scope);
  scope.setNotFoundHandler((_request, reply) => sendProblem(reply, 404, NOTHING_HERE));
  await scope.register(cookie);
  await scope.register((page) => pageFiles(page, BUILT));

  if (oidc !== undefined) {
    // The only route to which another site may redirect a browser.
    await scope.register(async (entry) => {
      speakJson(entry);
      oidc.callback(entry);
    });
  }
  await scope.register(async (own) => {
    own.addHook('onRequest', async (request) => {
      if (isSameOrigin(request, publicOrigin)) return;
      throw own.httpErrors.forbidden(
        "This request did not come from the console's own page. Open the console by https. A program calls the operator API, with its token as Bearer.",
      );
    });

    await own.register(async (entry) => {
      speakJson(entry);
      sessionRoutes(entry, { pool, identify, judge, operatorToken, publicOrigin, ways: deps.ways });
      entry.get('/session/ways', async () => ({ oidc: oidc !== undefined }));
      oidc?.start(entry);
      if (settings !== undefined) answerCommand(entry, { ...deps, consoleUrl: settings.consoleUrl });
    });
    await own.register(
      async (api) => {
        api.addHook('onRequest', async (request, reply) => {
          const cookies = sessionCookies(request, publicOrigin);
          request.identifyAgain = () => identify.bySession(cookies);
          request.operator = await judge(request, 'session', cookies, request.identifyAgain);
          if (request.operator === undefined) return unauthorized(reply, 'Cookie');
          authenticate(reply.raw, request.operator.id);
          return undefined;
        });
        guardRoutes(api, { pool, now });
        mountApi(api);
        // Without this route, an unknown path of the API would get the console's page.
        api.get('/*', async () => {
          throw api.httpErrors.notFound(NOTHING_HERE);
        });
      },
      { prefix: '/api' },
    );
  });
}
