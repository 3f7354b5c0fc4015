import { follow, type Kind, type Update } from '../../packages/follow/follow.js';
import { memberToken } from '../../world/members/member-token.ts';
import type { Message } from '../../world/pubsub/queue-messages.ts';
import { until } from '../../world/processes/until.ts';

/** The updates that a member's phone got of its order, in order. */
export type Phone = { told: { update: Update; kind: Kind }[]; ended: boolean };

export type Phones = {
  /** By order id. */
  all: ReadonlyMap<string, Phone>;
  /** Call this when an order is placed. Its member may then follow it. */
  placed(serviceOrderId: string): void;
  /** Waits until each phone has its order's last message, at most as long as a phone may need to reconnect. */
  untilTold(live: readonly Message[]): Promise<void>;
  stop(): void;
};

/** The lifetime of tokens. It is short, so that many expire. The service still accepts one for half a minute. */
const TOKEN_S = 1;
/**
 * The longest silence before a phone gives up a connection, plus its longest pause before a new one, and one more if its
 * token has expired meanwhile.
 */
const PATIENCE_MS = 45_000 + 60_000 + 60_000;

/**
 * Follows orders as members' phones do, with the module for member pages.
 * @param about.every one of this many orders is followed
 */
export function followByPhone({ url, every }: { url: string; every: number }): Phones {
  const all = new Map<string, Phone>();
  const stops: (() => void)[] = [];
  let placed = 0;

  const hasAll = (live: readonly Message[]): boolean => {
    const last = new Map<string, number>();
    for (const { orderingKey, attributes } of live) {
      last.set(orderingKey, Math.max(Number(attributes['sequence']), last.get(orderingKey) ?? 0));
    }
    return [...all].every(
      ([order, { told, ended }]) => ended || (told.at(-1)?.update.sequence ?? -1) >= (last.get(order) ?? 0),
    );
  };

  return {
    all,
    placed(serviceOrderId) {
      placed += 1;
      if (placed % every !== 0) return;
      const phone: Phone = { told: [], ended: false };
      all.set(serviceOrderId, phone);
      const stop = follow({
        url,
        token: () => memberToken(serviceOrderId, TOKEN_S),
        onUpdate: (update, kind) => phone.told.push({ update, kind }),
        onState: (state) => (phone.ended = state === 'ended'),
      });
      stops.push(stop);
    },
    // A time-out is no error here, because `checkBooks` reports each missing message.
    untilTold: (live) =>
      until(() => hasAll(live), PATIENCE_MS).then(
        () => {},
        () => {},
      ),
    stop() {
      for (const stop of stops) stop();
    },
  };
}
