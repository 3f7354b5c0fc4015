import type { Pool, PoolClient } from 'pg';
import type { PlacementState } from '../domain/placement.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { CHANGED_MEANWHILE, matches, readConfigured } from './put-location.ts';
import { closeForever } from './settle-kitchens.ts';

const NAMED = 5;
const RIGHTS = `SELECT FROM operator_grants WHERE $1 = ANY (locations)
  UNION ALL SELECT FROM operator_tokens WHERE $1 = ANY (locations) AND revoked_at IS NULL`;
const TOKENS = 'SELECT FROM webhook_tokens WHERE location_id = $1';

type Options = {
  /** Also removes a location that is not paused. */
  unpaused?: boolean | undefined;
  dryRun?: boolean | undefined;
  mayRevoke?: boolean;
  ifMatch?: string;
  /** Whether a refusal names the orders that have not ended. */
  namesOrders?: boolean;
};

/**
 * Removes a location with its settings and tokens. It must be paused and have no unfinished orders. Its webhooks are
 * refused within five seconds, and the platform is told that its kitchen is closed. Its orders, their history and its
 * webhooks expire as usual, and the id can be configured again. Grants of its POS may be shared with other locations, so
 * they are deleted later, when nothing renews them.
 * @returns the number of tokens removed, or what prevents the removal, or undefined if there is no such location
 */
export async function removeLocation(
  pool: Pool,
  locationId: string,
  options: Options = {},
): Promise<{ tokens: number } | { refused: string; statusCode?: 403 | 412 } | undefined> {
  const { unpaused = false, dryRun = false, mayRevoke = true, ifMatch, namesOrders = true } = options;
  return inTransaction(pool, async (client) => {
    const location = await readConfigured(client, locationId, 'FOR UPDATE');
    if (location === undefined) return undefined;
    if (!matches(ifMatch, location)) return { refused: CHANGED_MEANWHILE, statusCode: 412 };
    if (!unpaused && !location.isPaused)
      return { refused: `it takes orders. Pause it first: expediter location pause ${locationId}` };
    const unfinished = await findUnfinished(client, locationId, namesOrders);
    if (unfinished !== undefined) return { refused: unfinished };
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

/** Names or counts the unfinished orders. Without the location they would lose their statuses, or could never be sent. */
async function findUnfinished(client: PoolClient, locationId: string, areNamed: boolean): Promise<string | undefined> {
  const { rows } = await client.query<{ serviceOrderId: string; state: PlacementState | null; count: number }>(
    `SELECT o.service_order_id AS "serviceOrderId", p.state, count(*) OVER ()::int AS count
     FROM orders o LEFT JOIN placements p USING (service_order_id)
     WHERE o.location_id = $1 AND o.ended_at IS NULL
     ORDER BY o.created_at LIMIT ${NAMED}`,
    [locationId],
  );
  const count = rows[0]?.count ?? 0;
  if (count === 0) return undefined;
  const named = rows.map((row) => `${row.serviceOrderId} (${(row.state ?? 'sent').replace('_', ' ')})`);
  const more = count > rows.length ? ` and ${count - rows.length} more` : '';
  // guard: orders-for-their-readers
  const which = areNamed ? `: ${named.join(', ')}${more}` : ` (${count})`;
  return `the location has orders that have not ended${which}. Each order ends with its last status, or a day after its last event`;
}
