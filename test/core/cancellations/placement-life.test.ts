import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { GiveUp, NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import type { CanonicalOrder } from '../../../src/core/domain/order.ts';
import {
  HAPPENINGS,
  PLACEMENT_LIFE,
  PLACEMENT_STATES,
  type CONSEQUENCES,
  type PlacementState,
} from '../../../src/core/domain/placement.ts';
import { post } from '../../../world/system/start-system.ts';
import { startTills, type Shop } from './start-tills.ts';

let shop: Shop;
beforeAll(async () => {
  shop = await startTills();
});
afterEach(() => shop.rest());
afterAll(() => shop?.system.stop());

const CANCELLED = { cancelledAt: '2027-01-31T18:00:00Z' };
/** What the till answers, so that a new order gets into a state and stays there. */
const ANSWERS: Record<PlacementState, Error | undefined> = {
  waiting: new TryAgain('busy', { sent: false, httpStatus: 429 }),
  held: new NeedsOperator('the password is wrong', { httpStatus: 401 }),
  in_doubt: new TryAgain('out of order', { sent: false, httpStatus: 503 }),
  sent: undefined,
  failed: new GiveUp('sold out', { reason: 'It is sold out.' }),
  withdrawn: new TryAgain('busy', { sent: false, httpStatus: 429 }),
};
async function orderThatIs(state: PlacementState): Promise<{ order: CanonicalOrder; id: string }> {
  const { tills, place, change, later } = shop;
  const answer = ANSWERS[state];
  tills.creates = answer && ((): Error => answer);
  const placed = await place({ locationId: 'exact' });
  if (state === 'withdrawn') {
    await change(placed.order, CANCELLED);
    await later(placed.id, 0);
  }
  expect(await shop.state(placed.id)).toBe(state);
  return placed;
}

const HAPPEN: Record<(typeof HAPPENINGS)[number], (order: CanonicalOrder) => Promise<unknown>> = {
  cancelled: (order) => shop.change(order, CANCELLED),
  changed: (order) => shop.change(order, { notes: 'no onions' }),
  moved: (order) => shop.change(order, { locationId: 'mute' }),
  late: (order) => shop.later(order.serviceOrderId, 1_801),
  reported: async ({ serviceOrderId }) =>
    post(await shop.system.webhookUrl('exact'), {
      says: [{ serviceOrderId, status: 'received', nativeStatus: 'SEEN' }],
    }),
};

/** What can be seen of an order. */
const look = async (id: string): Promise<Record<string, unknown>> =>
  (
    await shop.system.query(
      `SELECT p.state, o.location_id AS at, c.state AS cancel, c.fails_with IS NOT NULL AS "calledOff",
              d.contents ->> 'notes' AS notes, EXISTS (SELECT FROM order_changes WHERE service_order_id = $1) AS differs,
              EXISTS (SELECT FROM refreshes WHERE service_order_id = $1) AS deferred,
              EXISTS (SELECT FROM status_events WHERE service_order_id = $1 AND conflict) AS conflict
       FROM placements p JOIN orders o USING (service_order_id) LEFT JOIN cancellations c USING (service_order_id)
       LEFT JOIN order_contents d USING (service_order_id)
       WHERE service_order_id = $1`,
      [id],
    )
  )[0] ?? {};

/** What became of an order, from what can be seen before and afterwards. */
function consequence(was: Record<string, unknown>, is: Record<string, unknown>): keyof typeof CONSEQUENCES {
  if (is['conflict'] !== was['conflict']) return 'conflict';
  if (is['cancel'] !== was['cancel'] && is['state'] !== 'withdrawn')
    return is['calledOff'] ? 'called off' : 'cancelled';
  if (is['state'] !== was['state']) return is['state'] === 'failed' ? 'fails' : (is['state'] as 'sent' | 'withdrawn');
  if (is['at'] !== was['at'] || is['notes'] !== was['notes']) return 'replaced';
  if (is['differs']) return 'shown';
  return is['deferred'] ? 'deferred' : 'nothing';
}

describe.each(PLACEMENT_STATES)('an order that is %s', (state) => {
  it.each(HAPPENINGS)('is handled as PLACEMENT_LIFE says when it is %s', async (happening) => {
    const { order, id } = await orderThatIs(state);
    const before = await look(id);
    await HAPPEN[happening](order);
    await shop.later(id, 0);
    expect(consequence(before, await look(id))).toBe(PLACEMENT_LIFE[state][happening]);
  });
});
