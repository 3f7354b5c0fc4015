import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LiveMessage } from '../../../src/core/domain/live-message.ts';
import { learn, recordLost, type LostOrder } from '../../../src/core/orders/recover-orders.ts';
import { makePast } from '../../support/make-past.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { startPos, type Pos } from '../../../world/pos/start-pos.ts';
import { startSystem, type System } from '../../../world/system/start-system.ts';

let system: System;
let pos: Pos;
let other: Pos;
beforeAll(async () => {
  const starting = startSystem({ stepped: ['placements', 'refreshes'] });
  [system, pos, other] = await Promise.all([starting, startPos(), startPos()]);
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  await system.addLocation('club-2', { ordersUrl: other.ordersUrl });
});
afterAll(() => Promise.all([system?.stop(), pos?.stop(), other?.stop()]));

const FAILED_AT = '2026-11-01T18:00:00.000Z';
/** An order that the platform has and the database lost, with its last live message. */
function lost(about: Partial<LiveMessage>, known: Partial<LostOrder> = {}): LostOrder {
  const serviceOrderId = `lost-${randomUUID()}`;
  system.platform.orders.set(serviceOrderId, sampleOrder({ serviceOrderId }));
  const message = { serviceOrderId, sequence: 6, appliedAt: FAILED_AT, ...about } as LiveMessage;
  return learn({ serviceOrderId, knownAt: new Date(FAILED_AT), ...known }, message);
}
const record = async (order: LostOrder, isNew = false): Promise<unknown> => {
  const about = { deadlineS: 1_800, running: true, began: new Date().toISOString(), isNew };
  await recordLost(system.pool, [order], about);
  return (await system.placement(order.serviceOrderId))?.['state'];
};
const signal = async ({ serviceOrderId: id }: LostOrder): Promise<unknown> => {
  await system.signal(id);
  await system.round('placements');
  return (await system.placement(id))?.['state'];
};
const ticketsOf = ({ serviceOrderId: id }: LostOrder): number =>
  pos.tickets.filter((ticket) => ticket.serviceOrderId === id).length;

const ENDED = {
  status: 'completed',
  memberState: 'picked_up',
  locationId: 'club-1',
  providerOrderId: 'pos-1',
} as const;
const UNREAD = { status: 'failed', memberState: 'failed', reason: 'the order could not be read' } as const;

it('an order that had ended is recorded as ended, and a later signal makes no ticket for it, even if it is a past order', async () => {
  const order = lost({ ...ENDED, providerOrderId: randomUUID() });
  expect(await record(order)).toBe('sent');
  expect(await system.order(order.serviceOrderId)).toMatchObject({ status: 'completed', sequence: 6 });
  expect(await signal(order)).toBe('sent');
  await makePast(system, order.serviceOrderId);
  await signal(order);
  expect(ticketsOf(order)).toBe(0);
});

it.each([
  [{ status: 'cancelled', memberState: 'cancelled' } as const, 'withdrawn'],
  [{ status: 'failed', memberState: 'failed', reason: 'the POS refuses it' } as const, 'failed'],
])('an order that ended without a ticket is recorded as $1 and not sent again', async (last, state) => {
  const order = lost({ ...last, locationId: 'club-1' });
  expect(await record(order)).toBe(state);
  expect((await system.placement(order.serviceOrderId))?.['problem'] ?? undefined).toBe(order.last?.reason);
  expect(await signal(order)).toBe(state);
  expect(ticketsOf(order)).toBe(0);
});

it('an order that had failed before it was read starts again with a signal after the recovery', async () => {
  const order = lost(UNREAD);
  expect(await record(order)).toBe('failed');
  expect(await signal(order)).toBe('sent');
  expect((await system.order(order.serviceOrderId))?.['sequence']).toBeGreaterThan(6);
});

it('an order that failed before it was read is in doubt if a new signal followed, because that signal may have sent the order', async () => {
  expect(await record(lost(UNREAD, { signalledAt: new Date('2026-11-01T18:00:05Z') }))).toBe('in_doubt');
});

it('an order that the platform had cancelled before it was read stays cancelled, also after a new signal', async () => {
  const cancelled = { status: 'cancelled', memberState: 'cancelled', reasonCode: 'member_cancelled' } as const;
  const order = lost(cancelled, { signalledAt: new Date('2026-11-01T18:00:05Z') });
  expect(await record(order)).toBe('withdrawn');
  const stored = { cause: { code: 'order_cancelled' }, last_notified_sequence: expect.toBeOneOf([6, '6']) };
  expect(await system.placement(order.serviceOrderId)).toMatchObject(stored);
  // A list of a person has no message.
  const { last: _last, highest: _highest, ...listed } = order;
  expect(await record(listed)).toBe('withdrawn');
  expect(await signal(order)).toBe('withdrawn');
  expect(ticketsOf(order)).toBe(0);
});

it('an order that the previous version recorded as ended, without a row in `orders`, does not start again', async () => {
  const order = lost(ENDED);
  await system.query(
    `INSERT INTO placements (service_order_id, state, cause, deadline_at, finished_at)
     VALUES ($1, 'withdrawn', '{"code":"order_ended"}', now(), now())`,
    [order.serviceOrderId],
  );
  expect(await signal(order)).toBe('withdrawn');
  expect(ticketsOf(order)).toBe(0);
});

it.each([
  ['is unknown to the backup', 'SELECT $1::text'],
  [
    'had not been read before the backup',
    `INSERT INTO placements (service_order_id, state, signalled_at, deadline_at)
     VALUES ($1, 'waiting', now() - interval '1 min', now())`,
  ],
])(
  'an order that the platform has moved since its last message, and that %s, is in doubt at its old location',
  async (_what, backup) => {
    const order = lost({ status: null, memberState: 'placed', locationId: 'club-1' });
    const { serviceOrderId } = order;
    const before = other.tickets.length;
    system.platform.orders.set(serviceOrderId, sampleOrder({ serviceOrderId, locationId: 'club-2' }));
    await system.query(backup, [serviceOrderId]);
    expect(await record(order, true)).toBe('in_doubt');
    await system.round('placements');
    expect([ticketsOf(order), other.tickets.length]).toEqual([1, before]);
    expect(await system.order(serviceOrderId)).toMatchObject({ location_id: 'club-1' });
    await system.round('refreshes');
    expect(
      await system.query('SELECT changes FROM order_changes WHERE service_order_id = $1', [serviceOrderId]),
    ).toEqual([{ changes: [{ path: 'locationId', was: 'club-1', is: 'club-2' }] }]);
  },
);

it('an order whose deadline passed while the service was away is in doubt with a later deadline', async () => {
  const order = lost({ status: null, memberState: 'placed', locationId: 'club-1' });
  await system.query(
    `INSERT INTO placements (service_order_id, state, signalled_at, deadline_at) VALUES ($1, 'waiting', '2026-11-01', '2026-11-01')`,
    [order.serviceOrderId],
  );
  await record(order, true);
  expect(
    await system.query('SELECT state, deadline_at > now() AS later FROM placements WHERE service_order_id = $1', [
      order.serviceOrderId,
    ]),
  ).toEqual([{ state: 'in_doubt', later: true }]);
});
