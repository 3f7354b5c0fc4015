import { expect, it } from 'vitest';
import { withOpen } from '../../../src/core/orders/open-at-locations.ts';
import { testPool } from '../../support/test-pool.ts';

const pool = testPool();

it('a location has the newest orders that did not reach its POS, until a later order is sent', async () => {
  const open = async () => (await withOpen(pool, [{ locationId: 'club-1' }]))[0]?.open;
  const failing = async (): Promise<unknown> => (await open())?.failing;
  const place = (id: string, minutesAgo: number, state: string, cause: string | null = null): Promise<unknown> =>
    pool.query(
      `INSERT INTO placements (service_order_id, location_id, deadline_at, signalled_at, state, cause, problem, finished_at)
       VALUES ($1, 'club-1', now() + interval '1 h', now() - make_interval(mins => $2::int), $3, jsonb_build_object('code', $4::text),
               $4, CASE WHEN $3 IN ('sent', 'failed') THEN now() END)`,
      [id, minutesAgo, state, cause],
    );
  await place('failed-yesterday', 25 * 60, 'held', 'pos_refused_us');
  await place('failed-before', 60, 'failed', 'pos_rejected_order');
  await place('sent-1', 50, 'sent');
  await place('paused', 40, 'held', 'location_paused');
  await place('in-doubt', 39, 'in_doubt', 'pos_silent');
  await place('waits', 38, 'waiting');
  expect(await failing()).toBeNull();
  await place('failed', 30, 'failed', 'pos_rejected_order');
  await place('retried', 20, 'waiting', 'pos_failing');
  await place('held', 10, 'held', 'pos_refused_us');
  expect(await failing()).toEqual({ orders: 3, cause: { code: 'pos_refused_us' } });
  await place('sent-2', 5, 'sent');
  expect(await failing()).toBeNull();
  // A later order was sent, and these still wait for a person. The pause holds another one.
  expect(await open()).toMatchObject({ held: 2 });
});
