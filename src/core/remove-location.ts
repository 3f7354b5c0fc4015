import type { Pool, PoolClient } from 'pg';
import type { PlacementState } from './claim-placements.ts';
import { credentialsOf } from './credentials-of.ts';
import { inTransaction } from './in-transaction.ts';
import { WrongLocation, findLocation, listLocations, type OpenSettings, type StoredLocation } from './locations.ts';

export type RemovedLocation = {
  tokens: number;
  /** What its POS granted; another location with the same settings keeps it. */
  grants: number;
};

const NAMED = 5;

/**
 * Removes a location that is paused and has no open order, with its settings, its tokens and what its POS granted. From
 * five seconds on its webhooks are refused. Its orders, their history and its webhooks stay, as long as any other's;
 * the same id can be configured anew.
 * @returns what stands in the way instead, or undefined when there is no such location
 */
export async function removeLocation(
  deps: { pool: Pool; open: OpenSettings },
  locationId: string,
): Promise<RemovedLocation | { refused: string } | undefined> {
  const { pool } = deps;
  const key = await ownCredentials(deps, locationId);
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ paused: boolean }>(
      'SELECT paused_at IS NOT NULL AS paused FROM locations WHERE location_id = $1 FOR UPDATE',
      [locationId],
    );
    const location = rows[0];
    if (location === undefined) return undefined;
    if (!location.paused) return { refused: `it takes orders. First: expediter location pause ${locationId}` };
    const open = await openOrders(client, locationId);
    if (open !== undefined) return { refused: open };

    const tokens = await client.query('DELETE FROM webhook_tokens WHERE location_id = $1', [locationId]);
    await client.query('DELETE FROM locations WHERE location_id = $1', [locationId]);
    const grants = await client.query(`DELETE FROM credentials WHERE seed_sha256 = decode($1, 'hex')`, [key ?? '']);
    return { tokens: tokens.rowCount ?? 0, grants: grants.rowCount ?? 0 };
  });
}

/** An order of its own that is under way would lose its statuses, or wait for a location that is not there. */
async function openOrders(client: PoolClient, locationId: string): Promise<string | undefined> {
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
  return (
    `orders that have not ended: ${named.join(', ')}${more}. ` +
    'Each ends with its last status, or ORDER_END_S after it was heard of last'
  );
}

/** @returns the key of what its POS granted, unless another location uses it or nobody can tell */
async function ownCredentials(
  { pool, open }: { pool: Pool; open: OpenSettings },
  locationId: string,
): Promise<string | undefined> {
  const keyOf = async ({ integration, sealedSettings }: StoredLocation): Promise<string | undefined> => {
    const { provider, settings } = await open(integration, sealedSettings);
    return credentialsOf(provider, settings);
  };
  const own = await findLocation(pool, locationId);
  if (own === undefined) return undefined;
  try {
    const key = await keyOf(own);
    if (key === undefined) return undefined;
    for (const { locationId: id, integration } of await listLocations(pool)) {
      const other = id === locationId || integration !== own.integration ? undefined : await findLocation(pool, id);
      if (other !== undefined && (await keyOf(other)) === key) return undefined;
    }
    return key;
  } catch (error) {
    // Settings that cannot be opened tell of no grant: it is forgotten when nobody has renewed it for long.
    if (error instanceof WrongLocation) return undefined;
    throw error;
  }
}
