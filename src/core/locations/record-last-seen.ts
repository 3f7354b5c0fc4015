import type { Pool } from 'pg';
import type { Observe } from '../domain/observed.ts';

type Seen = { integration: string; at: number };

/**
 * Records when each location and each token was last seen. Collects the times in memory and writes them periodically,
 * because a write per webhook would cost as much as the webhook. A killed process loses the times of some seconds.
 */
export function recordLastSeen(pool: Pool): {
  observe: Observe;
  /** Writes all changes in one statement. If that fails, the changes stay in memory. */
  write(): Promise<void>;
} {
  const locations = new Map<string, Seen>();
  const tokens = new Map<string, number>();

  return {
    observe(observed) {
      const use = (tokenId: string, at: number): void =>
        void tokens.set(tokenId, Math.max(tokens.get(tokenId) ?? at, at));
      if (observed.what === 'signal' && observed.tokenId !== undefined) use(observed.tokenId, performance.now());
      if (observed.what !== 'webhook') return;
      const at = performance.now() - (observed.fromSpill === true ? observed.milliseconds : 0);
      const { locationId, integration } = observed;
      const seen = locations.get(locationId);
      if (seen?.integration === integration) seen.at = Math.max(seen.at, at);
      else locations.set(locationId, { integration, at });
      use(observed.tokenId, at);
    },
    async write() {
      if (tokens.size === 0) return;
      const now = performance.now();
      const seen = [...locations];
      const used = [...tokens];
      await pool.query(WRITE, [
        seen.map(([locationId]) => locationId),
        seen.map(([, { integration }]) => integration),
        seen.map(([, { at }]) => (now - at) / 1_000),
        used.map(([tokenId]) => tokenId),
        used.map(([, at]) => (now - at) / 1_000),
      ]);
      for (const [locationId, { at }] of seen) if (at <= now) locations.delete(locationId);
      for (const [tokenId] of used) if ((tokens.get(tokenId) ?? 0) <= now) tokens.delete(tokenId);
    },
  };
}

/** SQL that records the use of those tokens of `$4` that are in a table. */
const recordUse = (table: string): string => `
  UPDATE ${table} t SET last_used_at = greatest(t.last_used_at, used.used_at)
  FROM (SELECT t.token_id, now() - make_interval(secs => u.ago) AS used_at
        FROM unnest($4::uuid[], $5::float8[]) AS u(token_id, ago) JOIN ${table} t USING (token_id)
        ORDER BY t.token_id
        FOR NO KEY UPDATE OF t) AS used
  WHERE t.token_id = used.token_id`;

/** Locks rows ordered by key, so that two processes cannot deadlock. */
const WRITE = `
  WITH heard AS (
    INSERT INTO location_last_seen (location_id, integration, last_seen_at)
    SELECT h.location_id, h.integration, now() - make_interval(secs => h.ago)
    FROM unnest($1::text[], $2::text[], $3::float8[]) AS h(location_id, integration, ago)
    JOIN locations USING (location_id) -- skips locations removed meanwhile
    ORDER BY h.location_id
    ON CONFLICT (location_id) DO UPDATE
      SET integration = excluded.integration, last_seen_at = greatest(location_last_seen.last_seen_at, excluded.last_seen_at)
  ), signalled AS (${recordUse('signal_tokens')} RETURNING 1)
  ${recordUse('webhook_tokens')}`;
