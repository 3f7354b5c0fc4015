import type { Pool } from 'pg';

/** How many the owner's function deletes at a time. */
const BATCH = 10_000;

/** Deletes what operators did more than `keptDays` ago. The service's role has no other right to. */
export async function deleteOldAudit(pool: Pool, keptDays: number): Promise<void> {
  let deleted: number;
  do {
    const { rows } = await pool.query<{ deleted: string }>('SELECT delete_old_audit($1::int) AS deleted', [keptDays]);
    deleted = Number(rows[0]?.deleted ?? 0);
  } while (deleted >= BATCH);
}
