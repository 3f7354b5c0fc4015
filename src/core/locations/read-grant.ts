import type { Pool } from 'pg';
import { z } from 'zod';

/** What a POS has granted for a time. Never a token. */
export const ShownGrant = z
  .object({
    grantedAt: z.date().meta({ description: 'When its POS granted access last, or said how long it lasts.' }),
    lastsUntil: z
      .date()
      .nullable()
      .meta({ description: 'When the connection ends unless it is renewed. Null if it does not end by itself.' }),
    daysLeft: z.int().nullable().meta({ description: 'Whole days until then; below 0 once it has ended.' }),
  })
  .meta({ id: 'ShownGrant' });
export type ShownGrant = z.infer<typeof ShownGrant>;

/** Reads the grant that a location's connection depends on. @returns null if there is none, or it needs none */
export async function readGrant(pool: Pool, locationId: string): Promise<ShownGrant | null> {
  const { rows } = await pool.query<ShownGrant>(
    `SELECT c.granted_at AS "grantedAt",
            ends.at AS "lastsUntil", floor(extract(epoch FROM ends.at - now()) / 86400)::int AS "daysLeft"
     FROM locations l JOIN credentials c ON c.seed_sha256 = l.grant_sha256
     CROSS JOIN LATERAL (SELECT c.granted_at + make_interval(secs => c.lasts_s) AS at) AS ends
     WHERE l.location_id = $1::text AND c.granted_at IS NOT NULL`,
    [locationId],
  );
  return rows[0] ?? null;
}
