import type { Pool } from 'pg';
import { z } from 'zod';
import { Instant } from '../domain/order.ts';

/** A canonical order as it was stored. */
export const Contents = z.looseObject({});
export type Contents = z.infer<typeof Contents>;

/** Reads an order as it was fetched: member data. @returns null before that, and after its erasure */
export async function readContents(pool: Pool, serviceOrderId: string): Promise<Contents | null> {
  const { rows } = await pool.query<{ contents: Contents }>(
    'SELECT contents FROM order_contents WHERE service_order_id = $1',
    [serviceOrderId],
  );
  return rows[0]?.contents ?? null;
}

/**
 * The whole difference between the order as the platform has it and the ticket, as it was seen then, with values: member
 * data. Empty once the platform has it as it was sent again.
 */
export const Change = z.object({
  seenAt: Instant,
  changes: z.array(z.object({ path: z.string(), was: z.unknown(), is: z.unknown() })),
});
type Change = z.infer<typeof Change>;

/** SQL for the fields of a row of `order_changes`, without their values. */
export const CHANGED_PATHS = `(SELECT coalesce(json_agg(each ->> 'path'), '[]') FROM jsonb_array_elements(changes) AS each)`;

export async function readChanges(pool: Pool, serviceOrderId: string): Promise<Change[]> {
  const { rows } = await pool.query<{ change: Change }>(
    `SELECT json_build_object('seenAt', seen_at, 'changes', changes) AS change
     FROM order_changes WHERE service_order_id = $1 ORDER BY seen_at`,
    [serviceOrderId],
  );
  return rows.map(({ change }) => change);
}
