import type { Pool } from 'pg';
import { Id } from '../core/domain/order.ts';
import { listTokens } from '../core/locations/webhook-tokens.ts';
import type { Action } from '../core/operators/audit.ts';
import { findWebhook } from '../core/replay/stored-webhook.ts';
import type { Access, Options } from './operation.ts';

type Thing = 'order' | 'webhook' | 'location';

export function isThing(of: Access['of']): of is Thing {
  return of === 'order' || of === 'webhook' || of === 'location';
}

/**
 * Finds the location of the order, webhook or location in the input.
 * @returns undefined if it does not exist. Only a location comes with its groups
 */
export async function findThing(
  pool: Pool,
  of: Thing,
  { serviceOrderId, webhookId, locationId }: Options,
): Promise<{ locationId: string | null; groups?: readonly string[] } | undefined> {
  if (of === 'webhook') return findWebhook(pool, String(webhookId));
  const id = of === 'order' ? serviceOrderId : locationId;
  // Checked here, because Postgres throws an error for a text with a NUL character.
  if (!Id.safeParse(id).success) return undefined;
  const { rows } = await pool.query<{ locationId: string | null; groups?: readonly string[] }>(
    of === 'order'
      ? `SELECT location_id AS "locationId" FROM placements WHERE service_order_id = $1::text
         UNION ALL SELECT location_id FROM past_orders WHERE service_order_id = $1::text
         UNION ALL SELECT location_id FROM find_tombstone($1::text) LIMIT 1`
      : 'SELECT location_id AS "locationId", groups FROM locations WHERE location_id = $1::text',
    [id],
  );
  return rows[0];
}

/**
 * Makes the action that the audit records before the operation begins. A dry run changes nothing, so only its look at
 * member data is an action. There is none if the order, webhook or location does not exist.
 * @param about returns further fields of the action
 */
export async function actOf(
  pool: Pool,
  access: Access,
  { params, query, isDry }: { params: Options; query: Options; isDry: boolean },
  about?: () => Promise<Partial<Action>>,
): Promise<Action | undefined> {
  const { of, does, reveals } = access;
  const look = reveals?.when(query) === true ? reveals.action : undefined;
  // guard: dry-look-recorded
  const action = isDry ? look : (does ?? look);
  if (action === undefined) return undefined;
  const { tokenId, sessionId, grantId } = params as Record<string, string | undefined>;
  const done = { action, ...idsOf(params), subject: tokenId ?? sessionId ?? grantId };
  if (!isThing(of)) return { ...done, ...(await about?.()) };
  const found = await findThing(pool, of, params);
  if (found === undefined) return undefined;
  const { locationId } = found;
  if (tokenId === undefined || locationId === null) return { ...done, locationId, ...(await about?.()) };
  // The id of another location's token is left out, because people who read the audit of this location would see it.
  const isOfLocation = (await listTokens(pool, locationId)).some((each) => each.tokenId === tokenId.toLowerCase());
  return { ...done, locationId, subject: isOfLocation ? tokenId : undefined };
}

export function idsOf(params: Options): Pick<Action, 'serviceOrderId' | 'webhookId'> {
  const { serviceOrderId, webhookId } = params as Record<string, string | undefined>;
  return { serviceOrderId, webhookId };
}
