import type { Pool } from 'pg';

/**
 * SQL of an order's next sequence: above its last one, and above the floor where there is one. A restore or a failover
 * forgets numbers that readers have seen, and they would drop the next messages as repeats.
 * @param last SQL of the order's last sequence
 */
export function nextSequence(last: string): string {
  // Read once a statement. Without a floor it is null, and does not count.
  // guard: sequence-floor
  return `greatest(${last}, (SELECT floor FROM sequence_floor WHERE id)) + 1`;
}

/**
 * Raises the floor above all numbers that readers can have seen, those that this database has forgotten included. So it
 * goes by the clock and not by what is stored: twenty a minute, since an order has fewer messages of its steps than half
 * of that, and one a minute of its estimate.
 * @returns the new floor
 */
export async function raiseSequences(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ floor: number }>(
    `INSERT INTO sequence_floor AS f (floor) VALUES ((extract(epoch FROM now()) / 3)::int)
     ON CONFLICT (id) DO UPDATE SET floor = greatest(f.floor + 20, excluded.floor)
     RETURNING floor`,
  );
  return rows[0]?.floor ?? 0;
}
