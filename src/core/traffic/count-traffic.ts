import type { Pool } from 'pg';
import type { Now } from '../postgres/database-clock.ts';
import { countLatency, noLatencies } from './latency-buckets.ts';
import type { Observe, WebhookRefused } from '../domain/observed.ts';
import { Id } from '../domain/order.ts';
import {
  ALL_LOCATIONS,
  UNKNOWN_MINUTE,
  UNKNOWN_INTEGRATION,
  joinTraffic,
  writeTraffic,
  type Traffic,
} from './write-traffic.ts';

/** The fields that distinguish counters within a minute. */
type Kind = Pick<Traffic, 'what' | 'outcome' | 'locationId' | 'integration' | 'claimed'>;

const MINUTE_MS = 60_000;
/** Counters kept in memory, some 10 MB, while they cannot be written. Beyond it the oldest is removed. */
const COUNTERS_MAX = 20_000;
/** Locations from URLs counted between two writes. Anybody can invent more: those count without a location. */
const CLAIMED_MAX = 1_000;

/**
 * Counts traffic by minute, location, integration and outcome. Collected in memory and written now and then, since a
 * write per webhook would cost as much as the webhook. Every process adds its own. A killed process loses some seconds;
 * a write whose answer was lost may count twice.
 * @param about.integrations the known integrations
 */
export function countTraffic(
  pool: Pool,
  about: { integrations: ReadonlySet<string>; now: Now },
): {
  observe: Observe;
  /** Writes the counters. If that fails, they stay in memory, as far as there is room. */
  write(): Promise<void>;
} {
  let counters = new Map<string, Traffic>();
  let claimed = 0;

  const minuteNow = (): number => {
    try {
      return toMinute(about.now());
    } catch {
      return UNKNOWN_MINUTE;
    }
  };
  const store = (key: string, traffic: Traffic): Traffic => {
    const [oldest] = counters.size < COUNTERS_MAX ? [] : counters.keys();
    if (oldest !== undefined) counters.delete(oldest);
    counters.set(key, traffic);
    return traffic;
  };
  const count = (kind: Kind, milliseconds?: number): void => {
    const minute = minuteNow();
    const key = keyOf(minute, kind);
    const traffic = counters.get(key) ?? store(key, { ...kind, minute, count: 0, latencies: undefined });
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
    else if (counters.has(keyOf(minuteNow(), claim))) count(claim);
    else if (claimed < CLAIMED_MAX) {
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
        const kind = { what: 'live', outcome } as const;
        count(
          locationId === null
            ? { ...kind, locationId: ALL_LOCATIONS, integration: UNKNOWN_INTEGRATION, claimed: false }
            : { ...kind, locationId, integration: undefined, claimed: true },
          lagMs,
        );
      }
    },
    async write() {
      if (counters.size === 0) return;
      const taken = counters;
      counters = new Map();
      try {
        await writeTraffic(pool, [...taken.values()], toMinute(about.now()));
        claimed = 0;
      } catch (error) {
        const since = counters;
        counters = taken;
        for (const [key, traffic] of since) {
          const before = counters.get(key);
          if (before === undefined) store(key, traffic);
          else counters.set(key, joinTraffic(before, traffic));
        }
        throw error;
      }
    },
  };
}

function toMinute(time: Date): number {
  return Math.floor(time.getTime() / MINUTE_MS);
}

/** Joins the fields with NUL, which no id contains. */
function keyOf(minute: number, { what, outcome, integration = '', locationId, claimed }: Kind): string {
  return `${minute} ${what} ${outcome} ${claimed ? '?' : ''}\0${integration}\0${locationId}`;
}
