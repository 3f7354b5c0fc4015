import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { recordPoll } from '../../../src/core/polling/status-poller.ts';
import { GiveUp, TryAgain } from '../../../src/core/domain/errors.ts';
import type { StatusEvent } from '../../../src/core/domain/order.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import type { Scorecard } from '../../../src/core/orders/read-scorecards.ts';
import { LOCK_SCORE_HOURS, tryLock, withClient } from '../../../src/core/postgres/transactions.ts';
import { scoreHours } from '../../../src/core/orders/score-hours.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../../world/system/ask-operator.ts';
import { post, startSystem, type System } from '../../../world/system/start-system.ts';

/** A POS that has every order's fate in its notes. */
const moody: Provider = {
  integration: 'moody',
  settings: z.object({}),
  deduplicates: true,
  createOrder: async ({ notes, serviceOrderId }) => {
    if (notes === 'refuse') throw new GiveUp('no', { reason: 'We are closed', httpStatus: 409 });
    if (notes === 'silence') throw new TryAgain('no answer', { sent: true });
    return { providerOrderId: `pos-${serviceOrderId}` };
  },
  translateWebhook: ({ body }) => JSON.parse(body.toString()) as StatusEvent[],
};

let system: System;
let operator: Operator;
beforeAll(async () => {
  system = await startSystem({ stepped: 'all', providers: [moody], env: { OPERATOR_TOKEN } });
  operator = await askOperator(system.urls[0] ?? '');
  for (const locationId of ['good', 'bad']) await system.addLocation(locationId, {}, 'moody');
});
afterAll(() => system.stop());

const place = async (locationId: string, notes: string, state = 'sent'): Promise<string> => {
  const { serviceOrderId } = await system.placeOrder({ locationId, notes });
  await system.round('placements');
  expect(await system.placement(serviceOrderId)).toMatchObject({ state });
  return serviceOrderId;
};
const report = async (locationId: string, serviceOrderId: string, ...statuses: string[]): Promise<void> => {
  const url = await system.webhookUrl(locationId);
  for (const status of statuses) await post(url, [{ status, nativeStatus: status, serviceOrderId }]);
};
const read = async (query: string): Promise<Scorecard[]> => {
  const { status, body } = await operator.get(`/scorecards${query}`);
  expect(status).toBe(200);
  return body['scorecards'] as Scorecard[];
};

it('a scorecard counts orders, refusals and delays for each integration and location', async () => {
  const [quick, once, quiet] = [await place('good', ''), await place('good', ''), await place('bad', '')];
  await report('good', quick, 'received', 'received', 'ready', 'in_progress', 'completed', 'cancelled');
  await report('good', once, 'received');
  const answer: StatusEvent = { status: 'ready', nativeStatus: 'READY', serviceOrderId: quiet };
  const about = { serviceOrderId: quiet, locationId: 'bad', integration: 'moody', providerOrderId: null };
  await recordPoll(system.pool, { ...about, order: {} as never }, [answer]);
  await place('bad', 'refuse', 'failed');
  await place('bad', 'silence', 'in_doubt');
  // Its POS took six minutes.
  await system.query(`UPDATE placements SET finished_at = finished_at - interval '6 m' WHERE service_order_id = $1`, [
    once,
  ]);
  await scoreHours(system.pool, 0);
  await scoreHours(system.pool, 0);

  const week = { orders: 5, accepted: 3, missing: 1, duplicates: 1, late: 1, conflicts: 1 };
  expect(await read('')).toMatchObject([
    { integration: 'moody', locationId: null, week, day: { ...week, refusals: { pos_rejected_order: 1 } } },
  ]);
  const [bad, good, ...others] = await read('?integration=moody');
  expect(others).toEqual([]);
  expect(bad).toMatchObject({ locationId: 'bad', day: { orders: 3, accepted: 1, missing: 1 } });
  expect(good).toMatchObject({ locationId: 'good', day: { orders: 2, accepted: 2, downMinutes: 0, refusals: {} } });
  expect(good?.day.acceptanceSeconds.p95).toBeGreaterThan(300);
  expect(good?.day.acceptanceSeconds.p50).toBeLessThan(10);
  expect(await read('?location=bad')).toEqual([bad]);
  expect(await read('?location=nowhere')).toEqual([]);
});

it('a minute counts as down if the POS answered none of its calls', async () => {
  await system.query(`UPDATE placement_attempts SET started_at = date_trunc('hour', now())`);
  await scoreHours(system.pool, 0);
  expect(await read('?location=bad')).toMatchObject([{ day: { downMinutes: 0 } }]);
  await system.query(
    `UPDATE placement_attempts SET started_at = date_trunc('hour', now()) + interval '1 m' WHERE outcome = 'TryAgain'`,
  );
  await scoreHours(system.pool, 0);
  expect(await read('?location=bad')).toMatchObject([{ day: { downMinutes: 1 } }]);
});

it('an hour is counted by only one process, and only once in ten minutes', async () => {
  const ordersOf = async (): Promise<unknown> => (await read('?location=bad'))[0]?.day.orders;
  await place('bad', '');
  await withClient(system.pool, async (other) => {
    await other.query('BEGIN');
    expect(await tryLock(other, LOCK_SCORE_HOURS)).toBe(true);
    await scoreHours(system.pool, 0);
    await other.query('COMMIT');
  });
  expect(await ordersOf()).toBe(3);
  await scoreHours(system.pool, 0);
  expect(await ordersOf()).toBe(4);
  await place('bad', '');
  await scoreHours(system.pool, 540);
  expect(await ordersOf()).toBe(4);
});

it('orders of two days ago count for the week only, and hours over a week old are deleted', async () => {
  const [before] = await read('?location=good');
  await system.query(
    `UPDATE scorecard_hours SET hour = hour - interval '2 d' WHERE location_id = 'good';
     UPDATE placements SET signalled_at = signalled_at - interval '2 d' WHERE location_id = 'good'`,
  );
  const [after] = await read('?location=good');
  expect(after?.week).toEqual(before?.week);
  expect(after?.day).toMatchObject({ orders: 0, accepted: 0, acceptanceSeconds: { p50: null }, refusals: {} });
  await system.query(`UPDATE scorecard_hours SET hour = hour - interval '7 d' WHERE location_id = 'good'`);
  expect(await read('?location=good')).toEqual([]);
  await scoreHours(system.pool, 0);
  expect(await system.query(`SELECT FROM scorecard_hours WHERE location_id = 'good'`)).toEqual([]);
});
