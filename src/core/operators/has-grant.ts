import type { Pool } from 'pg';

/** Tells whether anything was granted to an address or a group. */
export async function hasGrant(pool: Pool, email: string | undefined, groups: readonly string[]): Promise<boolean> {
  const { rowCount } = await pool.query(
    'SELECT FROM operator_grants WHERE email = $1::text OR group_name = ANY ($2::text[]) LIMIT 1',
    [email ?? null, groups],
  );
  return rowCount === 1;
}
