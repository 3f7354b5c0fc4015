import type { Pool, PoolClient } from 'pg';
import { inTransaction } from '../postgres/transactions.ts';
import { CHANGED_MEANWHILE, matches, readConfigured } from './put-location.ts';
import { closeForever } from '../kitchens/settle-kitchens.ts';
import { findUnfinished } from './unfinished-orders.ts';

const RIGHTS = `SELECT FROM operator_grants WHERE $1 = ANY (locations)
  UNION ALL SELECT FROM operator_tokens WHERE $1 = ANY (locations) AND revoked_at IS NULL`;
// A grant that could not be revoked for a day, such as one that no key decrypts, holds nothing back.
const WAITING = `SELECT FROM connect_links WHERE location_id = $1 AND sealed IS NOT NULL
  AND expires_at > now() - interval '1 day'`;
const WAITS =
  'its owner has not confirmed the access of a link. Wait ten minutes, or one after: expediter provider disconnect ';
const TOKENS = 'SELECT FROM webhook_tokens WHERE location_id = $1';

type Options = Partial<Record<'unpaused' | 'dryRun' | 'mayRevoke' | 'namesOrders', boolean | undefined>> & {
  ifMatch?: string;
};

/**
 * Removes a location with its settings and tokens. It must be paused and have no unfinished orders. Its webhooks are
 * refused within five seconds, and the platform is told that its kitchen is closed. Its orders, their history and its
 * webhooks expire as usual, and the id can be configured again. Grants of its POS may be shared with other locations, so
 * they are deleted later, when nothing renews them. A grant that its owner has not confirmed is only in its connect link,
 * so it must be revoked first.
 * @param options.unpaused also removes a location that is not paused
 * @param options.namesOrders whether a refusal names the orders that have not ended
 * @returns the number of tokens removed, or what prevents the removal, or undefined if there is no such location
 */
export async function removeLocation(
  pool: Pool,
  locationId: string,
  { unpaused, dryRun, mayRevoke = true, ifMatch, namesOrders = true }: Options = {},
): Promise<{ tokens: number } | { refused: string; statusCode?: 403 | 412 } | undefined> {
  return inTransaction(pool, async (client) => {
    const location = await readConfigured(client, locationId, 'FOR UPDATE');
    if (location === undefined) return undefined;
    if (!matches(ifMatch, location)) return { refused: CHANGED_MEANWHILE, statusCode: 412 };
    if (!unpaused && !location.isPaused) return { refused: 'it takes orders. Pause it first' };
    const unfinished = await findUnfinished(client, locationId, { namesOrders });
    if (unfinished !== undefined) return { refused: unfinished };
    // guard: revoked-before-removal
    if ((await client.query(WAITING, [locationId])).rowCount !== 0) return { refused: WAITS + locationId };
    // guard: rights-of-admins
    if (!mayRevoke && (await client.query(RIGHTS, [locationId])).rowCount !== 0)
      return { refused: 'roles name it. Ask an admin of this location to remove these roles, or it', statusCode: 403 };

    if (dryRun) return { tokens: (await client.query(TOKENS, [locationId])).rowCount ?? 0 };
    await client.query(`DELETE FROM removed_tokens WHERE removed_at < now() - interval '1 day'`);
    const tokens = await client.query(
      `WITH removed AS (DELETE FROM webhook_tokens WHERE location_id = $1 RETURNING sha256)
       INSERT INTO removed_tokens (sha256) SELECT sha256 FROM removed`,
      [locationId],
    );
    await revokeRights(client, locationId);
    for (const table of ['dropped_bytes', 'refused_bytes']) {
      await client.query(`UPDATE ${table} SET bytes = 0, not_stored = 0 WHERE location_id = $1`, [locationId]);
    }
    await closeForever(client, locationId);
    await client.query('DELETE FROM locations WHERE location_id = $1', [locationId]);
    return { tokens: tokens.rowCount ?? 0 };
  });
}

/** Removes operators' rights at the location, because the id may be configured again for somebody else. */
async function revokeRights(client: PoolClient, locationId: string): Promise<void> {
  for (const last of [
    `DELETE FROM operator_grants WHERE locations = ARRAY[$1] AND location_groups = '{}'`,
    `UPDATE operator_tokens SET revoked_at = coalesce(revoked_at, now())
     WHERE locations = ARRAY[$1] AND location_groups = '{}'`,
    'UPDATE operator_grants SET locations = array_remove(locations, $1) WHERE $1 = ANY (locations)',
    `UPDATE operator_tokens SET locations = array_remove(locations, $1)
     WHERE $1 = ANY (locations) AND (cardinality(locations) > 1 OR location_groups <> '{}')`,
  ]) {
    await client.query(last, [locationId]);
  }
}
