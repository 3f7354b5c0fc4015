import type { Config } from './config.ts';
import type { Log } from './core/domain/log.ts';
import { boardFeed } from './core/orders/board-feed.ts';
import { identifier } from './http/operator/identify.ts';
import type { OperatorDeps } from './http/operator/mount-routes.ts';

/** Whether operators have a door: where somebody could come through it. */
export function hasOperators(config: Pick<Config, 'OPERATOR_TOKEN' | 'OPERATOR_PORT' | 'OIDC_ISSUER'>): boolean {
  return (config.OPERATOR_TOKEN ?? config.OPERATOR_PORT ?? config.OIDC_ISSUER) !== undefined;
}

/** Builds the operators' door and its feeds. Undefined where they have none. */
export function operatorParts(
  config: Config,
  deps: Omit<OperatorDeps, 'identify' | 'operatorToken' | 'watch'> & { log: Log },
): { door: OperatorDeps; wake(): void; stop(): Promise<unknown> } | undefined {
  if (!hasOperators(config)) return undefined;
  const board = boardFeed(deps);
  const { OPERATOR_TOKEN: operatorToken } = config;
  const identify = identifier(deps.pool, operatorToken);
  return { door: { ...deps, identify, operatorToken, watch: board.watch }, wake: board.wake, stop: board.stop };
}
