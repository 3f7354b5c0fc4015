import type { FastifyInstance } from 'fastify';
import type { Config } from '../config/config.ts';
import { NONE_WAITING } from '../core/spill/spill-webhook.ts';
import type { Authenticate } from '../http/bound-connections.ts';
import type { OidcSettings } from '../identity/oidc-client.ts';
import type { Readiness } from '../http/health.ts';
import type { OperatorDeps } from '../http/operator/operator-deps.ts';
import type { Live } from './modules/live.ts';
import type { Notices } from './modules/notices.ts';
import type { Orders } from './modules/orders.ts';
import type { Webhooks } from './modules/webhooks.ts';

type App = Pick<FastifyInstance, 'database' | 'observability' | 'providers'>;

/** The dependencies of the operators' endpoint. Undefined if there are no operators: then its modules are not loaded. */
export async function operatorDeps(
  app: App,
  config: Config,
  about: {
    readiness: () => Readiness;
    live: Pick<Live, 'feed' | 'board'>;
    webhooks: Pick<Webhooks, 'spill'>;
    env: NodeJS.ProcessEnv;
    isForwarded: () => boolean;
    orders: Pick<Orders, 'wake'>;
    notices: Pick<Notices, 'ways'>;
  },
): Promise<OperatorDeps | undefined> {
  const { live, webhooks, orders, notices, readiness, env, isForwarded } = about;
  if (live.board === undefined) return undefined;
  const [{ identifier }, { throttleFailures }] = await Promise.all([
    import('../http/operator/identify.ts'),
    import('../http/throttle-failures.ts'),
  ]);
  const { database, observability, providers } = app;
  const { pool, clock } = database;
  const { OPERATOR_TOKEN: operatorToken, CONSOLE_URL: consoleUrl, SETTINGS_KEY: keys } = config;
  const { GOOGLE_CLOUD_PROJECT, STATUS_TOPIC, STATUS_WEBHOOK_URL } = config;
  const oidc = oidcSettings(config);
  return {
    ...providers,
    env,
    isForwarded,
    pool,
    now: clock.now,
    translating: { pool, decryptSettings: providers.decryptSettings, keys, publicUrl: config.PUBLIC_URL ?? '' },
    identify: identifier(pool, operatorToken, clock.now, oidc !== undefined),
    judge: throttleFailures({ observe: observability.observe }),
    operatorToken,
    consoleUrl,
    waysOut: { GOOGLE_CLOUD_PROJECT, STATUS_TOPIC, STATUS_WEBHOOK_URL },
    oidc,
    ways: notices.ways,
    follow: live.feed.follow,
    watch: live.board.watch,
    metrics: observability.metrics,
    readiness,
    spillState: () => webhooks.spill?.state() ?? NONE_WAITING,
    observe: observability.observe,
    wake: orders.wake,
    wakeBoard: live.board.wakeAttention,
  };
}

/**
 * The operators' endpoint: the API for programs, the console, which has the same API for people, and the pages of connect
 * links for restaurants.
 */
export async function operatorEndpoint(
  scope: FastifyInstance,
  { operator, authenticate }: { operator: OperatorDeps; authenticate: Authenticate },
): Promise<void> {
  const [{ mountRoutes, speakJson }, { bearerAuth }, { sessionAuth }, { loginRoutes }, { connectRoutes }] =
    await Promise.all([
      import('../http/operator/mount-routes.ts'),
      import('../http/operator/bearer-auth.ts'),
      import('../http/console/session-auth.ts'),
      import('../http/console/login-routes.ts'),
      import('../http/connect/connect-routes.ts'),
    ]);
  scope.addHook('onRequest', async (_request, reply) => void reply.header('x-content-type-options', 'nosniff'));
  const mountApi = mountRoutes(scope, operator);
  await scope.register((endpoint) => bearerAuth(endpoint, operator, authenticate, mountApi));
  await scope.register(async (endpoint) => {
    speakJson(endpoint);
    loginRoutes(endpoint, operator);
  });
  await scope.register((endpoint) => sessionAuth(endpoint, operator, authenticate, mountApi), { prefix: '/console' });
  await scope.register((pages) => connectRoutes(pages, operator), { prefix: '/connect' });
}

function oidcSettings(config: Config): OidcSettings | undefined {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, CONSOLE_URL: consoleUrl } = config;
  if (issuer === undefined || clientId === undefined || consoleUrl === undefined) return undefined;
  return {
    issuer,
    clientId,
    clientSecret: config.OIDC_CLIENT_SECRET,
    consoleUrl,
    scopes: config.OIDC_SCOPES,
    groupsClaim: config.OIDC_GROUPS_CLAIM,
    domains: config.OIDC_ALLOWED_DOMAINS,
    groups: config.OIDC_ALLOWED_GROUPS,
  };
}
