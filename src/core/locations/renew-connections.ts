import type { Pool } from 'pg';
import { z } from 'zod';
import { classifyError } from '../domain/classify-error.ts';
import { askPos, type PosDeps } from './check-location.ts';
import {
  findLocation,
  grantKeyOf,
  listLocations,
  type DecryptSettings,
  type StoredLocation,
  WrongLocation,
} from './locations.ts';
import type { Log } from '../domain/log.ts';

/** The dates of a POS's grant, without its tokens. */
export const ShownGrant = z
  .object({
    grantedAt: z.date().meta({ description: 'When its POS last granted access, or reported how long access lasts.' }),
    lastsUntil: z
      .date()
      .nullable()
      .meta({ description: 'When the connection ends unless it is renewed. Null if it does not expire.' }),
    daysLeft: z.int().nullable().meta({ description: 'Whole days until `lastsUntil`; negative if it has passed.' }),
  })
  .meta({ id: 'ShownGrant' });
export type ShownGrant = z.infer<typeof ShownGrant>;

/** Reads the grant of a location's connection. @returns null if there is none */
export async function readGrant(pool: Pool, locationId: string): Promise<ShownGrant | null> {
  const { rows } = await pool.query<ShownGrant>(
    `SELECT c.granted_at AS "grantedAt",
            ends.at AS "lastsUntil", floor(extract(epoch FROM ends.at - now()) / 86400)::int AS "daysLeft"
     FROM locations l JOIN credentials c ON c.seed_sha256 = l.grant_sha256
     CROSS JOIN LATERAL (SELECT coalesce(l.reconnect_needed_at, c.granted_at + make_interval(secs => c.lasts_s)) AS at) AS ends
     WHERE l.location_id = $1::text AND c.granted_at IS NOT NULL`,
    [locationId],
  );
  return rows[0] ?? null;
}

const CALL_TIMEOUT_S = 15;

/**
 * Calls `renewConnection` for one location after the other. Logs each location that needs an operator, before an order
 * fails there. Paused locations are included, because their credentials expire too.
 */
export async function renewConnections(
  deps: PosDeps & {
    pool: Pool;
    decryptSettings: DecryptSettings;
    log: Pick<Log, 'error'>;
    /** Ends the run before the next location: a process that exits could use a refresh token and lose the new grant. */
    signal: AbortSignal;
  },
): Promise<void> {
  const { pool, decryptSettings, log } = deps;
  for (const { locationId } of await listLocations(pool)) {
    if (deps.signal.aborted) return;
    const found = await findLocation(pool, locationId);
    if (found === undefined) continue;
    const { integration } = found;
    try {
      const { provider, settings } = await decryptSettings(found);
      await noteGrant(pool, found, grantKeyOf(integration, provider, settings));
      const limit = { seconds: CALL_TIMEOUT_S, sent: false };
      await askPos(deps, { integration, provider, settings }, limit, async (context) =>
        provider.renewConnection?.(context),
      );
    } catch (error) {
      const { problem, cause } = classifyError(error);
      log.error(
        { locationId, integration, problem: error instanceof WrongLocation ? error.message : problem, cause },
        'location cannot keep its connection to the POS',
      );
    }
  }
}

/** Records which grant a location's settings use now: an update of the provider's module may have changed that. */
async function noteGrant(pool: Pool, location: StoredLocation, grantKey: string | undefined): Promise<void> {
  await pool.query(
    `UPDATE locations SET grant_sha256 = decode($3::text, 'hex')
     WHERE location_id = $1::text AND settings = $2::text AND grant_sha256 IS DISTINCT FROM decode($3::text, 'hex')`,
    [location.locationId, location.sealedSettings, grantKey ?? null],
  );
}
