import type { Log } from './core/domain/log.ts';
import { orderFeed } from './core/live/order-feed.ts';
import { boardFeed } from './core/orders/board-feed.ts';
import type { OperatorDeps } from './http/operator/mount-routes.ts';

/** Builds the operators' door and its feeds. Undefined while OPERATOR_TOKEN is unset: then this door does not exist. */
export function operatorParts(
  token: string | undefined,
  deps: Omit<OperatorDeps, 'token' | 'follow' | 'watch'> & { log: Log },
): { door: OperatorDeps; onLive(): void; onSignal(): void; stop(): Promise<unknown> } | undefined {
  if (token === undefined) return undefined;
  const orders = orderFeed(deps);
  const board = boardFeed(deps);
  return {
    door: { ...deps, token, follow: orders.follow, watch: board.watch },
    onLive() {
      orders.wake();
      board.wake();
    },
    onSignal: board.wake,
    stop: () => Promise.all([orders.stop(), board.stop()]),
  };
}
