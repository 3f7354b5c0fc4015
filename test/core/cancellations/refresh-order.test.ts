import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { CanonicalOrder } from '../../../src/core/domain/order.ts';
import { pauseLocation, resumeLocation } from '../../../src/core/locations/locations.ts';
import { problemOf } from '../../../src/core/domain/placement-cause.ts';
import { CODE_OF_COUNT } from '../../../src/core/placements/record-order.ts';
import { retryPlacement } from '../../../src/core/placements/retry-placement.ts';
import { failPlacement } from '../../../src/core/placements/placement-outcomes.ts';
import { withClient } from '../../../src/core/postgres/transactions.ts';
import { eraseOrders } from '../../../src/core/retention/erase-members.ts';
import { sampleOrder } from '../../support/sample-order.ts';
import type { System } from '../../support/start-system.ts';
import { until } from '../../support/until.ts';
import { lost, startTills, type Tills } from './start-tills.ts';

let system: System;
let tills: Tills;

beforeAll(async () => {
  ({ system, tills } = await startTills(2));
});
afterEach(() => {
  tills.creates = tills.cancel = undefined;
  system.platform.answer = undefined;
});
afterAll(() => system?.stop());

const isIn = (id: string, wanted: string): Promise<unknown> =>
  until(async () => (await system.placement(id))?.['state'] === wanted);
const refresh = async (id: string): Promise<Record<string, unknown> | undefined> =>
  (await system.query('SELECT * FROM refreshes WHERE service_order_id = $1', [id]))[0];
const noLook = (id: string): Promise<unknown> => until(async () => (await refresh(id)) === undefined);
const changes = (id: string): Promise<unknown[]> =>
  system
    .query('SELECT changes FROM order_changes WHERE service_order_id = $1 ORDER BY seen_at', [id])
    .then((rows) => rows.map((row) => row['changes']));
const change = async (order: CanonicalOrder, about: Partial<CanonicalOrder>): Promise<void> => {
  system.platform.orders.set(order.serviceOrderId, { ...order, ...about });
  expect(await system.signal(order.serviceOrderId)).toBe(204);
};
const asked = (id: string): number => system.platform.requests.filter((each) => each === id).length;
const ticket = (id: string): unknown => tills.tickets.find((each) => each.serviceOrderId === id);
const sentAt = async (locationId: string): Promise<CanonicalOrder> => {
  const order = await system.placeOrder({ locationId });
  await isIn(order.serviceOrderId, 'sent');
  return order;
};

it('an order that waits is placed as the platform has it now, where it is wanted now', async () => {
  await pauseLocation(system.pool, 'exact');
  const order = await system.placeOrder({ locationId: 'exact' });
  const id = order.serviceOrderId;
  await isIn(id, 'held');
  await change(order, { locationId: 'mute', notes: 'no cutlery', fulfillment: { type: 'pickup' } });
  await isIn(id, 'sent');
  await resumeLocation(system.pool, 'exact');
  expect(ticket(id)).toMatchObject({ notes: 'no cutlery', locationId: 'mute' });
  const [code] = await system.query(
    `SELECT ${CODE_OF_COUNT} AS "callOutCode" FROM call_outs WHERE location_id = 'mute'`,
  );
  expect(ticket(id)).toMatchObject({ callOutCode: code?.['callOutCode'] });
  expect(await system.order(id)).toMatchObject({ location_id: 'mute', integration: 'mute' });
  expect(await system.placement(id)).toMatchObject({ location_id: 'mute' });
  expect(await changes(id)).toEqual([]);
});

const skipped = () => ({ order: { skipped: 'dine_in' } });

it('an order that the mapper skips ends without a message, and each signal or retry reads it once', async () => {
  system.platform.answer = skipped;
  const { serviceOrderId: id } = await system.placeOrder({ locationId: 'exact' });
  for (const times of [1, 2, 3]) {
    await until(() => asked(id) === times);
    await isIn(id, 'withdrawn');
    expect(await system.placement(id)).toMatchObject({
      state: 'withdrawn',
      problem: 'the mapper skipped the order: dine_in',
    });
    if (times === 1) expect(await system.signal(id)).toBe(204);
    if (times === 2) expect(await retryPlacement(system.pool, id)).toEqual({ serviceOrderId: id, retry: 'due' });
  }
  const notified = await system.query('SELECT FROM status_events WHERE service_order_id = $1', [id]);
  expect([notified, await system.order(id), ticket(id)]).toEqual([[], undefined, undefined]);
});

it('an order that the mapper skips only now continues unchanged, and is read again: the next answer may be readable', async () => {
  await pauseLocation(system.pool, 'exact');
  const { serviceOrderId: id } = await system.placeOrder({ locationId: 'exact' });
  await isIn(id, 'held');
  system.platform.answer = skipped;
  expect(await system.signal(id)).toBe(204);
  await until(() => asked(id) >= 2);
  await resumeLocation(system.pool, 'exact');
  await isIn(id, 'sent');
  await until(async () => {
    const [refresh] = await system.query('SELECT failures FROM refreshes WHERE service_order_id = $1', [id]);
    return Number(refresh?.['failures']) > 0;
  });
});

it('a worker that has read the old order does not send it', async () => {
  await pauseLocation(system.pool, 'exact');
  const order = await system.placeOrder({ locationId: 'exact' });
  const id = order.serviceOrderId;
  await isIn(id, 'held');
  const lease = crypto.randomUUID();
  await system.query(
    `UPDATE placements SET lease_id = $2, lease_until = now() + interval '1 min' WHERE service_order_id = $1`,
    [id, lease],
  );
  await change(order, { notes: 'no cutlery' });
  await noLook(id);
  expect((await system.placement(id))?.['lease_id']).not.toBe(lease);
  await resumeLocation(system.pool, 'exact');
  await isIn(id, 'sent');
  expect(ticket(id)).toMatchObject({ notes: 'no cutlery' });
});

it('an order that was sent stays as it was, and the difference is kept once, for an operator', async () => {
  const order = await sentAt('exact');
  const id = order.serviceOrderId;
  const [first] = order.items;
  const items = [{ ...first, quantity: 3 }, ...order.items.slice(1)] as CanonicalOrder['items'];
  await change(order, { items, notes: undefined });
  await noLook(id);
  await change(order, { items, notes: undefined });
  await noLook(id);
  const difference = [
    { path: 'items.0.quantity', was: 2, is: 3 },
    { path: 'notes', was: order.notes },
  ];
  expect(await changes(id)).toEqual([difference]);
  const line = system.logged.find((each) => each.includes('changed an order that its POS has') && each.includes(id));
  expect(line).toContain('items.0.quantity');
  expect(line).not.toContain(String(order.notes));
  // What it was before, it is again.
  await change(order, {});
  await noLook(id);
  expect(await changes(id)).toEqual([expect.anything(), []]);
  // What goes with the contents.
  await withClient(system.pool, async (client) => eraseOrders(client, [id], true));
  expect(await changes(id)).toEqual([]);
});

it('what is in doubt is repeated as it was sent: the change waits', async () => {
  let answers: 'lost' | 'placed' = 'lost';
  tills.creates = () => (answers === 'lost' ? lost() : undefined);
  const order = await system.placeOrder({ locationId: 'exact' });
  const id = order.serviceOrderId;
  await isIn(id, 'in_doubt');
  await change(order, { notes: 'no cutlery' });
  await until(async () => Number((await refresh(id))?.['next_attempt_at']) > Date.now() + 3_000);
  // The longer it takes, the less often it is fetched.
  await system.query(
    `UPDATE refreshes SET signalled_at = now() - interval '5 min', next_attempt_at = now() WHERE service_order_id = $1`,
    [id],
  );
  await until(async () => Number((await refresh(id))?.['next_attempt_at']) > Date.now() + 120_000);
  answers = 'placed';
  await isIn(id, 'sent');
  expect(ticket(id)).toMatchObject({ notes: order.notes });
  await system.query('UPDATE refreshes SET next_attempt_at = now() WHERE service_order_id = $1', [id]);
  await noLook(id);
  expect(await changes(id)).toEqual([[{ path: 'notes', was: order.notes, is: 'no cutlery' }]]);
});

it('signals are gathered: however many come, the order is fetched one at a time, and once after the last', async () => {
  const order = await sentAt('exact');
  const id = order.serviceOrderId;
  const before = asked(id);
  await Promise.all(Array.from({ length: 30 }, () => system.signal(id)));
  await change(order, { notes: 'the last word' });
  await noLook(id);
  expect(asked(id) - before).toBeLessThan(30);
  expect((await changes(id)).at(-1)).toMatchObject([{ path: 'notes', is: 'the last word' }]);
});

it('a signal while the order is fetched for the first time has it fetched once more', async () => {
  await system.query(
    `INSERT INTO placements (service_order_id, deadline_at, lease_id, lease_until)
     VALUES ('first-fetch', now() + interval '1 h', gen_random_uuid(), now() + interval '2 s')`,
  );
  await system.signal('first-fetch');
  expect(await refresh('first-fetch')).toBeDefined();
  // Not under way, it is still to be fetched.
  await system.query(`INSERT INTO placements (service_order_id, deadline_at, next_attempt_at)
                      VALUES ('not-fetched', now() + interval '1 h', now() + interval '1 h')`);
  await system.signal('not-fetched');
  expect(await refresh('not-fetched')).toBeUndefined();
});

it('a signal while the order is fetched for the last time has it begin again', async () => {
  const order = sampleOrder({ locationId: 'exact' });
  const claim = { serviceOrderId: order.serviceOrderId, leaseId: crypto.randomUUID() };
  await system.query(
    `INSERT INTO placements (service_order_id, deadline_at, lease_id, lease_until)
     VALUES ($1, now() + interval '1 h', $2, now() + interval '1 h')`,
    [claim.serviceOrderId, claim.leaseId],
  );
  system.platform.orders.set(order.serviceOrderId, order);
  await system.signal(order.serviceOrderId);
  await failPlacement(system.pool, claim, { reason: 'no such order', ...problemOf({ code: 'order_missing' }) });
  await isIn(order.serviceOrderId, 'sent');
  await until(() => system.live(order.serviceOrderId).length === 3);
  expect(system.live(order.serviceOrderId).map(({ memberState }) => memberState)).toEqual(['failed', 'placed', 'sent']);
});

it('an order that has ended, or is erased, is not fetched again', async () => {
  const [ended, erased] = [await sentAt('exact'), await sentAt('exact')];
  await system.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1', [ended.serviceOrderId]);
  await withClient(system.pool, async (client) => eraseOrders(client, [erased.serviceOrderId], true));
  for (const { serviceOrderId: id } of [ended, erased]) {
    const before = asked(id);
    await system.signal(id);
    expect(await refresh(id)).toBeUndefined();
    expect(asked(id)).toBe(before);
  }
});

it.each(['null', { order: { serviceOrderId: 1 } }] as const)(
  '%j at a look is tried again, and given up in the end',
  async (fault) => {
    const order = await sentAt('exact');
    const id = order.serviceOrderId;
    system.platform.answer = (each) => (each === id ? fault : undefined);
    await system.signal(id);
    await until(async () => Number((await refresh(id))?.['failures']) > 0);
    await system.query(
      `UPDATE refreshes SET signalled_at = now() - interval '600 s', next_attempt_at = now(), lease_until = NULL
     WHERE service_order_id = $1`,
      [id],
    );
    await noLook(id);
    expect(system.logged.some((line) => line.includes('could not be refreshed') && line.includes(id))).toBe(true);
    expect(await system.placement(id)).toMatchObject({ state: 'sent' });
  },
);

it('a platform that is down is asked until it is back: the cancel is not lost', async () => {
  const order = await sentAt('exact');
  const id = order.serviceOrderId;
  system.platform.answer = () => 'down';
  await change(order, { cancelledAt: '2027-01-31T18:00:00Z' });
  await until(async () => Number((await refresh(id))?.['failures']) > 0);
  await system.query(`UPDATE refreshes SET signalled_at = now() - interval '1 h' WHERE service_order_id = $1`, [id]);
  system.platform.answer = undefined;
  await until(() => system.live(id).at(-1)?.memberState === 'cancelled');
});

it('a process that dies at a look leaves it to another', async () => {
  const order = await sentAt('exact');
  const id = order.serviceOrderId;
  system.platform.orders.set(id, { ...order, cancelledAt: '2027-01-31T18:00:00Z' });
  await system.query(
    `INSERT INTO refreshes (service_order_id, lease_id, lease_until) VALUES ($1, gen_random_uuid(), now() + interval '1 s')`,
    [id],
  );
  await until(() => system.live(id).at(-1)?.memberState === 'cancelled');
  expect(tills.cancels.filter((each) => each.serviceOrderId === id)).toHaveLength(1);
});

it('a platform that asked us to wait is not asked sooner for another signal', async () => {
  const { serviceOrderId: id } = await sentAt('exact');
  await system.query(
    `INSERT INTO refreshes (service_order_id, next_attempt_at, failures) VALUES ($1, now() + interval '1 min', 1)`,
    [id],
  );
  const before = (await refresh(id))?.['next_attempt_at'];
  await system.signal(id);
  expect((await refresh(id))?.['next_attempt_at']).toEqual(before);
});

it('the newest twenty differences are kept of a platform that changes its mind with every answer', async () => {
  const order = await sentAt('exact');
  const id = order.serviceOrderId;
  await system.query(
    `INSERT INTO order_changes (service_order_id, seen_at, changes)
     SELECT $1, now() - nth * interval '1 s', '[]' FROM generate_series(1, 20) AS nth`,
    [id],
  );
  await change(order, { notes: 'the newest' });
  await noLook(id);
  const kept = await system.query('SELECT changes FROM order_changes WHERE service_order_id = $1 ORDER BY seen_at', [
    id,
  ]);
  expect(kept).toHaveLength(20);
  expect(kept.at(-1)?.['changes']).toMatchObject([{ path: 'notes', is: 'the newest' }]);
});
