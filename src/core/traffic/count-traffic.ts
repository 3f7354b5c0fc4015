import type { Pool } from 'pg';
import type { Now } from '../postgres/database-clock.ts';
import { countLatency, noLatencies } from './latency-buckets.ts';
import type { Observe, WebhookRefused } from '../domain/observed.ts';
import { Id } from '../domain/order.ts';
import {
  ALL_LOCATIONS,
  NOT_TOLD,
  UNKNOWN_INTEGRATION,
  joinTraffic,
  writeTraffic,
  type Traffic,
} from './write-traffic.ts';

/** What of it is told apart within a minute. */
type Kind = Pick<Traffic, 'what' | 'outcome' | 'locationId' | 'integration' | 'claimed'>;

const MINUTE_MS = 60_000;
/** Kept in mind while it cannot be written, some 10 MB at most; then the oldest goes. */
const KEPT = 20_000;
/** Anybody can make up the location in a URL: more of them between two writes are counted without it. */
const CLAIMED = 1_000;

/**
 * Counts what goes through, by minute, location, integration and outcome, and writes it down now and then: at every
 * webhook it would cost as much as the webhook. Every process adds its own. What a process that is killed had in mind is
 * lost, some seconds of it; a write whose answer was lost may count twice.
 * @param about.integrations those there are
 */
export function countTraffic(
  pool: Pool,
  about: { integrations: ReadonlySet<string>; now: Now },
): {
  observe: Observe;
  /** What cannot be written stays in mind, as far as there is room. */
  write(): Promise<void>;
} {
  let kept = new Map<string, Traffic>();
  let claimed = 0;

  const minuteNow = (): number => {
    try {
      return toMinute(about.now());
    } catch {
      return NOT_TOLD;
    }
  };
  const keep = (key: string, traffic: Traffic): Traffic => {
    const [oldest] = kept.size < KEPT ? [] : kept.keys();
    if (oldest !== undefined) kept.delete(oldest);
    kept.set(key, traffic);
    return traffic;
  };
  const count = (kind: Kind, milliseconds?: number): void => {
    const minute = minuteNow();
    const key = keyOf(minute, kind);
    const traffic = kept.get(key) ?? keep(key, { ...kind, minute, count: 0, latencies: undefined });
    traffic.count += 1;
    if (milliseconds !== undefined) countLatency((traffic.latencies ??= noLatencies()), milliseconds);
  };
  const countRefused = ({ outcome, integration = '', locationId, claimedLocationId = '' }: WebhookRefused): void => {
    const kind: Kind = {
      what: 'webhook',
      outcome,
      locationId: locationId ?? ALL_LOCATIONS,
      integration: about.integrations.has(integration) ? integration : UNKNOWN_INTEGRATION,
      claimed: false,
    };
    const claim: Kind = { ...kind, locationId: claimedLocationId, claimed: true };
    if (locationId !== undefined || !Id.safeParse(claimedLocationId).success) count(kind);
    else if (kept.has(keyOf(minuteNow(), claim))) count(claim);
    else if (claimed < CLAIMED) {
      claimed += 1;
      count(claim);
    } else count(kind);
  };

  return {
    observe(observed) {
      if (observed.what === 'webhook') {
        const { what, outcome, locationId, integration } = observed;
        count({ what, outcome, locationId, integration, claimed: false });
      } else if (observed.what === 'webhook refused') countRefused(observed);
      else if (observed.what === 'placement' && observed.entered && observed.outcome !== 'waiting') {
        const { what, outcome, sinceSignalMs } = observed;
        const locationId = observed.locationId ?? ALL_LOCATIONS;
        const integration = observed.integration ?? UNKNOWN_INTEGRATION;
        const kind = { what, outcome, locationId, integration, claimed: observed.integration === null };
        count(kind, outcome === 'sent' ? sinceSignalMs : undefined);
      } else if (observed.what === 'live message' && observed.outcome === 'published') {
        const { outcome, locationId, appliedAt } = observed;
        const lagMs = Math.max(0, about.now().getTime() - Date.parse(appliedAt));
        count({ what: 'live', outcome, locationId, integration: undefined, claimed: true }, lagMs);
      }
    },
    async write() {
      if (kept.size === 0) return;
      const taken = kept;
      kept = new Map();
      try {
        await writeTraffic(pool, [...taken.values()], toMinute(about.now()));
        claimed = 0;
      } catch (error) {
        const since = kept;
        kept = taken;
        for (const [key, traffic] of since) {
          const before = kept.get(key);
          if (before === undefined) keep(key, traffic);
          else kept.set(key, joinTraffic(before, traffic));
        }
        throw error;
      }
    },
  };
}

function toMinute(time: Date): number {
  return Math.floor(time.getTime() / MINUTE_MS);
}

/** No id holds a NUL, so that what an id says ends where it does. */
function keyOf(minute: number, { what, outcome, integration = '', locationId, claimed }: Kind): string {
  return `${minute} ${what} ${outcome} ${claimed ? '?' : ''}\0${integration}\0${locationId}`;
}
