import type { Log } from './core/domain/log.ts';
import { boardFeed } from './core/orders/board-feed.ts';
import type { OperatorDeps } from './http/operator/mount-routes.ts';

/** Builds the operators' door and its feeds. Undefined while OPERATOR_TOKEN is unset: then this door does not exist. */
export function operatorParts(
  token: string | undefined,
  deps: Omit<OperatorDeps, 'token' | 'watch'> & { log: Log },
): { door: OperatorDeps; wake(): void; stop(): Promise<unknown> } | undefined {
  if (token === undefined) return undefined;
  const board = boardFeed(deps);
  return { door: { ...deps, token, watch: board.watch }, wake: board.wake, stop: board.stop };
}
