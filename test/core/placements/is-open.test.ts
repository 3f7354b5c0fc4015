import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, it, vi } from 'vitest';
import { fetchOnce, recordMissing } from '../../../src/core/placements/refetch-order.ts';
import { recordOrder } from '../../../src/core/placements/record-order.ts';
import { recordSignal } from '../../../src/core/signals/record-signals.ts';
import { beginAttempt } from '../../../src/core/transitions/record-attempt.ts';
import type { Location } from '../../../src/core/locations/locations.ts';
import { standard } from '../../../src/providers/standard/index.ts';
import { createDatabase } from '../../../world/postgres/create-database.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';

const OPEN = 1_000;

it('a placement is found by its id with few reads, however many were opened since the statement was planned', async () => {
  const options = '-c plan_cache_mode=force_generic_plan -c enable_seqscan=off';
  // One connection, which plans each statement once.
  const pool = new pg.Pool({ connectionString: await createDatabase(), max: 1, options });
  try {
    const place = async (): Promise<void> => {
      const order = sampleOrder();
      const claim = { serviceOrderId: order.serviceOrderId, leaseId: randomUUID() };
      await recordSignal(pool, claim.serviceOrderId, 60);
      await pool.query({
        name: 'lease',
        text: `UPDATE placements SET lease_id = $2, lease_until = now() + interval '1 min'
               WHERE service_order_id = $1`,
        values: [claim.serviceOrderId, claim.leaseId],
      });
      await recordMissing(pool, claim);
      expect(await recordOrder(pool, claim, { order, leftOut: [] }, 60)).toBeDefined();
      const location: Location = { locationId: 'club-1', integration: 'standard', provider: standard, settings: {} };
      expect(await beginAttempt(pool, claim, 'createOrder', location)).toBe(1);
    };
    await place();
    await pool.query(
      `INSERT INTO placements (service_order_id, deadline_at)
       SELECT 'open-' || nth, now() FROM generate_series(1, ${OPEN}) AS nth`,
    );
    await pool.query('BEGIN');
    await place();
    const { rows } = await pool.query<{ read: number }>(
      `SELECT idx_tup_fetch::int AS read FROM pg_stat_xact_user_tables WHERE relname = 'placements'`,
    );
    await pool.query('COMMIT');
    expect(rows[0]?.read).toBeLessThan(OPEN);
  } finally {
    await pool.end();
  }
});

it('the time for a missing order counts from the first request, not from its slow answer', async () => {
  const pool = new pg.Pool({ connectionString: await createDatabase() });
  const waits = vi.spyOn(performance, 'now');
  try {
    const claim = { serviceOrderId: 'slow', leaseId: randomUUID(), locationId: null };
    await recordSignal(pool, claim.serviceOrderId, 900);
    await pool.query('UPDATE placements SET lease_id = $1', [claim.leaseId]);
    const askedFor = (seconds: number): ReturnType<typeof fetchOnce> => {
      const refetch = async (): Promise<undefined> => {
        await pool.query(`UPDATE placements SET missing_since = missing_since - make_interval(secs => $1)`, [seconds]);
        waits.mockReturnValue(performance.now() + seconds * 1_000);
      };
      return fetchOnce({ pool, refetch, observe() {}, missingS: 60 } as never, claim as never);
    };
    expect(await askedFor(0)).toMatchObject({ do: 'try later' });
    // Seventy seconds pass during the question.
    expect(await askedFor(70)).toMatchObject({ do: 'try later' });
    expect(await askedFor(0)).toMatchObject({ do: 'fail', cause: { code: 'order_missing' } });
  } finally {
    waits.mockRestore();
    await pool.end();
  }
});
