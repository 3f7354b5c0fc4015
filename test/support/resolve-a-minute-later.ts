import type pg from 'pg';
import { resolveNotThere } from '../../src/core/placements/resolve-doubt.ts';

type Queried = { query: pg.Pool['query'] | ((sql: string, values: unknown[]) => Promise<unknown>) };

/** Lets a minute pass since the last request for the order, after which a missing ticket is believed. */
export const aMinuteLater = async (database: Queried, serviceOrderId: string): Promise<void> =>
  void (await database.query(
    `UPDATE placements SET request_ended_at = request_ended_at - interval '1 min' WHERE service_order_id = $1`,
    [serviceOrderId],
  ));

/** Says that there is no ticket, a minute after the last request. */
export async function resolveAMinuteLater(
  system: { pool: pg.Pool },
  serviceOrderId: string,
): ReturnType<typeof resolveNotThere> {
  await aMinuteLater(system.pool, serviceOrderId);
  return resolveNotThere(system.pool, serviceOrderId);
}
