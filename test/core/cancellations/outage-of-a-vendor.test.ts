import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { TryAgain } from '../../../src/core/domain/errors.ts';
import { findNotices } from '../../../src/core/notices/find-notices.ts';
import { setContacts } from '../notices/seed-trouble.ts';
import { startTills, type Shop } from './start-tills.ts';

let shop: Shop;
beforeAll(async () => {
  shop = await startTills();
});
afterEach(() => void vi.useRealTimers());
afterAll(() => shop?.system.stop());

const LOCATIONS = 12;
const STEP_S = 150;
const ORDERS_END_S = 2_700;
const OUTAGE_S = 3_600;
const END_S = 6_000;
const down = (): TryAgain => new TryAgain('the POS answers 503', { sent: false, httpStatus: 503 });

/** The columns with the time of something that has happened or will happen. */
const TIMES = {
  placements: [
    'deadline_at',
    'signalled_at',
    'request_ended_at',
    'requested_at',
    'next_attempt_at',
    'doubt_since',
    'finished_at',
  ],
  placement_attempts: ['started_at', 'ended_at'],
  cancellations: ['deadline_at', 'next_attempt_at', 'requested_at'],
  notice_messages: ['created_at'],
  notices: ['since', 'created_at'],
};
async function pass(seconds: number): Promise<void> {
  for (const [table, columns] of Object.entries(TIMES)) {
    const earlier = columns.map((column) => `${column} = ${column} - make_interval(secs => $1)`);
    await shop.system.query(`UPDATE ${table} SET ${earlier.join()}`, [seconds]);
  }
  vi.advanceTimersByTime(seconds * 1_000);
}

it('after an outage of an hour, no failed order has an open ticket, and no restaurant got two messages in 15 minutes', async () => {
  const { system, tills, place } = shop;
  for (let nth = 0; nth < LOCATIONS; nth += 1) {
    await system.addLocation(`of-it-${nth}`, {}, 'exact');
    await setContacts(system, `of-it-${nth}`, [{ via: 'email', email: 'kitchen@club.example' }]);
  }
  vi.useFakeTimers({ toFake: ['performance'] });
  const taken = new Set<string>();
  const cancelled = new Set<string>();
  let isOut = true;
  let orders = 0;
  tills.creates = ({ serviceOrderId: id }) => {
    // Every other order is taken before the answer is lost.
    if (!isOut || orders % 2 === 0) taken.add(id);
    return isOut ? down() : { providerOrderId: `pos-${id}` };
  };
  tills.cancel = (id) => {
    if (isOut) return down();
    if (!taken.has(id)) return 'absent';
    cancelled.add(id);
    return 'cancelled';
  };
  for (let now = 0; now < END_S; now += STEP_S) {
    isOut = now < OUTAGE_S;
    const placed = now < ORDERS_END_S ? 4 : 0;
    for (let nth = 0; nth < placed; nth += 1) {
      await place({ locationId: `of-it-${orders % LOCATIONS}` });
      orders += 1;
    }
    for (let round = 0; round < 4; round += 1) {
      for (const worker of ['placements', 'cancellations', 'sweep of cancellations'] as const)
        await system.round(worker);
    }
    await findNotices(system.pool);
    await pass(STEP_S);
  }
  const rows = await system.query(
    `SELECT service_order_id AS id, p.state, c.state AS cancel, o.rank
     FROM placements p JOIN orders o USING (service_order_id) LEFT JOIN cancellations c USING (service_order_id)`,
  );
  expect(rows).toHaveLength(orders);
  const failed = rows.filter(({ rank }) => rank === 70);
  expect(failed.length).toBeGreaterThan(5);
  expect(failed.filter(({ id }) => taken.has(String(id)) && !cancelled.has(String(id)))).toEqual([]);
  expect(rows.filter(({ state, cancel }) => state === 'in_doubt' && cancel !== 'by_phone')).toEqual([]);
  const gaps = await system.query(
    `SELECT extract(epoch FROM created_at - lag(created_at) OVER (PARTITION BY location_id, step ORDER BY created_at))::int
            AS seconds FROM notice_messages`,
  );
  expect(gaps.length).toBeGreaterThan(LOCATIONS);
  expect(gaps.filter(({ seconds }) => seconds !== null && Number(seconds) < 900)).toEqual([]);
});
