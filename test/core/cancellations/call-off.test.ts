import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { concludeByPhone } from '../../../src/core/cancellations/operator-cancellations.ts';
import { GiveUp, TryAgain } from '../../../src/core/domain/errors.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { post, type System } from '../../../world/system/start-system.ts';
import { startTills, tooLate, type Shop, type Tills } from './start-tills.ts';

let system: System;
let tills: Tills;
let shop: Shop;
beforeAll(async () => {
  shop = await startTills();
  ({ system, tills } = shop);
});
afterEach(() => shop.rest());
afterAll(() => system?.stop());

const failing = (): TryAgain => new TryAgain('the POS answers 503', { sent: false, httpStatus: 503 });
/** An order that its till took, although it answered 503. */
const takenAt = async (locationId: string): ReturnType<Shop['place']> => {
  tills.creates = failing;
  const placed = await shop.place({ locationId }, 'in_doubt');
  expect(await shop.told(placed.id)).toEqual(['placed']);
  return placed;
};
const later = (id: string, seconds: number): Promise<void> => shop.later(id, seconds);
const DEADLINE_S = 1_801;
const cancelsOf = (id: string): number => tills.cancels.filter(({ serviceOrderId }) => serviceOrderId === id).length;
const ticketsOf = (id: string): number => tills.tickets.filter(({ serviceOrderId }) => serviceOrderId === id).length;
const rowsOf = async (id: string): Promise<unknown> =>
  (
    await system.query(
      `SELECT p.state, c.state AS cancel, o.cancellation, o.reason, o.reason_code AS code
       FROM placements p JOIN orders o USING (service_order_id) LEFT JOIN cancellations c USING (service_order_id)
       WHERE service_order_id = $1`,
      [id],
    )
  )[0];

describe('past its deadline, an order that the POS took but answered with 503', () => {
  it('fails only once the POS has cancelled its ticket', async () => {
    const { id } = await takenAt('exact');
    tills.cancel = failing;
    await later(id, DEADLINE_S);
    expect(cancelsOf(id)).toBe(1);
    expect(await shop.told(id)).toEqual(['placed']);
    tills.cancel = undefined;
    await later(id, 30);
    expect(await rowsOf(id)).toEqual({
      state: 'sent',
      cancel: 'cancelled',
      cancellation: 'requested',
      reason: 'could not reach the POS',
      code: 'no_answer',
    });
    expect(await shop.told(id)).toEqual(['placed', 'failed']);
    expect(ticketsOf(id)).toBe(1);
  });

  it('fails if the POS has no ticket for the order a minute after the last request', async () => {
    const { id } = await takenAt('exact');
    tills.cancel = () => 'absent';
    await later(id, DEADLINE_S);
    expect(await rowsOf(id)).toMatchObject({ state: 'failed', code: 'no_answer' });
    expect(await shop.told(id)).toEqual(['placed', 'failed']);
  });

  it('continues if the kitchen prepares it and the POS refuses to cancel', async () => {
    const { id } = await takenAt('exact');
    tills.cancel = failing;
    await later(id, DEADLINE_S);
    const says = [{ serviceOrderId: id, status: 'in_progress', nativeStatus: 'COOKING' }];
    expect(await post(await system.webhookUrl('exact'), { says })).toMatchObject({ status: 200 });
    expect((await shop.told(id)).at(-1)).toBe('preparing');
    expect(system.live(id).at(-1)).not.toHaveProperty('cancellation');
    tills.cancel = tooLate;
    await later(id, 30);
    expect(await rowsOf(id)).toMatchObject({ state: 'sent', cancel: 'refused', cancellation: null });
    expect((await shop.told(id)).at(-1)).toBe('preparing');
  });

  it('completes if the kitchen hands it out, and the member is not notified of the attempt to cancel', async () => {
    const { id } = await takenAt('exact');
    tills.cancel = failing;
    await later(id, DEADLINE_S);
    const says = [{ serviceOrderId: id, status: 'completed', nativeStatus: 'OUT' }];
    expect(await post(await system.webhookUrl('exact'), { says })).toMatchObject({ status: 200 });
    await later(id, 1);
    expect(await rowsOf(id)).toMatchObject({ state: 'sent', cancel: 'refused' });
    await shop.told(id);
    expect(system.live(id).at(-1)).toMatchObject({ memberState: 'picked_up' });
    expect(system.live(id).at(-1)).not.toHaveProperty('cancellation');
  });

  it('is left to a person if the POS cannot cancel, and fails once the restaurant has cancelled it', async () => {
    const { id } = await takenAt('mute');
    await later(id, DEADLINE_S);
    expect(await rowsOf(id)).toMatchObject({ state: 'in_doubt', cancel: 'by_phone' });
    expect(await shop.told(id)).toEqual(['placed']);
    await concludeByPhone(system.pool, id, true);
    expect(await shop.told(id)).toEqual(['placed', 'failed']);
  });

  it('ends as cancelled, not as failed, if the member cancels the order before the POS confirms our cancel', async () => {
    const { order, id } = await takenAt('exact');
    tills.cancel = failing;
    await later(id, DEADLINE_S);
    await shop.change(order, { cancelledAt: '2027-01-31T18:00:00Z', cancelReason: 'too late' });
    tills.cancel = undefined;
    await later(id, 30);
    expect(await shop.told(id)).toEqual(['placed', 'cancelled']);
    expect(system.live(id).at(-1)?.reasonCode).toBe('member_cancelled');
  });
});

it('when the POS refuses a repeated order, the service cancels the ticket that the first request may have made', async () => {
  const { id } = await takenAt('exact');
  tills.creates = () => new GiveUp('sold out', { reason: 'It is sold out.', reasonCode: 'item_unavailable' });
  await later(id, 30);
  expect([ticketsOf(id), cancelsOf(id)]).toEqual([1, 1]);
  expect(await rowsOf(id)).toMatchObject({ cancel: 'cancelled', reason: 'It is sold out.', code: 'item_unavailable' });
  expect((await shop.told(id)).at(-1)).toBe('failed');
});

describe('an order in doubt', () => {
  it.each([
    ['is down', 'down' as const, expect.any(Date)],
    ['has no such order', 'null' as const, Infinity],
  ])('stays in doubt when the platform %s', async (_what, fault, next) => {
    const id = sampleOrder().serviceOrderId;
    system.platform.answer = () => fault;
    await system.signal(id);
    await system.round('placements');
    // As `recover` does.
    await system.query(
      `UPDATE placements SET state = 'in_doubt', doubt_since = now(), next_attempt_at = now() WHERE service_order_id = $1`,
      [id],
    );
    await later(id, 0);
    expect(await system.placement(id)).toMatchObject({ state: 'in_doubt', next_attempt_at: expect.any(Date) });
    await later(id, DEADLINE_S);
    expect(await system.placement(id)).toMatchObject({ state: 'in_doubt', next_attempt_at: next });
  });

  it('cannot leave doubt by a statement that only clears doubt_since or sets the state failed', async () => {
    const { id } = await takenAt('exact');
    await system.query(`UPDATE placements SET state = 'waiting', doubt_since = NULL WHERE service_order_id = $1`, [id]);
    expect(await system.placement(id)).toMatchObject({ state: 'in_doubt', doubt_since: expect.any(Date) });
    const failed = system.query(
      `UPDATE placements SET state = 'failed', finished_at = now() WHERE service_order_id = $1`,
      [id],
    );
    await expect(failed).rejects.toThrow('may have a ticket, so it does not become failed');
  });
});
