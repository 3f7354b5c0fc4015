import type { ClientBase } from 'pg';

/** Advisory locks of this service, by what they guard. Any numbers, once given, stay. */
export const LOCK_PARTITIONS = 7_301;
export const LOCK_SWEEP_PARKED = 7_302;
export const LOCK_END_ORDERS = 7_303;

/** Takes a lock until the transaction ends, unless another process has it now. */
export async function tryLock(client: ClientBase, lock: number): Promise<boolean> {
  const { rows } = await client.query<{ mine: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS mine', [lock]);
  return rows[0]?.mine === true;
}
