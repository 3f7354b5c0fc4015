/** The location sends more than its share while others wait. The sender may retry. */
export class BeyondShare extends Error {
  override readonly name = 'BeyondShare';
}

export type FairShare = {
  /** Admits a webhook of this location. @throws BeyondShare, if others would have to wait for it */
  enter(locationId: string): void;
  /** Counts bytes of its body. */
  spend(locationId: string, bytes: number): void;
  /** Holds it to its share for a while, though the process keeps up: its webhook proved nothing of who sends it. */
  distrust(locationId: string): void;
  stop(): void;
};

/** Seconds of its share that a location may send at once. */
const BURST_S = 2;
/** Bytes of a body that count as one more webhook. */
const BYTES_PER_WEBHOOK = 64 * 1024;
/** Lag of the event loop from which the process counts as overloaded. */
const LAG_MS = 5;
const SAMPLE_EVERY_MS = 20;
/** Time for which a location stays held back. Let go at once, it would be noticed again each time. */
const HELD_BACK_MS = 10_000;
/** Time for which a location counts as active. */
const ACTIVE_MS = 1_000;

type Account = { tokens: number; at: number; heldBackUntil: number };

/**
 * Stops a location that floods from slowing the others down: beyond its share it is refused, before its body is read,
 * while the process is overloaded. A location that is alone, or sends while there is room for all, has no limit.
 * Neither have all together, since then nobody floods.
 * @param perSecond webhooks that are never refused
 * @param onHeldBack called when a location starts to be held back
 */
export function fairShare(perSecond: number, onHeldBack: (locationId: string) => void): FairShare {
  const burst = BURST_S * perSecond;
  const accounts = new Map<string, Account>();
  // The last two locations within their share: one of them is not the location in question.
  let [latest, before] = [
    { locationId: '', at: -Infinity },
    { locationId: '', at: -Infinity },
  ];
  let lag = 0;
  let [expected, askedAt] = [0, 0];
  let sampling: NodeJS.Timeout | undefined;
  const sample = (): void => {
    const now = performance.now();
    lag = 0.8 * lag + 0.2 * Math.max(0, now - expected);
    expected = now + SAMPLE_EVERY_MS;
    // While nobody sends, a process that keeps up is not woken for it.
    if (now - askedAt < ACTIVE_MS || lag >= LAG_MS) return;
    clearInterval(sampling);
    sampling = undefined;
  };

  const accountOf = (locationId: string, now: number): Account => {
    let account = accounts.get(locationId);
    if (account === undefined) {
      account = { tokens: burst, at: now, heldBackUntil: -Infinity };
      accounts.set(locationId, account);
    }
    account.tokens = Math.min(burst, account.tokens + ((now - account.at) * perSecond) / 1_000);
    account.at = now;
    return account;
  };

  return {
    enter(locationId) {
      const now = performance.now();
      askedAt = now;
      if (sampling === undefined) {
        sampling = setInterval(sample, SAMPLE_EVERY_MS).unref();
        expected = now + SAMPLE_EVERY_MS;
      }
      const account = accountOf(locationId, now);
      if (account.tokens >= 1) {
        account.tokens -= 1;
        if (account.tokens < burst / 2) return;
        if (latest.locationId !== locationId) before = latest;
        latest = { locationId, at: now };
        return;
      }
      const other = latest.locationId === locationId ? before : latest;
      if (now - other.at > ACTIVE_MS) return;
      const isHeldBack = now < account.heldBackUntil;
      if (!isHeldBack && lag < LAG_MS) return;
      account.heldBackUntil = now + HELD_BACK_MS;
      if (!isHeldBack) onHeldBack(locationId);
      throw new BeyondShare('others wait for this location');
    },
    spend(locationId, bytes) {
      const account = accountOf(locationId, performance.now());
      // The debt is bounded, or one large body would shut its location out for long.
      account.tokens = Math.max(-burst, account.tokens - bytes / BYTES_PER_WEBHOOK);
    },
    distrust(locationId) {
      const now = performance.now();
      accountOf(locationId, now).heldBackUntil = now + HELD_BACK_MS;
    },
    stop: () => clearInterval(sampling),
  };
}
