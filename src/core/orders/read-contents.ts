import type { Pool } from 'pg';
import { z } from 'zod';

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
