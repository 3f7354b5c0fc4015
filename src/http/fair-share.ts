/** The location sends more than its share while other locations wait. The sender may retry. */
export class BeyondShare extends Error {
  override readonly name = 'BeyondShare';
}

export type FairShare = {
  /** Counts a webhook of this location. @throws BeyondShare if the webhook would make other locations wait */
  admit(locationId: string): void;
  spend(locationId: string, bytes: number): void;
  /** Limits the location to its share, even without overload, because one of its webhooks failed verification. */
  distrust(locationId: string): void;
  stop(): void;
};

/** A location may send its share of this many seconds in one burst. */
const BURST_S = 2;
/** Bytes of a body that count as one more webhook. */
const BYTES_PER_WEBHOOK = 64 * 1024;
/** Lag of the event loop above which the process counts as overloaded. */
const LAG_MS = 5;
const SAMPLE_EVERY_MS = 20;
/** How long a location stays limited after a refusal. Otherwise a short pause in a flood would end the limit. */
const HELD_BACK_MS = 10_000;
/** How long a location counts as active after a webhook. */
const ACTIVE_MS = 1_000;

type Account = { tokens: number; at: number; heldBackUntil: number };

/**
 * Stops a flooding location from slowing the others down. While the process is overloaded, webhooks beyond the
 * location's share are refused before their body is read. Nothing is refused while the process has capacity, while only
 * one location sends, or while all locations exceed their share.
 * @param perSecond a location's share: this many webhooks per second are never refused
 * @param onHeldBack called when the limit of a location starts
 */
export function fairShare(perSecond: number, onHeldBack: (locationId: string) => void): FairShare {
  const burst = BURST_S * perSecond;
  const accounts = new Map<string, Account>();
  // The last two locations that were within their share: two, so that one of them is not the current location.
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
    // The timer stops while no webhooks come and the process has capacity.
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
    admit(locationId) {
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
      throw new BeyondShare('the location sends more than its share while others wait');
    },
    spend(locationId, bytes) {
      const account = accountOf(locationId, performance.now());
      // The debt is bounded, because otherwise one large body would block its location for a long time.
      account.tokens = Math.max(-burst, account.tokens - bytes / BYTES_PER_WEBHOOK);
    },
    distrust(locationId) {
      const now = performance.now();
      accountOf(locationId, now).heldBackUntil = now + HELD_BACK_MS;
    },
    stop: () => clearInterval(sampling),
  };
}
