import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { concludeByPhone, requestCancellation } from '../../../src/core/cancellations/operator-cancellations.ts';
import { refuseCancellation } from '../../../src/core/cancellations/begin-cancellation.ts';
import { TryAgain } from '../../../src/core/domain/errors.ts';
import type { CanonicalOrder, OrderRef, StatusEvent } from '../../../src/core/domain/order.ts';
import type { CancelAnswer } from '../../../src/core/domain/provider.ts';
import { pauseLocation } from '../../../src/core/kitchens/pause-location.ts';
import { concludeCancellation } from '../../../src/core/cancellations/conclude-cancellation.ts';
import { concludePlacement } from '../../../src/core/placements/conclude-placement.ts';
import { problemOf } from '../../../src/core/domain/explain-cause.ts';
import { endCancelled, storeOrderRef } from '../../../src/core/transitions/placement-outcomes.ts';
import { resolveAMinuteLater } from '../../support/resolve-a-minute-later.ts';
import { resolveThere } from '../../../src/core/placements/resolve-doubt.ts';
import { retryPlacement } from '../../../src/core/placements/retry-placement.ts';
import { beginAttempt } from '../../../src/core/transitions/record-attempt.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { post, type System } from '../../../world/system/start-system.ts';
import { heldAnswer, lost, startTills, tooLate, type Shop, type Tills } from './start-tills.ts';

let system: System;
let tills: Tills;
let shop: Shop;

beforeAll(async () => {
  shop = await startTills();
  ({ system, tills } = shop);
  await system.addLocation('shut', {}, 'exact');
  await pauseLocation(system.pool, 'shut');
});
afterEach(() => shop.rest());
afterAll(() => system?.stop());

/** One turn of each worker. */
const turn = async (): Promise<void> => {
  await system.round('refreshes');
  await system.round('placements');
  await system.round('cancellations');
  await system.round('sweep of cancellations');
};
const cancellation = async (id: string): Promise<Record<string, unknown> | undefined> =>
  (await system.query('SELECT * FROM cancellations WHERE service_order_id = $1', [id]))[0];
const lastTold = async (id: string): Promise<string | undefined> => (await shop.told(id)).at(-1);
const CANCELLED = { cancelledAt: '2027-01-31T18:00:00Z', cancelReason: 'changed my mind' };
/** The platform cancels it. The POS is to be asked. */
const request = async (order: CanonicalOrder): Promise<void> => {
  await shop.change(order, CANCELLED);
  await system.round('refreshes');
  await system.round('placements');
};
/** The platform cancels it, and each worker has a turn. */
const cancel = async (order: CanonicalOrder): Promise<void> => {
  await shop.change(order, CANCELLED);
  await turn();
};
/** A new order that its till is being asked to take, until `answer` is given. */
const beingSentAt = async (locationId: string) => {
  const answer = heldAnswer<OrderRef>();
  tills.creates = () => answer.wait;
  const order = await system.placeOrder({ locationId });
  const sending = system.round('placements');
  await answer.asked;
  return { order, id: order.serviceOrderId, answer, sending };
};
/** The platform cancels an order, and its till is being asked to, until `answer` is given. */
const beingCancelled = async (order: CanonicalOrder) => {
  const answer = heldAnswer<CancelAnswer>();
  tills.cancel = () => answer.wait;
  await request(order);
  const asking = system.round('cancellations');
  await answer.asked;
  return { answer, asking };
};
const sentAt = (locationId: string): ReturnType<Shop['place']> => shop.place({ locationId }, 'sent');
/** An order whose ticket was made or not, with the answer lost. */
const inDoubtAt = (locationId: string): ReturnType<Shop['place']> => {
  tills.creates = lost;
  return shop.place({ locationId }, 'in_doubt');
};
const webhook = async (locationId: string, event: Partial<StatusEvent>): Promise<void> => {
  const url = await system.webhookUrl(locationId);
  expect(await post(url, { says: [{ nativeStatus: 'SAYS SO', ...event }] })).toMatchObject({ status: 200 });
};
const tickets = (id: string): number => tills.tickets.filter((each) => each.serviceOrderId === id).length;
const cancels = (id: string): number => tills.cancels.filter((each) => each.serviceOrderId === id).length;
const attempts = (id: string): Promise<Record<string, unknown>[]> =>
  system.query('SELECT * FROM placement_attempts WHERE service_order_id = $1 ORDER BY attempt', [id]);
const creates = async (id: string): Promise<Record<string, unknown>[]> =>
  (await attempts(id)).filter(({ call }) => call === 'createOrder');
/** Lets time pass for one order's request and cancellation. What waits is due. */
const pass = (id: string, seconds: number): Promise<unknown> =>
  system.query(
    `WITH p AS (
       UPDATE placements SET next_attempt_at = now(), request_ended_at = request_ended_at - make_interval(secs => $2)
       WHERE service_order_id = $1
     )
     UPDATE cancellations
     SET next_attempt_at = now(), deadline_at = deadline_at - make_interval(secs => $2)
     WHERE service_order_id = $1 AND next_attempt_at <> 'infinity'`,
    [id, seconds],
  );
const later = async (id: string, seconds: number): Promise<void> => {
  await pass(id, seconds);
  await turn();
};
/** Leaves a call as a process does that dies during it. */
const beginsAndDies = (id: string, call: 'createOrder' | 'cancelOrder'): Promise<unknown> =>
  system.query(
    `WITH p AS (UPDATE placements SET attempts = attempts + 1 WHERE service_order_id = $1 RETURNING attempts),
          c AS (UPDATE cancellations SET state = 'due', next_attempt_at = now() WHERE service_order_id = $1)
     INSERT INTO placement_attempts (service_order_id, attempt, call) SELECT $1, attempts, $2 FROM p`,
    [id, call],
  );

it('no transaction is open while the platform or the POS is called', async () => {
  const calls: unknown[] = [];
  const meanwhile = async (call: string): Promise<undefined> => {
    const open = await system.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`,
    );
    calls.push([call, open.length]);
  };
  system.platform.answer = () => meanwhile('order');
  tills.creates =
    ({ serviceOrderId }) =>
    async () =>
      (await meanwhile('create')) ?? { providerOrderId: `pos-${serviceOrderId}` };
  tills.cancel = () => async () => (await meanwhile('cancel')) ?? 'cancelled';
  await cancel((await sentAt('exact')).order);
  expect(calls).toEqual(['order', 'create', 'order', 'cancel'].map((call) => [call, 0]));
});

describe('a cancellation before the order is sent', () => {
  it('the POS is asked to cancel an order that it answered with 503, because the POS may have made a ticket', async () => {
    tills.creates = () => new TryAgain('the kitchen is closed', { sent: false, httpStatus: 503 });
    const { order, id } = await shop.place({ locationId: 'exact' });
    await cancel(order);
    expect(await lastTold(id)).toBe('cancelled');
    expect([tickets(id), cancels(id)]).toEqual([1, 1]);
  });

  it('an order that is cancelled during a call that the POS answers with 429 is withdrawn at once', async () => {
    const { order, id, answer, sending } = await beingSentAt('exact');
    await cancel(order);
    expect(await lastTold(id)).toBe('placed requested');
    answer.reject(new TryAgain('later', { sent: false, httpStatus: 429, retryAfterMs: 600_000 }));
    await sending;
    await turn();
    expect(await shop.state(id)).toBe('withdrawn');
  });

  it('a worker that slept does not withdraw an order that another worker has begun to send', async () => {
    const { id } = await inDoubtAt('blind');
    await beginsAndDies(id, 'createOrder');
    const withdrawn = { nativeStatus: 'withdrawn', state: 'withdrawn' } as const;
    expect(await endCancelled(system.pool, id, withdrawn)).toBeUndefined();
    expect(await shop.state(id)).toBe('in_doubt');
  });

  it('an order that is cancelled before its first fetch ends as cancelled, without a ticket', async () => {
    const { id } = await shop.place({ ...sampleOrder({ locationId: 'exact' }), ...CANCELLED }, 'withdrawn');
    expect(await shop.told(id)).toEqual(['placed requested', 'cancelled']);
    expect(tickets(id) + cancels(id)).toBe(0);
    expect(await cancellation(id)).toMatchObject({ state: 'cancelled', requested_by: 'platform' });
    expect(await system.order(id)).toMatchObject({ status: 'cancelled', ended_at: expect.any(Date) });
  });

  it.each([
    ['paused', 'shut'],
    ['not configured', 'nowhere'],
  ])('a cancelled order whose location is %s is withdrawn', async (_what, locationId) => {
    const { order, id } = await shop.place({ locationId }, 'held');
    expect(await shop.told(id)).toEqual(['placed']);
    await cancel(order);
    expect(await shop.state(id)).toBe('withdrawn');
    expect(await shop.told(id)).toEqual(['placed', 'cancelled']);
    expect(tickets(id)).toBe(0);
  });

  it('an order whose process died between storing and withdrawing it is withdrawn by another process', async () => {
    const order = { ...sampleOrder({ locationId: 'exact' }), ...CANCELLED };
    const id = order.serviceOrderId;
    // As recorded, with the lease of one that is gone.
    await system.query(
      `WITH p AS (INSERT INTO placements (service_order_id, location_id, deadline_at)
                  VALUES ($1, 'exact', now() + interval '1 h')),
            c AS (INSERT INTO order_contents VALUES ($1, $2)),
            x AS (INSERT INTO cancellations (service_order_id, location_id, requested_by, deadline_at)
                  VALUES ($1, 'exact', 'platform', now() + interval '1 h'))
       INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, rank, sequence, cancellation)
       VALUES ($1, 'K472', 'exact', 'pickup', 0, 1, 'requested')`,
      [id, order],
    );
    await turn();
    expect(await shop.state(id)).toBe('withdrawn');
    expect(await shop.told(id)).toEqual(['cancelled']);
    expect(tickets(id)).toBe(0);
  });

  it('no ticket is created after the cancel is committed, whichever worker holds the placement', async () => {
    const { id: serviceOrderId } = await shop.place({ locationId: 'shut' });
    const claim = { serviceOrderId, leaseId: crypto.randomUUID() };
    const location = { locationId: 'exact', integration: 'exact', provider: { integration: 'exact' }, settings: {} };
    const begin = (call: 'createOrder' | 'findOrder'): Promise<number | undefined> =>
      beginAttempt(system.pool, claim, call, location as never);
    const hold = `lease_id = $2, lease_until = now() + interval '1 min'`;
    const values = [serviceOrderId, claim.leaseId];
    await system.query(`UPDATE placements SET ${hold} WHERE service_order_id = $1`, values);
    expect(await requestCancellation(system.pool, serviceOrderId)).toEqual({ serviceOrderId, cancel: 'withdraws' });
    // The worker has lost the placement, which is withdrawn without it.
    expect(await begin('createOrder')).toBeUndefined();
    expect(await shop.state(serviceOrderId)).toBe('withdrawn');
    await system.query(
      `WITH o AS (UPDATE orders SET ended_at = NULL, rank = 0 WHERE service_order_id = $1)
       UPDATE placements SET finished_at = NULL, state = 'waiting', ${hold} WHERE service_order_id = $1`,
      values,
    );
    // A worker that has it does not begin, but may look for it.
    expect(await begin('createOrder')).toBeUndefined();
    expect(await begin('findOrder')).toEqual(expect.any(Number));
  });

  it('a status that a POS reports about a withdrawn order is recorded as a conflict', async () => {
    const { order, id } = await shop.place({ locationId: 'shut' });
    await cancel(order);
    expect(await retryPlacement(system.pool, id)).toMatchObject({ cause: { code: 'already_over' } });
    expect(await storeOrderRef(system.pool, id, 'exact', { providerOrderId: `late-${id}` })).toMatchObject({
      conflict: true,
    });
    expect(await shop.state(id)).toBe('withdrawn');
    await webhook('shut', { serviceOrderId: id, status: 'received' });
    const history = await system.query(
      `SELECT outcome, conflict FROM status_events WHERE service_order_id = $1 ORDER BY event_id`,
      [id],
    );
    expect(history).toEqual([
      { outcome: 'applied', conflict: false },
      { outcome: 'stale', conflict: true },
    ]);
    expect(await lastTold(id)).toBe('cancelled');
  });

  it('the ticket does not contain the fields about a cancellation', async () => {
    const order = { ...sampleOrder({ locationId: 'exact' }), cancelReason: 'not cancelled at all' };
    const { id } = await shop.place(order);
    const ticket = tills.tickets.find((each) => each.serviceOrderId === id) ?? {};
    expect(Object.keys(ticket)).toContain('items');
    expect(Object.keys(ticket)).not.toContain('cancelReason');
  });
});

describe('a cancellation at the POS', () => {
  const refusedUnsent = (): TryAgain => new TryAgain('refused', { sent: false, retryAfterMs: 60_000 });

  it('a POS that asks for a wait of an hour is asked again five seconds before the deadline', async () => {
    const { order, id } = await sentAt('exact');
    tills.cancel = () => new TryAgain('later', { sent: false, httpStatus: 429, retryAfterMs: 3_600_000 });
    await cancel(order);
    const found = await cancellation(id);
    const deadline = found?.['deadline_at'] as Date;
    expect(found).toMatchObject({ failures: 1, next_attempt_at: new Date(deadline.getTime() - 5_000) });
  });

  it("a POS that refused an operator's cancel is asked again when the member cancels", async () => {
    const { order, id } = await sentAt('exact');
    tills.cancel = (_id, nth) => (nth === 1 ? tooLate() : 'cancelled');
    await requestCancellation(system.pool, id);
    await turn();
    expect(await lastTold(id)).toBe('sent refused');
    await shop.change(order, { notes: 'no onions' });
    await turn();
    expect(await system.query('SELECT FROM order_changes WHERE service_order_id = $1', [id])).toHaveLength(1);
    await shop.change(order, { notes: 'no onions', ...CANCELLED });
    await turn();
    expect(await lastTold(id)).toBe('cancelled');
    expect(cancels(id)).toBe(2);
  });

  it("the text of a POS's refusal is not stored after the member is erased", async () => {
    const { order, id } = await sentAt('blind');
    const { answer, asking } = await beingCancelled(order);
    await system.query('UPDATE orders SET erased_at = now() WHERE service_order_id = $1', [id]);
    await refuseCancellation(system.pool, id, { problem: 'Ada wants it', cause: { code: 'cancel_refused' } });
    expect(await cancellation(id)).toMatchObject({ state: 'refused', problem: null });
    answer.resolve('requested');
    await asking;
  });

  it('the POS is asked to cancel, and its answer ends the order', async () => {
    const { order, id } = await sentAt('exact');
    expect(await shop.told(id)).toEqual(['placed', 'sent']);
    await cancel(order);
    expect(await shop.told(id)).toEqual(['placed', 'sent', 'sent requested', 'cancelled']);
    expect(system.live(id).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
    expect(tills.cancels.filter((each) => each.serviceOrderId === id)).toEqual([
      {
        ref: { providerOrderId: `pos-${id}` },
        serviceOrderId: id,
        reason: 'changed my mind',
        code: tills.tickets.find((each) => each.serviceOrderId === id)?.callOutCode ?? 'none',
      },
    ]);
    expect(await attempts(id)).toMatchObject([{ call: 'createOrder' }, { call: 'cancelOrder', outcome: 'cancelled' }]);
    expect(await cancellation(id)).toMatchObject({
      state: 'cancelled',
      lease_id: null,
      finished_at: expect.any(Date),
    });
  });

  it('a call to cancel is stored before it is made', async () => {
    const { order } = await sentAt('exact');
    let written: unknown;
    tills.cancel = (id) => async () => {
      written = (await attempts(id)).at(-1);
      return 'cancelled';
    };
    await cancel(order);
    expect(written).toMatchObject({ call: 'cancelOrder', ended_at: null });
  });

  it.each([
    ['cancelled', 'cancelled', 'cancelled'],
    ['completed', 'refused', 'picked_up refused'],
  ] as const)(
    'a cancel that the POS only acknowledged is settled when the POS reports %s',
    async (status, ends, says) => {
      const { order, id } = await sentAt('exact');
      tills.cancel = () => 'requested';
      await cancel(order);
      expect(await cancellation(id)).toMatchObject({ state: 'asked' });
      expect(await lastTold(id)).toBe('sent requested');
      await webhook('exact', { serviceOrderId: id, status });
      await turn();
      expect(await cancellation(id)).toMatchObject({ state: ends });
      expect(await lastTold(id)).toBe(says);
    },
  );

  it('a cancel that the POS acknowledged but never confirmed must then be done by phone', async () => {
    const { order, id } = await sentAt('exact');
    tills.cancel = () => 'requested';
    await cancel(order);
    await later(id, 0);
    expect(await cancellation(id)).toMatchObject({ state: 'by_phone', cause: { code: 'cancel_unconfirmed' } });
    expect(cancels(id)).toBe(1);
  });

  it('an order whose cancel the POS refuses continues, and the refusal is published with the unchanged status', async () => {
    const { order, id } = await sentAt('exact');
    tills.cancel = tooLate;
    await cancel(order);
    expect(await lastTold(id)).toBe('sent refused');
    expect(await cancellation(id)).toMatchObject({
      state: 'refused',
      problem: expect.stringContaining('oven'),
      cause: { code: 'cancel_refused', httpStatus: 409 },
    });
    // The platform says it once more, and that is no news.
    await cancel(order);
    await webhook('exact', { serviceOrderId: id, status: 'ready' });
    expect(await lastTold(id)).toBe('ready_for_pickup refused');
    expect(cancels(id)).toBe(1);
    // An operator may ask again.
    tills.cancel = undefined;
    await requestCancellation(system.pool, id);
    await turn();
    expect(await lastTold(id)).toBe('cancelled');
  });

  it.each([
    ['does not answer but recognises a repeated cancel', 'exact', lost],
    ['certainly did not get the request', 'blind', refusedUnsent],
  ])('the POS is asked to cancel again if it %s', async (_what, locationId, failure) => {
    const { order, id } = await sentAt(locationId);
    tills.cancel = (_id, nth) => (nth === 1 ? failure() : 'cancelled');
    await cancel(order);
    expect(await cancellation(id)).toMatchObject({ failures: 1 });
    await later(id, 0);
    expect(await lastTold(id)).toBe('cancelled');
    expect(cancels(id)).toBe(2);
  });

  it.each([
    ['never got the request', refusedUnsent],
    // The call ends when the deadline does.
    ['hangs', () => 'hang' as const],
  ])('a cancel must be done by phone after its deadline if the POS %s', async (_what, answer) => {
    const { order, id } = await sentAt('blind');
    tills.cancel = (_id, nth) => (nth === 1 ? refusedUnsent() : answer());
    await cancel(order);
    await later(id, 598.5);
    await later(id, 1.5);
    await system.round('sweep of cancellations');
    expect(cancels(id)).toBe(2);
    expect(await cancellation(id)).toMatchObject({ state: 'by_phone' });
  });

  it.each(['lost', 'died'])(
    'a POS that does not recognise a repeated cancel is asked only once, even if the answer is lost or the process dies (%s)',
    async (how) => {
      const { order, id } = await sentAt('blind');
      tills.cancel = how === 'lost' ? lost : refusedUnsent;
      await cancel(order);
      tills.cancel = undefined;
      if (how === 'died') await beginsAndDies(id, 'cancelOrder');
      else expect(await cancellation(id)).toMatchObject({ state: 'in_doubt' });
      await later(id, 0);
      expect(await cancellation(id)).toMatchObject({ state: 'by_phone', cause: { code: 'cancel_in_doubt' } });
      expect(cancels(id)).toBe(1);
      expect((await attempts(id)).filter((each) => each['ended_at'] === null)).toEqual([]);
      expect(await lastTold(id)).toBe('sent requested');
    },
  );

  it.each([
    ['names this order', 'cancelled', {}],
    ['names another order', 'by_phone', { serviceOrderId: 'another' }],
    ['names another ticket', 'by_phone', { serviceOrderId: undefined, providerOrderId: 'another' }],
  ])('after a lost answer, a status `cancelled` that %s leaves the cancel %s', async (_what, ends, about) => {
    const { order, id } = await sentAt('asked');
    tills.cancel = lost;
    tills.reads = (serviceOrderId) =>
      [{ status: 'cancelled', nativeStatus: 'VOID', serviceOrderId, ...about }] as StatusEvent[];
    await cancel(order);
    expect(await cancellation(id)).toMatchObject({ state: 'in_doubt' });
    await later(id, 0);
    expect(await cancellation(id)).toMatchObject({ state: ends });
    expect(cancels(id)).toBe(1);
  });

  it.each([
    ['fails', (id: string) => webhook('exact', { serviceOrderId: id, status: 'failed' })],
    [
      'ends without a status',
      (id: string) => system.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1', [id]),
    ],
  ])('when an order %s, its cancel is not recorded as refused', async (_what, ends) => {
    const { order, id } = await sentAt('exact');
    tills.cancel = () => 'requested';
    await cancel(order);
    await ends(id);
    await turn();
    expect(await cancellation(id)).toMatchObject({ state: 'asked', finished_at: expect.any(Date) });
  });

  it.each([
    ['cannot cancel', 'mute', undefined, 'pos_cannot_cancel'],
    ['cannot cancel this order', 'exact', () => undefined, 'pos_cannot_cancel'],
    ['has no such ticket', 'exact', () => 'absent' as const, 'cancel_ticket_missing'],
  ])('a cancel must be done by phone at once if the POS %s', async (_what, locationId, answer, code) => {
    const { order, id } = await sentAt(locationId);
    tills.cancel = answer;
    await cancel(order);
    expect(await cancellation(id)).toMatchObject({ state: 'by_phone', cause: { code } });
    expect(await lastTold(id)).toBe('sent requested');
  });

  it('after the location changes to another account of its POS, the new account is not asked to cancel', async () => {
    await system.addLocation('moving', { account: 'one' }, 'exact');
    const { order, id } = await sentAt('moving');
    await system.addLocation('moving', { account: 'two' }, 'exact');
    await cancel(order);
    expect(await cancellation(id)).toMatchObject({ cause: { code: 'pos_account_changed' } });
    expect(cancels(id)).toBe(0);
  });

  it('a POS that hangs on a cancel gets no second call, and other locations are not delayed', async () => {
    await system.addLocation('hangs', {}, 'exact');
    const [stuck, next, free] = [await sentAt('hangs'), await sentAt('hangs'), await sentAt('exact')];
    const answer = heldAnswer<CancelAnswer>();
    tills.cancel = (id) => (id === free.id ? 'cancelled' : answer.wait);
    await request(stuck.order);
    const asking = system.round('cancellations');
    await answer.asked;
    for (const { order } of [next, free]) await cancel(order);
    expect(await lastTold(free.id)).toBe('cancelled');
    expect([cancels(stuck.id), cancels(next.id)]).toEqual([1, 0]);
    answer.resolve('cancelled');
    await asking;
    await turn();
    for (const { id } of [stuck, next]) expect(await lastTold(id)).toBe('cancelled');
  });

  it('if an order is cancelled during the call that creates its ticket, the ticket is cancelled after that call', async () => {
    const { order, id, answer, sending } = await beingSentAt('exact');
    await cancel(order);
    expect(await lastTold(id)).toBe('placed requested');
    expect([await shop.state(id), cancels(id)]).toEqual(['waiting', 0]);
    answer.resolve({ providerOrderId: `pos-${id}` });
    await sending;
    await turn();
    expect(await lastTold(id)).toBe('cancelled');
    expect([await shop.state(id), cancels(id)]).toEqual(['sent', 1]);
  });
});

describe('a cancellation of an order in doubt', () => {
  it.each(['asked', 'shuts'])(
    'the POS looks for the ticket and cancels it, even if the location is paused (the location %s)',
    async (at) => {
      if (at === 'shuts') await system.addLocation('shuts', {}, 'asked');
      const { order, id } = await inDoubtAt(at);
      if (at === 'shuts') await pauseLocation(system.pool, 'shuts');
      tills.finds = (id) => ({ providerOrderId: `pos-${id}` });
      await cancel(order);
      expect(await lastTold(id)).toBe('cancelled');
      expect([await shop.state(id), cancels(id)]).toEqual(['sent', 1]);
    },
  );

  it('if a webhook names the ticket, a later answer "absent" does not withdraw the order', async () => {
    const { order, id } = await inDoubtAt('exact');
    tills.cancel = () => async () => {
      await webhook('exact', { serviceOrderId: id, status: 'received' });
      return 'absent';
    };
    await pass(id, 60);
    await cancel(order);
    await turn();
    expect(await cancellation(id)).toMatchObject({ state: 'by_phone', cause: { code: 'cancel_ticket_missing' } });
    expect(await shop.state(id)).toBe('sent');
    expect(await shop.told(id)).not.toContain('cancelled');
  });

  it('the POS is asked to cancel once, even if an operator finds the ticket during the call and the process dies', async () => {
    const { order, id } = await inDoubtAt('blind');
    const { answer, asking } = await beingCancelled(order);
    expect(await resolveThere(system.pool, id, {})).toMatchObject({ state: 'sent' });
    await system.query(
      'UPDATE cancellations SET lease_id = gen_random_uuid(), lease_until = now() WHERE service_order_id = $1',
      [id],
    );
    await turn();
    expect(await cancellation(id)).toMatchObject({ state: 'by_phone', cause: { code: 'cancel_in_doubt' } });
    expect(cancels(id)).toBe(1);
    answer.reject(lost());
    await asking;
  });

  it('an order that the POS does not find a minute later is withdrawn instead of sent again', async () => {
    const { order, id } = await inDoubtAt('asked');
    await cancel(order);
    expect(await shop.state(id)).toBe('in_doubt');
    await later(id, 60);
    expect(await shop.state(id)).toBe('withdrawn');
    expect(await creates(id)).toHaveLength(1);
    expect(cancels(id)).toBe(0);
    expect(await lastTold(id)).toBe('cancelled');
  });

  it('an order that is cancelled during a lookup that finds no ticket is withdrawn at once', async () => {
    const { order, id } = await inDoubtAt('asked');
    const answer = heldAnswer<OrderRef | undefined>();
    tills.finds = answer.wait;
    await pass(id, 60);
    const asking = system.round('placements');
    await answer.asked;
    await cancel(order);
    expect(await cancellation(id)).toBeDefined();
    answer.resolve(undefined);
    await asking;
    await turn();
    expect(await shop.state(id)).toBe('withdrawn');
    expect(await creates(id)).toHaveLength(1);
  });

  it('a POS without a lookup is asked to cancel, and its answer "cancelled" proves that there was a ticket', async () => {
    const { order, id } = await inDoubtAt('exact');
    await cancel(order);
    expect(await lastTold(id)).toBe('cancelled');
    expect(await shop.state(id)).toBe('sent');
    expect(await creates(id)).toHaveLength(1);
  });

  it(`a POS's answer "requested" does not prove that there is a ticket: the order stays in doubt`, async () => {
    const { order, id } = await inDoubtAt('exact');
    tills.cancel = () => 'requested';
    await cancel(order);
    expect(await cancellation(id)).toMatchObject({ state: 'asked' });
    expect(await shop.state(id)).toBe('in_doubt');
    await webhook('exact', { serviceOrderId: id, status: 'cancelled' });
    expect(await lastTold(id)).toBe('cancelled');
  });

  it('the answer "absent" counts only a minute after the request, and then withdraws the order', async () => {
    const { order, id } = await inDoubtAt('exact');
    tills.cancel = () => 'absent';
    await cancel(order);
    expect(await cancellation(id)).toMatchObject({ failures: 1 });
    expect(await shop.state(id)).toBe('in_doubt');
    await later(id, 60);
    expect(await shop.state(id)).toBe('withdrawn');
    expect(await lastTold(id)).toBe('cancelled');
  });

  it('if the POS has neither lookup nor cancel, a person settles the order and its cancel', async () => {
    const [gone, made] = [await inDoubtAt('mute'), await inDoubtAt('mute')];
    for (const { order } of [gone, made]) await shop.change(order, CANCELLED);
    // One at a time at each location.
    await turn();
    await turn();
    for (const { id } of [gone, made]) {
      expect(await cancellation(id)).toMatchObject({ state: 'by_phone' });
      expect(await system.placement(id)).toMatchObject({
        state: 'in_doubt',
        cause: { code: 'cancelled_in_doubt' },
        next_attempt_at: Infinity,
      });
    }
    await concludeByPhone(system.pool, gone.id, true);
    await concludeByPhone(system.pool, made.id, false);
    expect(await lastTold(gone.id)).toBe('cancelled');
    expect(await lastTold(made.id)).toBe('sent refused');
    expect(await shop.state(made.id)).toBe('sent');
  });

  const unsure = (): TryAgain => new TryAgain('later', { sent: false, httpStatus: 503 });
  const busy = (): TryAgain => new TryAgain('later', { sent: false, httpStatus: 429, retryAfterMs: 600_000 });

  it('an operator who finds no ticket withdraws the order', async () => {
    tills.creates = unsure;
    const { order, id } = await shop.place({ locationId: 'mute' });
    await cancel(order);
    expect(await system.placement(id)).toMatchObject({ next_attempt_at: Infinity });
    expect(await resolveAMinuteLater(system, id)).toMatchObject({ state: 'withdrawn' });
    expect(await shop.state(id)).toBe('withdrawn');
    expect(await lastTold(id)).toBe('cancelled');
  });

  it('an order that is sent again after an operator found no ticket, and gets 429, can still be withdrawn', async () => {
    tills.creates = unsure;
    const { order, id } = await shop.place({ locationId: 'blind' }, 'in_doubt');
    tills.creates = busy;
    expect(await resolveAMinuteLater(system, id)).toMatchObject({ state: 'waiting' });
    await turn();
    expect((await attempts(id)).at(-1)).toMatchObject({ http_status: 429 });
    await cancel(order);
    expect(await shop.state(id)).toBe('withdrawn');
  });
});

describe('an operator', () => {
  it('cancels an order that the platform has not cancelled', async () => {
    const { id } = await sentAt('exact');
    expect(await requestCancellation(system.pool, id)).toEqual({ serviceOrderId: id, cancel: 'asks_pos' });
    await turn();
    expect(await lastTold(id)).toBe('cancelled');
    expect(await cancellation(id)).toMatchObject({ requested_by: 'operator' });
  });

  it.each([
    ['after calls that all ended', false],
    ['after a call in which the process died', true],
  ])('records %s that the restaurant cancelled', async (_when, died) => {
    const { order, id } = await sentAt('mute');
    const open = `UPDATE placement_attempts SET ended_at = NULL, outcome = 'started' WHERE service_order_id = $1`;
    if (died) await system.query(open, [id]);
    await cancel(order);
    expect(await concludeByPhone(system.pool, id, true)).toMatchObject({ cancellation: 'cancelled' });
    expect(await lastTold(id)).toBe('cancelled');
  });

  it('cannot cancel an unknown, ended or unread order, nor settle a cancel that nobody requested', async () => {
    const { id } = await sentAt('mute');
    const code = (answer: unknown): unknown => (answer as { cause?: { code: string } } | undefined)?.cause?.code;
    expect(await requestCancellation(system.pool, 'nobody')).toBeUndefined();
    expect(await concludeByPhone(system.pool, 'nobody', true)).toBeUndefined();
    expect(code(await concludeByPhone(system.pool, id, true))).toBe('not_to_be_cancelled');
    await webhook('mute', { serviceOrderId: id, status: 'completed' });
    expect(code(await requestCancellation(system.pool, id))).toBe('already_over');
    expect(code(await concludeByPhone(system.pool, id, true))).toBe('already_over');
    const { serviceOrderId: unread } = await system.placeOrder();
    expect(code(await requestCancellation(system.pool, unread))).toBe('never_read');
  });
});

it('a worker that has lost its lease leaves the attempt open after a lost answer, and the order is then in doubt', async () => {
  const { id: serviceOrderId, answer, sending } = await beingSentAt('blind');
  await concludePlacement(
    { pool: system.pool, observe() {} } as never,
    { serviceOrderId, leaseId: crypto.randomUUID(), dueAt: '2027-01-31', state: 'waiting', failures: 0 } as never,
    {
      do: 'ask operator',
      requestEnded: true,
      ...problemOf({ code: 'pos_silent' }),
      end: { attempt: 1, outcome: 'TryAgain', milliseconds: 1 },
    },
  );
  expect(await attempts(serviceOrderId)).toMatchObject([{ attempt: 1, ended_at: null }]);
  answer.reject(lost());
  await sending;
  expect(await shop.state(serviceOrderId)).toBe('in_doubt');
});

it("a worker that has lost its lease leaves a cancel's attempt open after a lost answer, and the cancel is then in doubt", async () => {
  const { order, id } = await sentAt('blind');
  const { answer, asking } = await beingCancelled(order);
  await concludeCancellation(
    { pool: system.pool, observe() {}, onLive() {} },
    { serviceOrderId: id, leaseId: crypto.randomUUID() } as never,
    { do: 'doubt', ...problemOf({ code: 'pos_silent' }), end: { attempt: 2, outcome: 'TryAgain', milliseconds: 1 } },
  );
  expect((await attempts(id)).at(-1)).toMatchObject({ attempt: 2, call: 'cancelOrder', ended_at: null });
  answer.reject(lost());
  await asking;
  expect(await cancellation(id)).toMatchObject({ state: 'in_doubt' });
});
