import type { Pool } from 'pg';
import type { Observe } from '../domain/observed.ts';

type Heard = { integration: string; at: number };

/**
 * Keeps in mind when each location was heard last, and with which token, and writes it down now and then: at every
 * webhook it would cost as much as the webhook. What a process that is killed had in mind is lost, some seconds of it.
 */
export function recordLastSeen(pool: Pool): {
  observe: Observe;
  /** One statement for all that changed. What cannot be written stays in mind. */
  write(): Promise<void>;
} {
  const locations = new Map<string, Heard>();
  const tokens = new Map<string, number>();

  return {
    observe(observed) {
      if (observed.what !== 'webhook') return;
      const at = performance.now();
      const { locationId, integration } = observed;
      const heard = locations.get(locationId);
      if (heard?.integration === integration) heard.at = at;
      else locations.set(locationId, { integration, at });
      tokens.set(observed.tokenId, at);
    },
    async write() {
      if (tokens.size === 0) return;
      const now = performance.now();
      const heard = [...locations];
      const used = [...tokens];
      await pool.query(WRITE, [
        heard.map(([locationId]) => locationId),
        heard.map(([, { integration }]) => integration),
        heard.map(([, { at }]) => (now - at) / 1_000),
        used.map(([tokenId]) => tokenId),
        used.map(([, at]) => (now - at) / 1_000),
      ]);
      for (const [locationId, { at }] of heard) if (at <= now) locations.delete(locationId);
      for (const [tokenId] of used) if ((tokens.get(tokenId) ?? 0) <= now) tokens.delete(tokenId);
    },
  };
}

/** In the order of the keys, so that two processes never wait for each other in a circle. */
const WRITE = `
  WITH heard AS (
    INSERT INTO location_last_seen (location_id, integration, last_seen_at)
    SELECT h.location_id, h.integration, now() - make_interval(secs => h.ago)
    FROM unnest($1::text[], $2::text[], $3::float8[]) AS h(location_id, integration, ago)
    JOIN locations USING (location_id) -- it may have been removed meanwhile
    ORDER BY h.location_id
    ON CONFLICT (location_id) DO UPDATE
      SET integration = excluded.integration, last_seen_at = greatest(location_last_seen.last_seen_at, excluded.last_seen_at)
  ), used AS MATERIALIZED (
    SELECT t.token_id, now() - make_interval(secs => u.ago) AS used_at
    FROM unnest($4::uuid[], $5::float8[]) AS u(token_id, ago) JOIN webhook_tokens t USING (token_id)
    ORDER BY t.token_id
    FOR NO KEY UPDATE OF t
  )
  UPDATE webhook_tokens t SET last_used_at = greatest(t.last_used_at, used.used_at)
  FROM used WHERE t.token_id = used.token_id`;
