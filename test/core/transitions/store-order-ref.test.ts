import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endOrders } from '../../../src/core/retention/retention-rules.ts';
import { TryAgain } from '../../../src/core/domain/errors.ts';
import { pauseLocation } from '../../../src/core/kitchens/pause-location.ts';
import type { LiveMessage } from '../../../src/core/domain/live-message.ts';
import { resolveThere } from '../../../src/core/placements/resolve-doubt.ts';
import { plainProvider } from '../../support/location-rules.ts';
import { resolveAMinuteLater } from '../../support/resolve-a-minute-later.ts';
import { startSystem, type System } from '../../../world/system/start-system.ts';

/** A POS that loses its answers, and cannot be asked. */
const forgetful = plainProvider('forgetful', {
  deduplicates: false,
  createOrder: () => Promise.reject(new TryAgain('no answer', { sent: true })),
});

let system: System;

beforeAll(async () => {
  system = await startSystem({ providers: [forgetful], stepped: ['placements', 'relay'] });
  for (const locationId of ['club-1', 'paused', 'wrong']) await system.addLocation(locationId, {}, 'forgetful');
  await pauseLocation(system.pool, 'paused');
  await system.query(`UPDATE locations SET settings = 'unreadable' WHERE location_id = 'wrong'`);
});
afterAll(() => system.stop());

/** Does a turn of the workers, after the wait for the next attempt. */
async function turn(id: string): Promise<unknown> {
  await system.query('UPDATE placements SET next_attempt_at = now() WHERE service_order_id = $1', [id]);
  await system.round('placements');
  return system.placement(id);
}

/** An order that nobody has heard of for two days. */
async function forgotten(locationId: string, state: string): Promise<string> {
  const { serviceOrderId } = await system.placeOrder({ locationId });
  expect(await turn(serviceOrderId)).toMatchObject({ state });
  await system.query(
    `WITH p AS (UPDATE placements SET deadline_at = now() + interval '1 day' WHERE service_order_id = $1)
     UPDATE orders SET created_at = now() - interval '2 days', updated_at = now() - interval '2 days', requested_at = NULL
     WHERE service_order_id = $1`,
    [serviceOrderId],
  );
  return serviceOrderId;
}

const ended = async (id: string): Promise<boolean> => (await system.order(id))?.['ended_at'] instanceof Date;

async function told(id: string): Promise<LiveMessage[]> {
  await system.finish('relay');
  return system.live(id);
}

describe('an order without news for a day', () => {
  it('ends, and keeps its status when the POS turns out to have the order', async () => {
    const id = await forgotten('club-1', 'in_doubt');
    await endOrders(system.pool);
    expect(await system.order(id)).toMatchObject({ ended_at: expect.any(Date), rank: 0, sequence: 1 });
    expect(await resolveThere(system.pool, id, { providerOrderId: 'pos-9' })).toEqual({
      serviceOrderId: id,
      state: 'sent',
      redriven: 0,
    });
    expect(await system.order(id)).toMatchObject({ rank: 0, sequence: 1, status: null, provider_order_id: 'pos-9' });
    expect(await system.placement(id)).toMatchObject({ state: 'sent', provider_order_id: 'pos-9' });
    expect(
      await system.query(`SELECT service_order_id FROM provider_orders WHERE provider_order_id = 'pos-9'`),
    ).toEqual([{ service_order_id: id }]);
    expect(await told(id)).toMatchObject([{ sequence: 1 }]);
  });

  it.each([
    ['is paused', 'paused'],
    ['has never been configured', 'nowhere'],
    ['is misconfigured', 'wrong'],
  ])('ends, and the member gets the reason, even if the order is held because its location %s', async (_what, at) => {
    const id = await forgotten(at, 'held');
    await endOrders(system.pool);
    expect(await ended(id)).toBe(true);
    expect(await turn(id)).toMatchObject({
      state: 'failed',
      problem: 'the order has ended',
      finished_at: expect.any(Date),
    });
    expect(await system.order(id)).toMatchObject({ sequence: 2, status: 'failed', failed_by_us: true });
    expect((await told(id))[1]).toMatchObject({
      memberState: 'failed',
      reason: 'the restaurant could not take the order',
    });
  });

  it('that is in doubt ends, but fails only after an operator finds no ticket', async () => {
    const id = await forgotten('club-1', 'in_doubt');
    await endOrders(system.pool);
    // A POS that is asked automatically, or a location that was paused, makes it due.
    expect(await turn(id)).toMatchObject({
      state: 'in_doubt',
      next_attempt_at: Infinity,
      cause: { code: 'order_ended_in_doubt' },
    });
    expect(system.logged.some((line) => line.includes('an operator must say') && line.includes(id))).toBe(true);
    expect(await told(id)).toMatchObject([{ sequence: 1 }]);
    expect(await resolveAMinuteLater(system, id)).toMatchObject({ state: 'waiting' });
    expect(await turn(id)).toMatchObject({ state: 'failed' });
    expect((await told(id))[1]).toMatchObject({ memberState: 'failed', sequence: 2 });
  });

  it.each([
    ['still waits', `state = 'waiting'`],
    ['is held, and is being tried', `lease_until = now() + interval '30 s'`],
  ])('does not end if its placement %s', async (_what, placement) => {
    const id = await forgotten('paused', 'held');
    await system.query(
      `UPDATE placements SET ${placement}, next_attempt_at = now() + interval '1 hour' WHERE service_order_id = $1`,
      [id],
    );
    await endOrders(system.pool);
    expect(await ended(id)).toBe(false);
  });
});
