import { follow, type Kind, type Update } from '../clients/follow/follow.js';
import { memberToken } from '../test/support/member-token.ts';
import type { Message } from '../test/support/queue-messages.ts';
import { until } from '../test/support/until.ts';

/** What a member's phone was told of its order, in order. */
export type Phone = { told: { update: Update; kind: Kind }[]; ended: boolean };

export type Phones = {
  /** By order. */
  all: ReadonlyMap<string, Phone>;
  /** An order is placed: its member may follow it from then on. */
  placed(serviceOrderId: string): void;
  /** Waits until each has what the topic has of its order, or for so long as a phone may be without a connection. */
  untilTold(live: readonly Message[]): Promise<void>;
  stop(): void;
};

/** So short that many expire: the service is tolerant of half a minute. */
const TOKEN_S = 1;
/** Of silence until a phone gives up a connection, and its longest pause. */
const PATIENCE_MS = 45_000 + 60_000;

/**
 * Follows orders as members' phones do, each by the module for a member's page.
 * @param about.every one of so many orders is followed
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
    // What does not come is told by the books.
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
