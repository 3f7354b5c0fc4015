import type { Pool } from 'pg';
import { unnestRows } from '../postgres/sql-rows.ts';
import type { SpilledWebhook } from './seal-spilled.ts';

/** What Postgres knows of a spilled webhook. */
export type Looked = {
  /** True if it is stored already: Postgres had committed it after all, or the message has come before. */
  isStored: boolean;
  /** True if its token was valid when it came. */
  wasValid: boolean;
  /** Its location now, if there still is one. */
  location: { integration: string; sealedSettings: string } | undefined;
  /** Milliseconds since it came. */
  ageMs: number;
};

const SPILLED = unnestRows<SpilledWebhook>([
  ['id', 'uuid', (spilled) => spilled.id],
  ['location_id', 'text', (spilled) => spilled.locationId],
  ['token_id', 'uuid', (spilled) => spilled.tokenId],
  ['received_at', 'timestamptz', (spilled) => spilled.receivedAt],
]);

const LOOK_UP = `
  SELECT EXISTS (SELECT FROM webhooks w
                 WHERE w.day = (s.received_at AT TIME ZONE 'UTC')::date AND w.location_id = s.location_id
                   AND w.id = s.id) AS "isStored",
         coalesce((SELECT (t.revoked_at > s.received_at) IS NOT FALSE AND (t.expires_at > s.received_at) IS NOT FALSE
                   FROM webhook_tokens t WHERE t.token_id = s.token_id), false) AS "wasValid",
         (SELECT jsonb_build_object('integration', l.integration, 'sealedSettings', l.settings)
          FROM locations l WHERE l.location_id = s.location_id) AS location,
         extract(epoch FROM clock_timestamp() - s.received_at)::float8 * 1000 AS "ageMs"
  FROM ${SPILLED.as('s')}
  ORDER BY s.nth`;

/** @returns one for each, in order */
export async function lookUpSpilled(pool: Pool, spilled: readonly SpilledWebhook[]): Promise<Looked[]> {
  if (spilled.length === 0) return [];
  const { rows } = await pool.query<Omit<Looked, 'location'> & { location: Looked['location'] | null }>({
    name: 'look-up-spilled',
    text: LOOK_UP,
    values: SPILLED.values(spilled),
  });
  return rows.map(({ location, ...row }) => ({ ...row, location: location ?? undefined }));
}
