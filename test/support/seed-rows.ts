import type pg from 'pg';

type Row = Record<string, unknown>;

/** Inserts rows that have the columns of the first. Times may be texts, such as `now`. */
export async function insertRows(pool: Pick<pg.Pool, 'query'>, table: string, rows: readonly Row[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {}).join();
  await pool.query(
    `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM jsonb_populate_recordset(NULL::${table}, $1)`,
    [JSON.stringify(rows)],
  );
}

/** Inserts orders of club-1 that were fetched, and their placements. @param about columns that differ or come besides */
export async function seedOrders(
  pool: Pick<pg.Pool, 'query'>,
  ids: readonly string[],
  about: { locationId?: string; order?: Row; placement?: Row } = {},
): Promise<void> {
  const { locationId: location_id = 'club-1', order = {}, placement = {} } = about;
  const placements = ids.map((service_order_id) => ({
    service_order_id,
    location_id,
    deadline_at: 'now',
    ...placement,
  }));
  await insertRows(pool, 'placements', placements);
  const orders = ids.map((service_order_id) => ({
    service_order_id,
    call_out_code: 'K472',
    location_id,
    integration: 'standard',
    fulfillment: 'pickup',
    ...order,
  }));
  await insertRows(pool, 'orders', orders);
}
