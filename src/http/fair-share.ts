/** The location sends more than its share while others wait; the sender may come again. */
export class BeyondShare extends Error {
  override readonly name = 'BeyondShare';
}

export type FairShare = {
  /** A webhook of this location wants in. @throws BeyondShare, when others would have to wait for it */
  enter(locationId: string): void;
  /** So much of its body has come. */
  spend(locationId: string, bytes: number): void;
  stop(): void;
};

/** So many seconds' share may come at once. */
const BURST_S = 2;
/** So many bytes count as one more webhook. */
const BYTES = 64 * 1024;
/** The process falls behind when what is due is done so much later. */
const LAG_MS = 5;
const LOOK_EVERY_MS = 20;
/** A flood that is let go on as soon as it has been held back would be felt again each time. */
const HELD_BACK_MS = 10_000;
/** Somebody who was here within this time is there. */
const THERE_MS = 1_000;

type Account = { tokens: number; at: number; heldBackUntil: number };

/**
 * Keeps a location that floods from slowing the others down: beyond its share it is refused, before its body is read,
 * once the process falls behind. Alone, or while there is room for all, anybody may send as much as he likes; so may
 * all together, since then nobody floods.
 * @param perSecond webhooks that nobody is denied
 * @param onHeldBack a location is held back from now on
 */
export function fairShare(perSecond: number, onHeldBack: (locationId: string) => void): FairShare {
  const burst = BURST_S * perSecond;
  const accounts = new Map<string, Account>();
  // The last two that sent within their share: one of them is not the one that is asked about.
  let [latest, before] = [
    { locationId: '', at: -Infinity },
    { locationId: '', at: -Infinity },
  ];
  let lag = 0;
  let expected = performance.now() + LOOK_EVERY_MS;
  const looking = setInterval(() => {
    const now = performance.now();
    lag = 0.8 * lag + 0.2 * Math.max(0, now - expected);
    expected = now + LOOK_EVERY_MS;
  }, LOOK_EVERY_MS).unref();

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
      const account = accountOf(locationId, now);
      if (account.tokens >= 1) {
        account.tokens -= 1;
        if (account.tokens < burst / 2) return;
        if (latest.locationId !== locationId) before = latest;
        latest = { locationId, at: now };
        return;
      }
      const other = latest.locationId === locationId ? before : latest;
      if (now - other.at > THERE_MS) return;
      const isHeldBack = now < account.heldBackUntil;
      if (!isHeldBack && lag < LAG_MS) return;
      account.heldBackUntil = now + HELD_BACK_MS;
      if (!isHeldBack) onHeldBack(locationId);
      throw new BeyondShare('others wait for this location');
    },
    spend(locationId, bytes) {
      const account = accountOf(locationId, performance.now());
      // Not without end, or one large body would shut its location out for long.
      account.tokens = Math.max(-burst, account.tokens - bytes / BYTES);
    },
    stop: () => clearInterval(looking),
  };
}
