import { hasOperators, type Config } from './config.ts';
import type { Log } from './core/domain/log.ts';
import type { Observe } from './core/domain/observed.ts';
import type { OidcSettings } from './http/console/oidc-client.ts';
import type { OperatorDeps } from './http/operator/mount-routes.ts';

/** Builds the operators' door and its feeds. Undefined where they have none: then nothing of it is loaded. */
export async function operatorParts(
  config: Config,
  deps: Omit<OperatorDeps, 'identify' | 'judge' | 'operatorToken' | 'consoleUrl' | 'oidc' | 'watch'> & {
    log: Log;
    observe: Observe;
  },
): Promise<{ door: OperatorDeps; wake(): void; stop(): Promise<unknown> } | undefined> {
  if (!hasOperators(config)) return undefined;
  const [{ boardFeed }, { identifier }, { slowGuesses }] = await Promise.all([
    import('./core/orders/board-feed.ts'),
    import('./http/operator/identify.ts'),
    import('./http/slow-guesses.ts'),
  ]);
  const board = boardFeed(deps);
  const { OPERATOR_TOKEN: operatorToken, CONSOLE_URL: consoleUrl } = config;
  const oidc = oidcSettings(config);
  const identify = identifier(deps.pool, operatorToken, deps.now, oidc !== undefined);
  const judge = slowGuesses({ observe: deps.observe });
  const door = { ...deps, identify, judge, operatorToken, consoleUrl, oidc, watch: board.watch };
  return { door, wake: board.wake, stop: board.stop };
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
