import type { TranslatedWebhook } from '../domain/webhook.ts';

/** Time for which an order counts as locked after a webhook about it met the lock. */
const KNOWN_MS = 10_000;

export type KnownLocked = {
  /** The number of ids that are remembered. */
  size(): number;
  /** True if a webhook about one of the same orders met a lock, and none has been applied since. */
  has(webhook: TranslatedWebhook): boolean;
  add(webhook: TranslatedWebhook): void;
  remove(webhook: TranslatedWebhook): void;
};

/** Remembers the orders whose webhooks wait for a lock, by our id and by the POS's, so that the next one meets none. */
export function knownLocked(): KnownLocked {
  // By time, the oldest first.
  const until = new Map<string, number>();
  const forgetOld = (now: number): void => {
    for (const [name, end] of until) {
      if (end > now) return;
      until.delete(name);
    }
  };
  return {
    size() {
      forgetOld(performance.now());
      return until.size;
    },
    has(webhook) {
      // guard: known-locked
      if (until.size === 0) return false;
      forgetOld(performance.now());
      return namesOf(webhook).some((name) => until.has(name));
    },
    add(webhook) {
      for (const name of namesOf(webhook)) {
        until.delete(name);
        until.set(name, performance.now() + KNOWN_MS);
      }
    },
    remove(webhook) {
      if (until.size > 0) for (const name of namesOf(webhook)) until.delete(name);
    },
  };
}

function namesOf({ locationId, integration, events }: TranslatedWebhook): string[] {
  return events.flatMap(({ serviceOrderId, providerOrderId }) => [
    ...(serviceOrderId === undefined ? [] : [JSON.stringify([locationId, serviceOrderId])]),
    ...(providerOrderId === undefined ? [] : [JSON.stringify([locationId, integration, providerOrderId])]),
  ]);
}
