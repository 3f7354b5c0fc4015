import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { concludeByPhone, requestCancellation } from '../../../src/core/cancellations/operator-cancellations.ts';
import { refuseCancellation } from '../../../src/core/cancellations/begin-cancellation.ts';
import { TryAgain } from '../../../src/core/domain/errors.ts';
import type { CanonicalOrder, StatusEvent } from '../../../src/core/domain/order.ts';
import { issueToken } from '../../../src/core/locations/webhook-tokens.ts';
import { pauseLocation, resumeLocation } from '../../../src/core/locations/locations.ts';
import { concludeCancellation } from '../../../src/core/cancellations/conclude-cancellation.ts';
import { concludePlacement } from '../../../src/core/placements/conclude-placement.ts';
import { problemOf } from '../../../src/core/domain/placement-cause.ts';
import { endCancelled, storeOrderRef } from '../../../src/core/placements/placement-outcomes.ts';
import { resolveAMinuteLater } from '../../support/resolve-a-minute-later.ts';
import { resolveThere } from '../../../src/core/placements/resolve-doubt.ts';
import { retryPlacement } from '../../../src/core/placements/retry-placement.ts';
import { beginAttempt } from '../../../src/core/placements/record-attempt.ts';
import { sampleOrder } from '../../support/sample-order.ts';
import { post, type System } from '../../support/start-system.ts';
import { until } from '../../support/until.ts';
import { lost, startTills, tooLate, type Tills } from './start-tills.ts';

let system: System;
let tills: Tills;

beforeAll(async () => {
  ({ system, tills } = await startTills());
});
afterEach(() => {
  tills.creates = tills.cancel = tills.reads = tills.finds = undefined;
  system.platform.answer = undefined;
});
afterAll(() => system?.stop());

const state = async (id: string): Promise<unknown> => (await system.placement(id))?.['state'];
const isIn = (id: string, wanted: string): Promise<unknown> => until(async () => (await state(id)) === wanted);
const cancellation = async (id: string): Promise<Record<string, unknown> | undefined> =>
  (await system.query('SELECT * FROM cancellations WHERE service_order_id = $1', [id]))[0];
const cancelIs = (id: string, wanted: string): Promise<Record<string, unknown>> =>
  until(async () => {
    const found = await cancellation(id);
    return found?.['state'] === wanted && found;
  });
/** What its member was told, and of the cancellation. */
const told = (id: string): string[] =>
  system.live(id).map(({ memberState, cancellation: c }) => (c === undefined ? memberState : `${memberState} ${c}`));
const isNotified = (id: string, last: string): Promise<unknown> => until(() => told(id).at(-1) === last);
const change = (order: CanonicalOrder, about: Partial<CanonicalOrder>): Promise<number> => {
  system.platform.orders.set(order.serviceOrderId, { ...order, ...about });
  return system.signal(order.serviceOrderId);
};
const CANCELLED = { cancelledAt: '2027-01-31T18:00:00Z', cancelReason: 'changed my mind' };
const cancel = (order: CanonicalOrder): Promise<number> => change(order, CANCELLED);
const noLook = (id: string): Promise<unknown> =>
  until(async () => (await system.query('SELECT FROM refreshes WHERE service_order_id = $1', [id])).length === 0);
const sentAt = async (locationId: string): Promise<CanonicalOrder> => {
  const order = await system.placeOrder({ locationId });
  await isIn(order.serviceOrderId, 'sent');
  return order;
};
/** An order whose ticket was made or not, with the answer lost. */
const inDoubtAt = async (locationId: string): Promise<CanonicalOrder> => {
  tills.creates = lost;
  const order = await system.placeOrder({ locationId });
  await isIn(order.serviceOrderId, 'in_doubt');
  return order;
};
const webhook = async (locationId: string, event: Partial<StatusEvent>): Promise<void> => {
  const { token, integration } = await issueToken(system.pool, { locationId });
  const url = `${system.urls[0]}/webhook/${integration}/${locationId}?token=${token}`;
  expect(await post(url, { says: [{ nativeStatus: 'SAYS SO', ...event }] })).toMatchObject({ status: 200 });
};
const tickets = (id: string): number => tills.tickets.filter((each) => each.serviceOrderId === id).length;
const cancels = (id: string): number => tills.cancels.filter((each) => each.serviceOrderId === id).length;
const attempts = (id: string): Promise<Record<string, unknown>[]> =>
  system.query('SELECT * FROM placement_attempts WHERE service_order_id = $1 ORDER BY attempt', [id]);
/** Lets time pass for one order's request and cancellation. */
const older = async (id: string, seconds: number): Promise<void> => {
  await system.query(
    `WITH p AS (
       UPDATE placements SET next_attempt_at = now(), request_ended_at = request_ended_at - make_interval(secs => $2)
       WHERE service_order_id = $1
     )
     UPDATE cancellations
     SET next_attempt_at = now(), deadline_at = deadline_at - make_interval(secs => $2)
     WHERE service_order_id = $1 AND next_attempt_at <> 'infinity'`,
    [id, seconds],
  );
};
/** Leaves a request to cancel as a process does that dies during it. */
const dies = async (id: string): Promise<void> => {
  await system.query(
    `WITH p AS (UPDATE placements SET attempts = attempts + 1 WHERE service_order_id = $1 RETURNING attempts)
     INSERT INTO placement_attempts (service_order_id, attempt, call) SELECT $1, attempts, 'cancelOrder' FROM p`,
    [id],
  );
  await system.query(`UPDATE cancellations SET state = 'due', next_attempt_at = now() WHERE service_order_id = $1`, [
    id,
  ]);
};

it('no transaction is open while the platform or the POS is called', async () => {
  const calls: string[] = [];
  const sessions = (): Promise<{ pid?: number; waits?: string | null }[]> =>
    system.query(
      `SELECT pid, CASE WHEN state LIKE 'idle in transaction%' THEN xact_start::text END AS waits
       FROM pg_stat_activity WHERE datname = current_database()`,
    );
  /** Answers once every transaction that was open has ended, and not because Postgres ended its session after 10 s. */
  const meanwhile = async (call: string): Promise<undefined> => {
    const open = (await sessions()).filter(({ waits }) => waits !== null);
    const later = await until(async () => {
      const now = await sessions();
      const still = now.some(({ pid, waits }) => open.some((each) => each.pid === pid && each.waits === waits));
      return !still && now.map(({ pid }) => pid);
    });
    calls.push(open.every(({ pid }) => later.includes(pid)) ? call : `${call} within a transaction`);
  };
  system.platform.answer = () => meanwhile('order');
  tills.creates = ({ serviceOrderId }) => {
    return async () => (await meanwhile('create')) ?? { providerOrderId: `pos-${serviceOrderId}` };
  };
  tills.cancel = () => async () => (await meanwhile('cancel')) ?? 'cancelled';
  const order = await sentAt('patient');
  await cancel(order);
  await isNotified(order.serviceOrderId, 'cancelled');
  expect(calls).toEqual(['order', 'create', 'order', 'cancel']);
});

describe('before it is sent', () => {
  it('one that the POS answered 503 may have a ticket all the same: the POS is asked', async () => {
    tills.creates = () => new TryAgain('the kitchen is closed', { sent: false, httpStatus: 503 });
    const order = await system.placeOrder({ locationId: 'exact' });
    const id = order.serviceOrderId;
    await until(async () => (await attempts(id)).some(({ outcome }) => outcome === 'TryAgain'));
    await cancel(order);
    await isNotified(id, 'cancelled');
    expect([tickets(id), cancels(id)]).toEqual([1, 1]);
  });

  it('one that is cancelled while the POS says that it is busy is withdrawn at once', async () => {
    const busy = Promise.withResolvers<never>();
    tills.creates = () => () => busy.promise;
    const order = await system.placeOrder({ locationId: 'exact' });
    const id = order.serviceOrderId;
    await until(async () => (await attempts(id)).length === 1);
    await cancel(order);
    await isNotified(id, 'placed requested');
    busy.reject(new TryAgain('later', { sent: false, httpStatus: 429, retryAfterMs: 600_000 }));
    await isIn(id, 'withdrawn');
  });

  it('is not withdrawn by a worker that slept while another one began to send it', async () => {
    const order = await inDoubtAt('blind');
    const id = order.serviceOrderId;
    await system.query(
      `WITH p AS (UPDATE placements SET attempts = attempts + 1 WHERE service_order_id = $1 RETURNING attempts)
       INSERT INTO placement_attempts (service_order_id, attempt, call) SELECT $1, attempts, 'createOrder' FROM p`,
      [id],
    );
    const withdrawn = { nativeStatus: 'withdrawn', state: 'withdrawn' } as const;
    expect(await endCancelled(system.pool, id, withdrawn)).toBeUndefined();
    expect(await state(id)).toBe('in_doubt');
  });

  it('an order that comes cancelled is recorded and ends cancelled, and no POS hears of it', async () => {
    const order = { ...sampleOrder({ locationId: 'exact' }), ...CANCELLED };
    const { serviceOrderId } = await system.placeOrder(order);
    await isIn(serviceOrderId, 'withdrawn');
    await isNotified(serviceOrderId, 'cancelled');
    expect(told(serviceOrderId).at(0)).toMatch(/^placed/);
    expect(tickets(serviceOrderId) + cancels(serviceOrderId)).toBe(0);
    expect(await cancelIs(serviceOrderId, 'cancelled')).toMatchObject({ requested_by: 'platform' });
    expect(await system.order(serviceOrderId)).toMatchObject({ status: 'cancelled', ended_at: expect.any(Date) });
  });

  it.each(['paused', 'not configured'])('one that waits since its location is %s is withdrawn', async (problemOf) => {
    const locationId = `${problemOf}-1`;
    if (problemOf === 'paused') {
      await system.addLocation(locationId, {}, 'exact');
      await pauseLocation(system.pool, locationId);
    }
    const order = await system.placeOrder({ locationId });
    await isIn(order.serviceOrderId, 'held');
    await cancel(order);
    await isIn(order.serviceOrderId, 'withdrawn');
    await isNotified(order.serviceOrderId, 'cancelled');
    expect(told(order.serviceOrderId)).not.toContain('placed requested');
    expect(tickets(order.serviceOrderId)).toBe(0);
  });

  it('a process that dies between the record and the withdrawal leaves it to the next', async () => {
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
    await isIn(id, 'withdrawn');
    await isNotified(id, 'cancelled');
    expect(tickets(id)).toBe(0);
  });

  it('no ticket is created once the cancel is committed, whoever holds the placement', async () => {
    await pauseLocation(system.pool, 'exact');
    try {
      const { serviceOrderId } = await system.placeOrder({ locationId: 'exact' });
      await isIn(serviceOrderId, 'held');
      const hold = (): Promise<unknown> =>
        system.query(
          `UPDATE placements SET lease_id = $2, lease_until = now() + interval '1 min', next_attempt_at = now()
           WHERE service_order_id = $1`,
          [serviceOrderId, claim.leaseId],
        );
      const claim = { serviceOrderId, leaseId: crypto.randomUUID() };
      const location = { locationId: 'exact', integration: 'exact', provider: { integration: 'exact' }, settings: {} };
      const begin = (call: 'createOrder' | 'findOrder'): Promise<number | undefined> =>
        beginAttempt(system.pool, claim, call, location as never);
      await hold();
      expect(await requestCancellation(system.pool, serviceOrderId)).toEqual({ serviceOrderId, cancel: 'withdraws' });
      // It has lost the placement, which is withdrawn without it.
      expect(await begin('createOrder')).toBeUndefined();
      await isIn(serviceOrderId, 'withdrawn');
      await system.query(
        `UPDATE placements SET finished_at = NULL, state = 'waiting', lease_id = $2, lease_until = now() + interval '1 min'
         WHERE service_order_id = $1`,
        [serviceOrderId, claim.leaseId],
      );
      await system.query('UPDATE orders SET ended_at = NULL, rank = 0 WHERE service_order_id = $1', [serviceOrderId]);
      // And one that has it does not begin, but may look for it.
      expect(await begin('createOrder')).toBeUndefined();
      expect(await begin('findOrder')).toEqual(expect.any(Number));
      await system.query(`DELETE FROM placement_attempts WHERE service_order_id = $1`, [serviceOrderId]);
    } finally {
      await resumeLocation(system.pool, 'exact');
    }
  });

  it('what a POS says of a withdrawn order is a conflict, which a person sees', async () => {
    await system.addLocation('shut', {}, 'exact');
    await pauseLocation(system.pool, 'shut');
    const order = await system.placeOrder({ locationId: 'shut' });
    const id = order.serviceOrderId;
    await isIn(id, 'held');
    await cancel(order);
    await isIn(id, 'withdrawn');
    expect(await retryPlacement(system.pool, id)).toMatchObject({ cause: { code: 'already_over' } });
    expect(await storeOrderRef(system.pool, id, 'exact', { providerOrderId: `late-${id}` })).toMatchObject({
      conflict: true,
    });
    expect(await state(id)).toBe('withdrawn');
    await webhook('shut', { serviceOrderId: id, status: 'received' });
    const history = await system.query(
      `SELECT outcome, conflict FROM status_events WHERE service_order_id = $1 ORDER BY event_id`,
      [id],
    );
    expect(history).toEqual([
      { outcome: 'applied', conflict: false },
      { outcome: 'stale', conflict: true },
    ]);
    expect(told(id).at(-1)).toBe('cancelled');
  });

  it('the POS gets no word of cancels with the order', async () => {
    const order = { ...sampleOrder({ locationId: 'exact' }), cancelReason: 'not cancelled at all' };
    const { serviceOrderId } = await system.placeOrder(order);
    await isIn(serviceOrderId, 'sent');
    expect(Object.keys(tills.tickets.find((each) => each.serviceOrderId === serviceOrderId) ?? {})).not.toContain(
      'cancelReason',
    );
  });
});

describe('at the POS', () => {
  it('one that wants us to wait for an hour is not waited for: the restaurant is telephoned in time', async () => {
    const order = await sentAt('exact');
    tills.cancel = () => new TryAgain('later', { sent: false, httpStatus: 429, retryAfterMs: 3_600_000 });
    await cancel(order);
    const found = await until(async () => {
      const each = await cancellation(order.serviceOrderId);
      return each?.['failures'] === 1 && each;
    });
    const deadline = found['deadline_at'] as Date;
    expect(found['next_attempt_at']).toEqual(new Date(deadline.getTime() - 5_000));
  });

  it('one that refused an operator is asked again for the member', async () => {
    const order = await sentAt('exact');
    const id = order.serviceOrderId;
    tills.cancel = (_id, nth) => (nth === 1 ? tooLate() : 'cancelled');
    await requestCancellation(system.pool, id);
    await isNotified(id, 'sent refused');
    await change(order, { notes: 'no onions' });
    await until(
      async () => (await system.query('SELECT FROM order_changes WHERE service_order_id = $1', [id])).length === 1,
    );
    await change(order, { notes: 'no onions', ...CANCELLED });
    await isNotified(id, 'cancelled');
    expect(cancels(id)).toBe(2);
  });

  it('whose words come once the member is erased leaves none of them', async () => {
    const order = await sentAt('blind');
    const id = order.serviceOrderId;
    tills.cancel = () => 'hang';
    await cancel(order);
    await until(() => cancels(id) === 1);
    await system.query('UPDATE orders SET erased_at = now() WHERE service_order_id = $1', [id]);
    await refuseCancellation(system.pool, id, { problem: 'Ada wants it', cause: { code: 'cancel_refused' } });
    expect(await cancellation(id)).toMatchObject({ state: 'refused', problem: null });
  });

  it('it is asked, and what it says is the end', async () => {
    const order = await sentAt('exact');
    const id = order.serviceOrderId;
    await cancel(order);
    await isNotified(id, 'cancelled');
    expect(tills.cancels.filter((each) => each.serviceOrderId === id)).toEqual([
      {
        ref: { providerOrderId: `pos-${id}` },
        serviceOrderId: id,
        reason: 'changed my mind',
        code: tills.tickets.find((each) => each.serviceOrderId === id)?.callOutCode ?? 'none',
      },
    ]);
    expect(told(id).filter((each) => each.startsWith('sent'))).toContain('sent requested');
    expect(system.live(id).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
    expect(await attempts(id)).toMatchObject([{ call: 'createOrder' }, { call: 'cancelOrder', outcome: 'cancelled' }]);
    expect(await cancelIs(id, 'cancelled')).toMatchObject({ lease_id: null, finished_at: expect.any(Date) });
  });

  it('a request to cancel is written down before it is made', async () => {
    const order = await sentAt('exact');
    let written: unknown;
    tills.cancel = (id) => async () => {
      written = (await attempts(id)).at(-1);
      return 'cancelled';
    };
    await cancel(order);
    await isNotified(order.serviceOrderId, 'cancelled');
    expect(written).toMatchObject({ call: 'cancelOrder', ended_at: null });
  });

  it('one that says so later is believed when it does', async () => {
    const order = await sentAt('exact');
    tills.cancel = () => 'requested';
    await cancel(order);
    await cancelIs(order.serviceOrderId, 'asked');
    expect(told(order.serviceOrderId)).not.toContain('cancelled');
    await webhook('exact', { serviceOrderId: order.serviceOrderId, status: 'cancelled' });
    await cancelIs(order.serviceOrderId, 'cancelled');
    await isNotified(order.serviceOrderId, 'cancelled');
  });

  it('one that never says so is for the telephone', async () => {
    const order = await sentAt('exact');
    tills.cancel = () => 'requested';
    await cancel(order);
    await cancelIs(order.serviceOrderId, 'asked');
    await older(order.serviceOrderId, 0);
    expect(await cancelIs(order.serviceOrderId, 'by_phone')).toMatchObject({ cause: { code: 'cancel_unconfirmed' } });
    expect(cancels(order.serviceOrderId)).toBe(1);
  });

  it('one that refuses goes on, and its member is told so beside the same status', async () => {
    const order = await sentAt('exact');
    tills.cancel = tooLate;
    await cancel(order);
    await isNotified(order.serviceOrderId, 'sent refused');
    expect(await cancelIs(order.serviceOrderId, 'refused')).toMatchObject({
      problem: expect.stringContaining('oven'),
      cause: { code: 'cancel_refused', httpStatus: 409 },
    });
    // The platform says it once more, and that is no news.
    await cancel(order);
    await noLook(order.serviceOrderId);
    await webhook('exact', { serviceOrderId: order.serviceOrderId, status: 'ready' });
    await isNotified(order.serviceOrderId, 'ready_for_pickup refused');
    expect(cancels(order.serviceOrderId)).toBe(1);
    // An operator may ask again.
    tills.cancel = () => 'cancelled';
    await requestCancellation(system.pool, order.serviceOrderId);
    await isNotified(order.serviceOrderId, 'cancelled');
  });

  it('one that ends meanwhile was too late for it', async () => {
    const order = await sentAt('exact');
    tills.cancel = () => 'requested';
    await cancel(order);
    await cancelIs(order.serviceOrderId, 'asked');
    await webhook('exact', { serviceOrderId: order.serviceOrderId, status: 'completed' });
    await cancelIs(order.serviceOrderId, 'refused');
    await isNotified(order.serviceOrderId, 'picked_up refused');
  });

  it('one that does not answer is asked again where it takes two as one', async () => {
    const order = await sentAt('exact');
    tills.cancel = (_id, nth) => (nth === 1 ? lost() : 'cancelled');
    await cancel(order);
    await isNotified(order.serviceOrderId, 'cancelled');
    expect(cancels(order.serviceOrderId)).toBe(2);
  });

  it('one that surely was not asked is asked again, until it is too late', async () => {
    const order = await sentAt('blind');
    tills.cancel = (_id, nth) => (nth === 1 ? new TryAgain('refused', { sent: false }) : 'cancelled');
    await cancel(order);
    await isNotified(order.serviceOrderId, 'cancelled');
    expect(cancels(order.serviceOrderId)).toBe(2);

    const late = await sentAt('blind');
    tills.cancel = () => new TryAgain('refused', { sent: false, retryAfterMs: 60_000 });
    await cancel(late);
    await until(async () => (await cancellation(late.serviceOrderId))?.['failures'] === 1);
    await older(late.serviceOrderId, 600);
    expect(await cancelIs(late.serviceOrderId, 'by_phone')).toMatchObject({
      cause: { code: 'cancel_deadline_passed' },
    });
  });

  it('one that hangs is waited for until the deadline, and then a person telephones', async () => {
    const order = await sentAt('patient');
    tills.cancel = (_id, nth) => (nth === 1 ? new TryAgain('busy', { sent: false, retryAfterMs: 60_000 }) : 'hang');
    await cancel(order);
    await until(async () => (await cancellation(order.serviceOrderId))?.['failures'] === 1);
    await older(order.serviceOrderId, 598);
    await cancelIs(order.serviceOrderId, 'by_phone');
  });

  it.each(['lost', 'died'])('one that takes two as two is asked once, where the answer was %s', async (how) => {
    const order = await sentAt('blind');
    const id = order.serviceOrderId;
    if (how === 'lost') {
      tills.cancel = lost;
      await cancel(order);
      await cancelIs(id, 'in_doubt');
      await older(id, 0);
    } else {
      tills.cancel = () => new TryAgain('refused', { sent: false, retryAfterMs: 60_000 });
      await cancel(order);
      await until(async () => (await cancellation(id))?.['failures'] === 1);
      tills.cancel = undefined;
      await dies(id);
    }
    expect(await cancelIs(id, 'by_phone')).toMatchObject({ cause: { code: 'cancel_in_doubt' } });
    expect(cancels(id)).toBe(1);
    expect((await attempts(id)).filter((each) => each['ended_at'] === null)).toEqual([]);
    expect(told(id)).not.toContain('cancelled');
  });

  it('one whose answer was lost is read again where it can be', async () => {
    const order = await sentAt('asked');
    tills.cancel = lost;
    tills.reads = (serviceOrderId) => [{ status: 'cancelled', nativeStatus: 'VOID', serviceOrderId }];
    await cancel(order);
    await cancelIs(order.serviceOrderId, 'in_doubt');
    await older(order.serviceOrderId, 0);
    await isNotified(order.serviceOrderId, 'cancelled');
    expect(cancels(order.serviceOrderId)).toBe(1);
  });

  it.each([{ serviceOrderId: 'another' }, { providerOrderId: 'another' }])(
    'what is read about another order says nothing of the cancel: %j',
    async (about) => {
      const order = await sentAt('asked');
      tills.cancel = lost;
      tills.reads = () => [{ status: 'cancelled', nativeStatus: 'VOID', ...about }] as StatusEvent[];
      await cancel(order);
      await cancelIs(order.serviceOrderId, 'in_doubt');
      await older(order.serviceOrderId, 0);
      await cancelIs(order.serviceOrderId, 'by_phone');
    },
  );

  it.each([
    ['fails', (id: string) => webhook('exact', { serviceOrderId: id, status: 'failed' })],
    [
      'ends unheard',
      (id: string) => system.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1', [id]),
    ],
  ])('one whose order %s was refused by nobody', async (_what, ends) => {
    const order = await sentAt('exact');
    const id = order.serviceOrderId;
    tills.cancel = () => 'requested';
    await cancel(order);
    await cancelIs(id, 'asked');
    await ends(id);
    const over = await until(async () => {
      const found = await cancellation(id);
      return found?.['finished_at'] instanceof Date && found;
    });
    expect(over).toMatchObject({ state: 'asked' });
  });

  it('one that cannot cancel, or has no such ticket, is for the telephone at once', async () => {
    const order = await sentAt('mute');
    await cancel(order);
    expect(await cancelIs(order.serviceOrderId, 'by_phone')).toMatchObject({ cause: { code: 'pos_cannot_cancel' } });
    await until(() => told(order.serviceOrderId).includes('sent requested'));

    const gone = await sentAt('exact');
    tills.cancel = () => 'absent';
    await cancel(gone);
    expect(await cancelIs(gone.serviceOrderId, 'by_phone')).toMatchObject({ cause: { code: 'cancel_ticket_missing' } });

    const silent = await sentAt('exact');
    tills.cancel = () => undefined;
    await cancel(silent);
    await cancelIs(silent.serviceOrderId, 'by_phone');
  });

  it('another account or integration of the location is not asked', async () => {
    await system.addLocation('moving', { account: 'one' }, 'exact');
    const order = await sentAt('moving');
    await system.addLocation('moving', { account: 'two' }, 'exact');
    await cancel(order);
    expect(await cancelIs(order.serviceOrderId, 'by_phone')).toMatchObject({ cause: { code: 'pos_account_changed' } });
    expect(cancels(order.serviceOrderId)).toBe(0);
  });

  it('one that hangs delays nobody at another location, and has one call at a time', async () => {
    for (const locationId of ['hangs', 'works']) await system.addLocation(locationId, {}, 'exact');
    const stuck = [await sentAt('hangs'), await sentAt('hangs')];
    const free = await sentAt('works');
    let underWay = 0;
    let most = 0;
    const answered = Promise.withResolvers<void>();
    tills.cancel = (id) => {
      if (id === free.serviceOrderId) return 'cancelled';
      most = Math.max(most, (underWay += 1));
      return async () => {
        await answered.promise;
        underWay -= 1;
        return 'cancelled';
      };
    };
    for (const order of stuck) await cancel(order);
    await until(() => underWay === 1);
    await cancel(free);
    await isNotified(free.serviceOrderId, 'cancelled');
    answered.resolve();
    for (const { serviceOrderId } of stuck) await isNotified(serviceOrderId, 'cancelled');
    expect(most).toBe(1);
  });

  it('a call that is under way goes on, and its ticket is cancelled then', async () => {
    let answer = (): void => {};
    tills.creates =
      ({ serviceOrderId }) =>
      async () => {
        await new Promise<void>((resolve) => (answer = resolve));
        return { providerOrderId: `pos-${serviceOrderId}` };
      };
    const order = await system.placeOrder({ locationId: 'exact' });
    await until(() => tickets(order.serviceOrderId) === 1);
    await cancel(order);
    await isNotified(order.serviceOrderId, 'placed requested');
    await sleep(300);
    expect(await state(order.serviceOrderId)).toBe('waiting');
    answer();
    await isNotified(order.serviceOrderId, 'cancelled');
    expect(await state(order.serviceOrderId)).toBe('sent');
    expect(cancels(order.serviceOrderId)).toBe(1);
  });
});

describe('in doubt', () => {
  it('a POS that can be asked says that it is there, and cancels it', async () => {
    const order = await inDoubtAt('asked');
    tills.finds = (id) => ({ providerOrderId: `pos-${id}` });
    await cancel(order);
    await isNotified(order.serviceOrderId, 'cancelled');
    expect(await state(order.serviceOrderId)).toBe('sent');
    expect(cancels(order.serviceOrderId)).toBe(1);
  });

  it('it is looked for at a location that is paused', async () => {
    await system.addLocation('shuts', {}, 'asked');
    const order = await inDoubtAt('shuts');
    await pauseLocation(system.pool, 'shuts');
    tills.finds = (id) => ({ providerOrderId: `pos-${id}` });
    await cancel(order);
    await isNotified(order.serviceOrderId, 'cancelled');
  });

  it('a webhook that is quicker than "absent" wins: there is a ticket', async () => {
    const order = await inDoubtAt('exact');
    const id = order.serviceOrderId;
    tills.cancel = () => async () => {
      await webhook('exact', { serviceOrderId: id, status: 'received' });
      return 'absent';
    };
    // It is not sent again before it is cancelled, which would make its last request young.
    await system.query(
      `UPDATE placements SET next_attempt_at = now() + interval '1 h', request_ended_at = request_ended_at - interval '60 s'
       WHERE service_order_id = $1`,
      [id],
    );
    await cancel(order);
    expect(await cancelIs(id, 'by_phone')).toMatchObject({ cause: { code: 'cancel_ticket_missing' } });
    expect(await state(id)).toBe('sent');
    expect(told(id)).not.toContain('cancelled');
  });

  it('it is asked to cancel once, if a person says during the request that the ticket is there, and the process dies', async () => {
    const { serviceOrderId: id, ...order } = await inDoubtAt('blind');
    const answer = Promise.withResolvers<never>();
    tills.cancel = () => () => answer.promise;
    await cancel({ serviceOrderId: id, ...order });
    await until(() => cancels(id) === 1);
    expect(await resolveThere(system.pool, id, {})).toMatchObject({ state: 'sent' });
    await system.query(
      'UPDATE cancellations SET lease_id = gen_random_uuid(), lease_until = now() WHERE service_order_id = $1',
      [id],
    );
    expect(await cancelIs(id, 'by_phone')).toMatchObject({ cause: { code: 'cancel_in_doubt' } });
    expect(cancels(id)).toBe(1);
    answer.reject(lost());
  });

  it('a POS that can be asked says that it is not there, a minute later: it is withdrawn, and not sent again', async () => {
    const order = await inDoubtAt('asked');
    const id = order.serviceOrderId;
    await cancel(order);
    await until(async () => (await system.placement(id))?.['cause'] !== null && (await cancellation(id)) !== undefined);
    await sleep(300);
    expect(await state(id)).toBe('in_doubt');
    await older(id, 60);
    await isIn(id, 'withdrawn');
    expect((await attempts(id)).filter(({ call }) => call === 'createOrder')).toHaveLength(1);
    expect(cancels(id)).toBe(0);
    await isNotified(id, 'cancelled');
  });

  it('one that is cancelled in the very moment in which the POS says so is withdrawn at once', async () => {
    const order = await inDoubtAt('asked');
    const id = order.serviceOrderId;
    const answer = Promise.withResolvers<undefined>();
    tills.finds = () => answer.promise;
    await older(id, 60);
    await until(async () => (await attempts(id)).some(({ call, ended_at: ended }) => call === 'findOrder' && !ended));
    await cancel(order);
    await until(() => cancellation(id));
    answer.resolve(undefined);
    await isIn(id, 'withdrawn');
    expect((await attempts(id)).filter(({ call }) => call === 'createOrder')).toHaveLength(1);
  });

  it('one that cannot be asked is asked to cancel it, and does: there was a ticket', async () => {
    const order = await inDoubtAt('exact');
    await cancel(order);
    await isNotified(order.serviceOrderId, 'cancelled');
    expect(await state(order.serviceOrderId)).toBe('sent');
    const requestedAt = (await cancellation(order.serviceOrderId))?.['requested_at'] as Date;
    const sent = (await attempts(order.serviceOrderId)).filter(({ call }) => call === 'createOrder');
    expect(sent.filter((each) => (each['started_at'] as Date) > requestedAt)).toEqual([]);
  });

  it('one that will say so has not said that there is a ticket', async () => {
    const order = await inDoubtAt('exact');
    tills.cancel = () => 'requested';
    await cancel(order);
    await cancelIs(order.serviceOrderId, 'asked');
    expect(await state(order.serviceOrderId)).toBe('in_doubt');
    await webhook('exact', { serviceOrderId: order.serviceOrderId, status: 'cancelled' });
    await isNotified(order.serviceOrderId, 'cancelled');
  });

  it('"absent" counts a minute after the request, and then it is withdrawn', async () => {
    const order = await inDoubtAt('exact');
    const id = order.serviceOrderId;
    tills.cancel = () => 'absent';
    await cancel(order);
    await until(async () => (await cancellation(id))?.['failures'] === 1);
    expect(await state(id)).toBe('in_doubt');
    await older(id, 60);
    await isIn(id, 'withdrawn');
    await isNotified(id, 'cancelled');
  });

  it('where nobody can be asked, a person says what became of both', async () => {
    const [gone, made] = [await inDoubtAt('mute'), await inDoubtAt('mute')];
    for (const order of [gone, made]) {
      await cancel(order);
      await cancelIs(order.serviceOrderId, 'by_phone');
      expect(await system.placement(order.serviceOrderId)).toMatchObject({
        state: 'in_doubt',
        cause: { code: 'cancelled_in_doubt' },
        next_attempt_at: Infinity,
      });
    }
    await concludeByPhone(system.pool, gone.serviceOrderId, true);
    await isNotified(gone.serviceOrderId, 'cancelled');
    await concludeByPhone(system.pool, made.serviceOrderId, false);
    expect(await state(made.serviceOrderId)).toBe('sent');
    await isNotified(made.serviceOrderId, 'sent refused');
  });

  const unsure = new TryAgain('later', { sent: false, httpStatus: 503 });
  const busy = new TryAgain('later', { sent: false, httpStatus: 429, retryAfterMs: 600_000 });

  it('a person who finds no ticket withdraws it with that word', async () => {
    tills.creates = () => unsure;
    const order = await system.placeOrder({ locationId: 'mute' });
    const id = order.serviceOrderId;
    await until(async () => (await attempts(id)).some(({ outcome }) => outcome === 'TryAgain'));
    await cancel(order);
    await until(async () => (await system.placement(id))?.['next_attempt_at'] === Infinity);
    expect(await resolveAMinuteLater(system, id)).toMatchObject({ state: 'withdrawn' });
    expect(await state(id)).toBe('withdrawn');
    await isNotified(id, 'cancelled');
  });

  it('what was answered before a person found no ticket says nothing of a later cancel', async () => {
    tills.creates = () => unsure;
    const order = await system.placeOrder({ locationId: 'blind' });
    const id = order.serviceOrderId;
    await isIn(id, 'in_doubt');
    tills.creates = () => busy;
    expect(await resolveAMinuteLater(system, id)).toMatchObject({ state: 'waiting' });
    await until(async () => (await attempts(id)).at(-1)?.['http_status'] === 429);
    await cancel(order);
    await isIn(id, 'withdrawn');
  });
});

describe('an operator', () => {
  it('has an order cancelled that the platform has not', async () => {
    const { serviceOrderId } = await sentAt('exact');
    expect(await requestCancellation(system.pool, serviceOrderId)).toEqual({ serviceOrderId, cancel: 'asks_pos' });
    await isNotified(serviceOrderId, 'cancelled');
    expect(await cancellation(serviceOrderId)).toMatchObject({ requested_by: 'operator' });
  });

  it('says what the restaurant said', async () => {
    const order = await sentAt('mute');
    await cancel(order);
    await cancelIs(order.serviceOrderId, 'by_phone');
    expect(await concludeByPhone(system.pool, order.serviceOrderId, true)).toMatchObject({ cancellation: 'cancelled' });
    await isNotified(order.serviceOrderId, 'cancelled');
  });

  it('says it also of an order whose process died while it called, and of which a webhook then came', async () => {
    const order = await sentAt('mute');
    const open = `UPDATE placement_attempts SET ended_at = NULL, outcome = 'started' WHERE service_order_id = $1`;
    await system.query(open, [order.serviceOrderId]);
    await cancel(order);
    await cancelIs(order.serviceOrderId, 'by_phone');
    expect(await concludeByPhone(system.pool, order.serviceOrderId, true)).toMatchObject({ cancellation: 'cancelled' });
  });

  it('is refused what cannot be', async () => {
    const order = await sentAt('mute');
    const id = order.serviceOrderId;
    const code = (answer: unknown): unknown => (answer as { cause?: { code: string } } | undefined)?.cause?.code;
    expect(await requestCancellation(system.pool, 'nobody')).toBeUndefined();
    expect(await concludeByPhone(system.pool, 'nobody', true)).toBeUndefined();
    expect(code(await concludeByPhone(system.pool, id, true))).toBe('not_to_be_cancelled');
    await webhook('mute', { serviceOrderId: id, status: 'completed' });
    expect(code(await requestCancellation(system.pool, id))).toBe('already_over');
    expect(code(await concludeByPhone(system.pool, id, true))).toBe('already_over');
    system.platform.answer = () => 'down';
    const { serviceOrderId } = await system.placeOrder();
    expect(code(await requestCancellation(system.pool, serviceOrderId))).toBe('never_read');
  });
});

it('a lost answer whose worker has lost the lease leaves the attempt open, so the next worker sees the doubt', async () => {
  const busy = Promise.withResolvers<never>();
  tills.creates = () => () => busy.promise;
  const { serviceOrderId } = await system.placeOrder({ locationId: 'patient' });
  const [attempt] = await until(async () => {
    const begun = await attempts(serviceOrderId);
    return begun.length > 0 && begun;
  });
  await concludePlacement(
    { pool: system.pool, observe() {} } as never,
    { serviceOrderId, leaseId: crypto.randomUUID(), dueAt: '2027-01-31', state: 'waiting', failures: 0 } as never,
    {
      do: 'ask operator',
      requestEnded: true,
      ...problemOf({ code: 'pos_silent' }),
      end: { attempt: Number(attempt?.['attempt']), outcome: 'TryAgain', milliseconds: 1 },
    },
  );
  expect(await attempts(serviceOrderId)).toMatchObject([{ ended_at: null }]);
  busy.reject(lost());
  await isIn(serviceOrderId, 'in_doubt');
});

it('so does the lost answer of a cancel', async () => {
  const busy = Promise.withResolvers<never>();
  tills.cancel = () => () => busy.promise;
  const { serviceOrderId } = await sentAt('blind').then(async (order) => (await cancel(order), order));
  await until(() => cancels(serviceOrderId) === 1);
  await concludeCancellation(
    { pool: system.pool, observe() {}, onLive() {} },
    { serviceOrderId, leaseId: crypto.randomUUID() } as never,
    { do: 'doubt', ...problemOf({ code: 'pos_silent' }), end: { attempt: 2, outcome: 'TryAgain', milliseconds: 1 } },
  );
  expect((await attempts(serviceOrderId)).at(-1)).toMatchObject({ call: 'cancelOrder', ended_at: null });
  busy.reject(lost());
  await cancelIs(serviceOrderId, 'in_doubt');
});
