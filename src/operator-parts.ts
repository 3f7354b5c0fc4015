import { hasOperators, type Config } from './config.ts';
import type { Log } from './core/domain/log.ts';
import { boardFeed } from './core/orders/board-feed.ts';
import { identifier } from './http/operator/identify.ts';
import type { OperatorDeps } from './http/operator/mount-routes.ts';

/** Builds the operators' door and its feeds. Undefined where they have none. */
export function operatorParts(
  config: Config,
  deps: Omit<OperatorDeps, 'identify' | 'operatorToken' | 'consoleUrl' | 'watch'> & { log: Log },
): { door: OperatorDeps; wake(): void; stop(): Promise<unknown> } | undefined {
  if (!hasOperators(config)) return undefined;
  const board = boardFeed(deps);
  const { OPERATOR_TOKEN: operatorToken, CONSOLE_URL: consoleUrl } = config;
  const identify = identifier(deps.pool, operatorToken, deps.now);
  const door = { ...deps, identify, operatorToken, consoleUrl, watch: board.watch };
  return { door, wake: board.wake, stop: board.stop };
}
