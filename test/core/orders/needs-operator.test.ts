import { beforeAll, expect, it } from 'vitest';
import { recordAttention } from '../../../src/core/orders/attention-events.ts';
import { listOrders } from '../../../src/core/orders/list-orders.ts';
import { deleteOldCases } from '../../../src/core/orders/needs-operator.ts';
import { readBoard } from '../../../src/core/orders/read-board.ts';
import { sampleAttention } from '../../../src/core/orders/sample-attention.ts';
import { sampleBacklog } from '../../../src/core/orders/sample-backlog.ts';
import { testPool } from '../../support/test-pool.ts';

const pool = testPool({ max: 2 });

/** A placement, and its cancellation. `next`: when each is tried again. */
type Kind = { state: string; cause?: string; next?: string; cancel?: string; cancelNext?: string; change?: string };
const KINDS: Record<string, Kind & { needs: boolean }> = {
  'held by wrong settings': { state: 'held', cause: 'wrong_settings', needs: true },
  'held without a cause': { state: 'held', needs: true },
  'a test order that is being placed': { state: 'held', next: 'infinity', needs: false },
  'held by a pause': { state: 'held', cause: 'location_paused', needs: false },
  'held by a pause of the POS': { state: 'held', cause: 'location_paused_by_pos', needs: false },
  'in doubt for a person': { state: 'in_doubt', next: 'infinity', needs: true },
  'in doubt, tried again': { state: 'in_doubt', needs: false },
  'to be cancelled by phone': { state: 'sent', cancel: 'by_phone', cancelNext: 'infinity', needs: true },
  'cancel in doubt for a person': { state: 'sent', cancel: 'in_doubt', cancelNext: 'infinity', needs: true },
  'cancel in doubt, polled': { state: 'sent', cancel: 'in_doubt', needs: false },
  'held, and to be cancelled by phone': { state: 'held', cancel: 'by_phone', cancelNext: 'infinity', needs: true },
  sent: { state: 'sent', needs: false },
  'sent, and changed': { state: 'sent', change: 'not_applied', needs: true },
  'sent, and the change is applied': { state: 'sent', change: 'applied', needs: false },
  'changed, and to be cancelled by phone': {
    state: 'sent',
    change: 'not_applied',
    cancel: 'by_phone',
    cancelNext: 'infinity',
    needs: true,
  },
};

beforeAll(async () => {
  for (const [id, kind] of Object.entries(KINDS)) {
    const { state, cause, next = 'tomorrow', cancel, cancelNext = 'tomorrow', change } = kind;
    await pool.query(
      `WITH p AS (
         INSERT INTO placements (service_order_id, location_id, state, cause, deadline_at, next_attempt_at, finished_at)
         VALUES ($1, 'club-1', $2, jsonb_build_object('code', $3::text), now(), $4, CASE $2 WHEN 'sent' THEN now() END)
       ), c AS (
         INSERT INTO cancellations (service_order_id, location_id, requested_by, state, deadline_at, next_attempt_at)
         SELECT $1, 'club-1', 'platform', $5::text, now(), $6 WHERE $5::text IS NOT NULL
       )
       INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, cancellation, change, changed_at)
       VALUES ($1, 'K472', 'club-1', 'pickup', CASE WHEN $5::text IS NOT NULL THEN 'requested' END, $7, now())`,
      [id, state, cause ?? null, next, cancel ?? null, cancelNext, change ?? null],
    );
  }
});
const NEEDY = Object.keys(KINDS).filter((id) => KINDS[id]?.needs);
type Listed = { serviceOrderId: string; needsOperator: boolean }[];
const needyOf = (orders: Listed): string[] =>
  orders.filter(({ needsOperator }) => needsOperator).map(({ serviceOrderId }) => serviceOrderId);
const list = async (filter: Parameters<typeof listOrders>[1]): Promise<Listed> =>
  (await listOrders(pool, filter, { limit: 50 }))?.orders ?? [];

it('the list, its filter, the board and the metrics agree which orders need an operator', async () => {
  expect(new Set(needyOf(await list({})))).toEqual(new Set(NEEDY));
  for (const locations of [undefined, ['club-1']]) {
    const found = await list({ needs: 'operator', locations });
    expect(found.map(({ serviceOrderId }) => serviceOrderId).toSorted()).toEqual(NEEDY.toSorted());
    expect(needyOf(found)).toHaveLength(NEEDY.length);
  }
  expect(await list({ needs: 'operator', locations: ['club-2'] })).toEqual([]);
  expect(new Set(needyOf((await readBoard(pool)).orders))).toEqual(new Set(NEEDY));
  const { held, paused, forOperator, byPhone } = await sampleBacklog(pool, { PLACEMENT_DEADLINE_S: 900 });
  expect({ held, paused, forOperator, byPhone }).toEqual({ held: 3, paused: 2, forOperator: 1, byPhone: 4 });
});

it('the board, the pager and the metrics agree which orders only a person can cancel', async () => {
  const ids = Object.keys(KINDS).filter((id) => KINDS[id]?.cancelNext === 'infinity');
  const { cancelByPhone, cancelsByPhone } = await sampleAttention(pool);
  expect(new Set(cancelByPhone.map(({ serviceOrderId }) => serviceOrderId))).toEqual(new Set(ids));
  expect(cancelsByPhone).toEqual([{ locationId: 'club-1', integration: null, count: ids.length }]);
  await recordAttention(pool);
  const { rows } = await pool.query<{ id: string }>(
    `SELECT about ->> 'serviceOrderId' AS id FROM attention_items WHERE kind = 'cancel_by_phone'`,
  );
  expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(ids));
});

it('the board shows that a cancel needs a person, even if the order does not change', async () => {
  const { seen } = await readBoard(pool);
  await pool.query(
    `UPDATE cancellations SET state = 'by_phone', next_attempt_at = 'infinity' WHERE service_order_id = $1`,
    ['cancel in doubt, polled'],
  );
  expect(needyOf((await readBoard(pool, seen)).orders)).toContain('cancel in doubt, polled');
});

it('a case is deleted after a day if it has neither holder nor snooze, or if its order needs no operator', async () => {
  await pool.query(`UPDATE orders SET ended_at = now() WHERE service_order_id IN ('sent', 'in doubt for a person')`);
  await pool.query(
    `INSERT INTO cases (service_order_id, holder, snoozed_until, changed_at)
     VALUES ('sent', 'Anna', NULL, now() - interval '25 h'), ('held by a pause', 'Anna', NULL, now() - interval '25 h'),
            ('in doubt for a person', 'Anna', NULL, now() - interval '25 h'), ('closed', NULL, NULL, now() - interval '25 h'),
            ('closed just now', NULL, NULL, now()), ('snoozed', NULL, now() + interval '1 h', now() - interval '25 h')`,
  );
  await deleteOldCases(pool);
  const { rows } = await pool.query<{ id: string }>('SELECT service_order_id AS id FROM cases ORDER BY 1');
  expect(rows.map(({ id }) => id)).toEqual(['closed just now', 'held by a pause', 'in doubt for a person', 'snoozed']);
});
