/** A platform empties an order when it cancels it, as Vendure does: the order cannot be read any more. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { CanonicalOrder } from '../../../src/core/domain/order.ts';
import { pauseLocation, resumeLocation } from '../../../src/core/kitchens/pause-location.ts';
import { toMemberSnapshot } from '../../../src/core/domain/member-message.ts';
import { readLive } from '../../../src/core/live/read-live.ts';
import { listOrders } from '../../../src/core/orders/list-orders.ts';
import { readBoard } from '../../../src/core/orders/read-board.ts';
import { showOrder } from '../../../src/core/orders/show-order.ts';
import { retryPlacement } from '../../../src/core/placements/retry-placement.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { makePast } from '../../support/make-past.ts';
import type { System } from '../../../world/system/start-system.ts';
import { startTills, type Shop } from './start-tills.ts';

let shop: Shop;
let system: System;
beforeAll(async () => {
  shop = await startTills();
  ({ system } = shop);
});
afterEach(() => shop.rest());
afterAll(() => system?.stop());

/** What the platform answers after the cancel. */
const emptied = ({ items, money }: CanonicalOrder): Partial<CanonicalOrder> => ({
  items: items.map((item) => ({ ...item, quantity: 0 })),
  money: { ...money, subtotal: 0, total: 0, discount: 700 },
  cancelledAt: '2027-01-31T18:00:00Z',
  cancelReason: 'changed my mind',
});
const cancel = (order: CanonicalOrder): Promise<void> => shop.change(order, emptied(order));
const ticketOf = (id: string): unknown => shop.tills.tickets.find((each) => each.serviceOrderId === id);
const NEVER_READ = { state: 'withdrawn', location_id: null, cause: { code: 'order_cancelled' } };

it('its ticket is cancelled at the POS, with the reason', async () => {
  const { order, id } = await shop.place({ locationId: 'exact' }, 'sent');
  await cancel(order);
  for (const worker of ['refreshes', 'cancellations'] as const) await system.round(worker);
  expect(shop.tills.cancels.find((each) => each.serviceOrderId === id)).toMatchObject({ reason: 'changed my mind' });
  expect((await shop.told(id)).at(-1)).toBe('cancelled');
  expect(await system.query('SELECT FROM order_changes WHERE service_order_id = $1', [id])).toEqual([]);
});

it('it is withdrawn if it waits for its location', async () => {
  await pauseLocation(system.pool, 'exact');
  const { order, id } = await shop.place({ locationId: 'exact' }, 'held');
  await resumeLocation(system.pool, 'exact');
  await cancel(order);
  for (const worker of ['refreshes', 'placements'] as const) await system.round(worker);
  expect(await shop.state(id)).toBe('withdrawn');
  expect((await shop.told(id)).at(-1)).toBe('cancelled');
  expect(ticketOf(id)).toBeUndefined();
});

it('it ends without a ticket if it was never read, and its member is notified once, however often it is signalled', async () => {
  const order = sampleOrder({ locationId: 'exact' });
  const id = order.serviceOrderId;
  for (const _signalled of [1, 2]) {
    await cancel(order);
    for (const worker of ['placements', 'refreshes'] as const) await system.round(worker);
  }
  expect(await retryPlacement(system.pool, id)).toMatchObject({ cause: { code: 'already_over' } });
  expect(await system.placement(id)).toMatchObject(NEVER_READ);
  expect(await shop.told(id)).toEqual(['cancelled']);
  expect(system.live(id)).toMatchObject([{ sequence: 1, status: 'cancelled', reasonCode: 'member_cancelled' }]);
  expect(system.platform.requests.filter((each) => each === id)).toHaveLength(1);
  expect(ticketOf(id)).toBeUndefined();

  const live = (await readLive(system.pool, new Map([[id, undefined]]))).get(id);
  expect(live?.ended).toBe(true);
  expect(live && toMemberSnapshot(live.state)).toMatchObject({
    sequence: 1,
    memberState: 'cancelled',
    reasonCode: 'member_cancelled',
  });
  const seen = { placement: 'withdrawn', needsOperator: false, memberState: 'cancelled', status: 'cancelled' };
  const listed = async (status: 'cancelled' | 'failed') =>
    (await listOrders(system.pool, { status }, { limit: 100 }))?.orders.find((each) => each.serviceOrderId === id);
  expect(await listed('cancelled')).toMatchObject({ ...seen, reasonCode: 'member_cancelled' });
  expect(await listed('failed')).toBeUndefined();
  expect((await readBoard(system.pool)).orders.find((each) => each.serviceOrderId === id)).toMatchObject(seen);
  const story = {
    notified: 'The member was notified that the order was cancelled.',
    placement: { state: 'withdrawn' },
  };
  expect(await showOrder(system.pool, id)).toMatchObject(story);
  // An order that was never read is past once its problem is erased.
  await system.query('UPDATE placements SET problem = NULL WHERE service_order_id = $1', [id]);
  await makePast(system, id);
  expect(await system.placement(id)).toBeUndefined();
  expect(await listed('cancelled')).toMatchObject({ ...seen, reasonCode: 'member_cancelled' });
  expect(await listed('failed')).toBeUndefined();
});

it('it is held no longer if it could not be read before', async () => {
  const order = sampleOrder({ locationId: 'exact' });
  const id = order.serviceOrderId;
  await shop.change(order, { items: [] });
  await system.round('placements');
  expect(await shop.state(id)).toBe('held');
  await cancel(order);
  await system.round('placements');
  expect(await system.placement(id)).toMatchObject(NEVER_READ);
  expect(await shop.told(id)).toEqual(['cancelled']);
});

it('a person decides if it may have a ticket from before a restore', async () => {
  const order = sampleOrder({ locationId: 'exact' });
  const id = order.serviceOrderId;
  await system.query(
    `INSERT INTO placements (service_order_id, state, deadline_at, request_ended_at) VALUES ($1, 'in_doubt', now() + interval '1 h', now())`,
    [id],
  );
  await cancel(order);
  await system.round('placements');
  expect(await listOrders(system.pool, { needs: 'operator' }, { limit: 100 })).toMatchObject({
    orders: expect.arrayContaining([
      expect.objectContaining({ serviceOrderId: id, placement: 'in_doubt', cause: { code: 'order_cancelled' } }),
    ]),
  });
  expect(await shop.told(id)).toEqual([]);
});

it('another order of the platform is not cancelled in its place', async () => {
  const { order, id } = await shop.place({ locationId: 'exact' }, 'sent');
  const other = sampleOrder({ locationId: 'exact' });
  system.platform.answer = (asked) => (asked === id ? { order: { ...other, ...emptied(other) } } : undefined);
  await cancel(order);
  await system.round('refreshes');
  expect(await system.order(id)).toMatchObject({ cancellation: null, ended_at: null });
});
