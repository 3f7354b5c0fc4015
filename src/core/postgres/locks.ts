import type { ClientBase } from 'pg';

/** Advisory locks of this service. A number never changes. */
export const LOCK_PARTITIONS = 7_301;
export const LOCK_END_ORDERS = 7_303;
export const LOCK_DROP_PARTITIONS = 7_304;
export const LOCK_DELETE_UNMATCHED = 7_305;
export const LOCK_ERASE_MEMBERS = 7_306;
export const LOCK_DELETE_TRAFFIC = 7_307;
export const LOCK_SCORE_HOURS = 7_308;
export const LOCK_DELETE_REFUSED = 7_312;
export const LOCK_ASK = 7_313;

/** Takes a lock until the transaction ends. False if another process has it. */
export async function tryLock(client: ClientBase, lock: number): Promise<boolean> {
  const { rows } = await client.query<{ mine: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS mine', [lock]);
  return rows[0]?.mine === true;
}
