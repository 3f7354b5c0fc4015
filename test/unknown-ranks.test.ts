import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RANK_SENT, rankOf } from '../src/core/domain/lifecycle.ts';
import { resolveThere } from '../src/core/placements/resolve-doubt.ts';
import { redriveParked } from '../src/core/statuses/redrive-parked.ts';
import { BoardOrders } from '../src/core/orders/board-feed.ts';
import { Attention } from '../src/core/orders/sample-attention.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../world/system/ask-operator.ts';
import { readEvents } from './support/read-events.ts';
import { post, startSystem, statusWebhook, type System } from '../world/system/start-system.ts';
import { until } from '../world/processes/until.ts';

// A newer version has steps between ours, and this one works next to it on the same database.

const BELOW_SENT = 5;
const BELOW_RECEIVED = 15;
/** Between `in_progress` and `ready`. */
const PLATED = 35;
/** Between `completed` and `failed`. */
const RATED = 65;

let system: System;
let operator: Operator;
let url: string;

beforeAll(async () => {
  system = await startSystem({ stepped: ['placements', 'relay'], env: { OPERATOR_TOKEN } });
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  operator = await askOperator(system.urls[0] ?? '');
  url = await system.webhookUrl('club-1');
});
afterAll(() => system?.stop());

/** An order of a newer version's making, at a rank of its own. */
async function orderAt(rank: number): Promise<string> {
  const serviceOrderId = `order-${randomUUID()}`;
  await system.seedOrder({ serviceOrderId, locationId: 'club-1' });
  await system.query(
    `WITH e AS (
       INSERT INTO status_events (service_order_id, status, native_status, outcome, sequence, conflict)
       VALUES ($1, 'plated', 'PLATED', 'applied', 3, true)
     )
     UPDATE orders SET rank = $2, sequence = 3 WHERE service_order_id = $1`,
    [serviceOrderId, rank],
  );
  return serviceOrderId;
}

async function report(serviceOrderId: string, status: string): Promise<unknown> {
  return (await post(url, statusWebhook({ serviceOrderId, status }))).body['outcome'];
}

async function park(providerOrderId: string, rank: number): Promise<void> {
  await system.query(
    `INSERT INTO parked_events (location_id, integration, provider_order_id, webhook_day, webhook_id, rank,
                                native_status)
     VALUES ('club-1', 'standard', $1, now()::date, gen_random_uuid(), $2, 'PLATED')`,
    [providerOrderId, rank],
  );
}

describe('an order at an unknown rank', () => {
  it('is shown and listed with the last known status before that rank', async () => {
    const id = await orderAt(PLATED);
    const seen = { status: 'in_progress', memberState: 'preparing' };
    const shown = await operator.get(`/orders/${id}`);
    expect(shown).toMatchObject({ status: 200, body: { order: seen, history: [{ status: 'plated' }] } });
    for (const filter of ['status=in_progress', 'memberState=preparing', 'location=club-1']) {
      const { status, body } = await operator.get(`/orders?${filter}`);
      expect({ status, body }, filter).toMatchObject({
        status: 200,
        body: { orders: expect.arrayContaining([expect.objectContaining({ serviceOrderId: id, ...seen })]) },
      });
    }
    for (const filter of ['status=ready', 'memberState=ready_for_pickup']) {
      const { body } = await operator.get(`/orders?${filter}`);
      expect(body['orders'], filter).toEqual([]);
    }
  });

  it('is on the board with its conflicts', async () => {
    const id = await orderAt(PLATED);
    const board = await readEvents(`${system.urls[0]}/v1/live`, { authorization: `Bearer ${OPERATOR_TOKEN}` });
    const told = (event: string): unknown[] =>
      board.events.filter((each) => each.event === event).map(({ data }) => data);
    await until(() => told('attention').length > 0);
    const orders = told('orders').flatMap((data) => BoardOrders.parse(data).orders);
    expect(orders.find(({ serviceOrderId }) => serviceOrderId === id)).toMatchObject({
      status: 'in_progress',
      memberState: 'preparing',
    });
    const conflicts = told('attention').flatMap((data) => Attention.parse(data).conflicts);
    expect(conflicts).toContainEqual(expect.objectContaining({ serviceOrderId: id, status: 'plated' }));
    board.leave();
  });

  it('is changed only by statuses of higher ranks', async () => {
    const id = await orderAt(PLATED);
    expect(await report(id, 'IN_PROGRESS')).toBe('stale');
    expect(await system.order(id)).toMatchObject({ rank: PLATED, sequence: 3 });
    expect(await report(id, 'READY')).toBe('applied');
    expect(await system.order(id)).toMatchObject({ rank: rankOf('ready'), sequence: 4 });
    await system.finish('relay');
    expect(system.live(id)).toMatchObject([{ sequence: 4, status: 'ready' }]);
  });

  it('counts as ended if the last known status before it is an end', async () => {
    const id = await orderAt(RATED);
    expect(await report(id, 'COMPLETED')).toBe('stale');
    expect(await report(id, 'FAILED')).toBe('applied');
    const rows = await system.query(
      `SELECT status, conflict FROM status_events WHERE service_order_id = $1 AND webhook_id IS NOT NULL ORDER BY event_id`,
      [id],
    );
    expect(rows).toEqual([
      { status: 'completed', conflict: false },
      { status: 'failed', conflict: true },
    ]);
  });

  it('becomes `sent` when its ticket is known to be at the POS, if the rank is below `sent`', async () => {
    const [answered, reported] = [await orderAt(BELOW_SENT), await orderAt(BELOW_SENT)];
    await system.query(
      `UPDATE placements SET state = 'in_doubt', finished_at = NULL, next_attempt_at = 'infinity'
       WHERE service_order_id = ANY ($1)`,
      [[answered, reported]],
    );
    await resolveThere(system.pool, answered, {});
    expect(await system.order(answered)).toMatchObject({ rank: RANK_SENT, sequence: 4 });
    await system.finish('relay');
    expect(system.live(answered)).toMatchObject([{ sequence: 4, memberState: 'sent' }]);
    expect(await report(reported, 'RECEIVED')).toBe('applied');
    expect(await system.placement(reported)).toMatchObject({ state: 'sent' });
  });
});

describe('a stored row at an unknown rank', () => {
  it('is published from the outbox with the last known status before that rank', async () => {
    const id = await orderAt(PLATED);
    await system.query('INSERT INTO outbox (service_order_id, sequence, rank) VALUES ($1, 3, $2)', [id, PLATED]);
    await system.finish('relay');
    expect(system.live(id)).toMatchObject([{ sequence: 3, status: 'in_progress', memberState: 'preparing' }]);
    expect(await system.query('SELECT FROM outbox WHERE service_order_id = $1', [id])).toEqual([]);
    expect((await operator.get(`/orders/${id}`)).body['live']).toMatchObject([{ memberState: 'preparing' }]);
  });

  it.each([
    ['between two ranks that a POS reports', PLATED, 'in_progress'],
    ['below all ranks that a POS reports', BELOW_RECEIVED, 'received'],
  ])('that waits for a POS id moves its order to that rank: %s', async (_what, rank, status) => {
    const serviceOrderId = `order-${randomUUID()}`;
    const providerOrderId = `pos-${serviceOrderId}`;
    await system.seedOrder({ serviceOrderId, locationId: 'club-1', providerOrderId });
    await park(providerOrderId, rank);
    await redriveParked(system.pool, { locationId: 'club-1', integration: 'standard', providerOrderId });
    expect(await system.order(serviceOrderId)).toMatchObject({ rank });
    expect(
      await system.query('SELECT status, outcome FROM status_events WHERE service_order_id = $1', [serviceOrderId]),
    ).toEqual([{ status, outcome: 'applied' }]);
    await system.finish('relay');
    expect(system.live(serviceOrderId)).toHaveLength(1);
    expect(await operator.get(`/orders/${serviceOrderId}`)).toMatchObject({ status: 200 });
  });
});
