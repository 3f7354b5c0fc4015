import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { GiveUp, NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import type { KitchenOrder } from '../../../src/core/domain/order.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { OPERATOR_TOKEN, askOperator, sendAsIs, type Operator } from '../../../world/system/ask-operator.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';

const placed: KitchenOrder[] = [];
let answer: () => Promise<{ providerOrderId?: string }>;
const pos: Provider = {
  integration: 'till',
  settings: z.object({ key: z.string().min(5) }),
  deduplicates: true,
  async createOrder(order) {
    placed.push(order);
    return answer();
  },
  translateWebhook: () => [],
};

let stage: Stage;
let operator: Operator;

beforeAll(async () => {
  stage = await startStage({ providers: [pos] });
  operator = await askOperator(stage.app);
  await stage.addLocation('club-1', { key: 'a-secret-key' }, 'till');
});
afterAll(() => stage?.stop());

const ended = (): Promise<unknown> =>
  stage.query(
    `SELECT p.state, o.ended_at IS NOT NULL AS "hasEnded", a.outcome
     FROM placements p JOIN orders o USING (service_order_id) LEFT JOIN placement_attempts a USING (service_order_id)
     WHERE service_order_id = $1`,
    [placed.at(-1)?.serviceOrderId],
  );

it('a test order makes one marked ticket at the POS, and ends at once in the service', async () => {
  answer = async () => ({ providerOrderId: 'T-17' });
  const { status, body } = await operator.post('/locations/club-1/test-order', { itemId: 'soup', price: 450 });
  expect(status).toBe(200);
  const [order, ...others] = placed;
  expect(body).toEqual({
    state: 'placed',
    serviceOrderId: order?.serviceOrderId,
    providerOrderId: 'T-17',
    callOutCode: order?.callOutCode,
  });
  expect(others).toEqual([]);
  expect(order).toMatchObject({
    member: { name: 'TEST, do not cook' },
    items: [{ serviceItemId: 'soup', name: 'TEST, do not cook', quantity: 1, unitPrice: 450 }],
    money: { total: 450, currency: 'EUR' },
  });
  expect(await ended()).toEqual([{ state: 'sent', hasEnded: true, outcome: 'placed' }]);
  const { body: audit } = await operator.get('/audit?action=test%20order');
  expect(audit['actions']).toEqual([
    expect.objectContaining({ locationId: 'club-1', outcome: 'done', after: 'placed' }),
  ]);
});

it.each([
  [
    'refused',
    new GiveUp('no such item', { reason: 'menu', httpStatus: 422 }),
    'no such item',
    /^Fix what the POS reports/,
  ],
  [
    'not reached',
    new TryAgain('ECONNREFUSED: no connection', { sent: false }),
    'ECONNREFUSED',
    /^Check that the POS is sw/,
  ],
  [
    'not allowed',
    new NeedsOperator('the POS answered 401', { httpStatus: 401 }),
    'answered 401',
    /^Check at the POS that our/,
  ],
  [
    'not answered',
    new TryAgain('no answer in 20 s', { sent: true }),
    'no answer in 20 s',
    /^The POS may have the tick/,
  ],
])('a test order that is %s is answered with what to do, and not sent again', async (_, error, problem, toDo) => {
  const before = placed.length;
  answer = () => Promise.reject(error);
  const { status, body } = await operator.post('/locations/club-1/test-order');
  expect([status, body]).toEqual([
    200,
    { state: 'failed', problem: expect.stringContaining(problem), toDo: expect.stringMatching(toDo) },
  ]);
  expect(placed.length).toBe(before + 1);
  expect(await ended()).toEqual([{ state: 'failed', hasEnded: true, outcome: error.name }]);
});

it('a POS that takes only items of its menu is refused one that is not there with advice about the item', async () => {
  Object.assign(pos, { menuOnly: true });
  const { body: shown } = await operator.get('/locations/club-1');
  expect(shown['knows']).toMatchObject({ menuOnly: true });
  for (const [error, toDo] of [
    [new NeedsOperator('items.0 is not in itemMap'), /^Enter the id of an item.*If it is: Fix what the problem names/],
    [new NeedsOperator('the POS answered 401', { httpStatus: 401 }), /^Check at the POS that our/],
  ] as const) {
    answer = () => Promise.reject(error);
    const { body } = await operator.post('/locations/club-1/test-order');
    expect(body['toDo']).toMatch(toDo);
  }
});

it('a test order with unusable settings is not sent', async () => {
  const before = placed.length;
  await stage.query(`UPDATE locations SET integration = 'standard' WHERE location_id = 'club-1'`);
  const { body } = await operator.post('/locations/club-1/test-order');
  expect(body).toMatchObject({ state: 'failed', problem: expect.stringMatching(/^settings/) });
  expect(placed.length).toBe(before);
});

it('wrong settings are answered 400 with the name of each field, without values', async () => {
  const { status, body } = await sendAsIs(stage.app, '/v1/locations/club-2', {
    method: 'PUT',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ integration: 'till', settings: { key: 'hush' } }),
  });
  expect([status, body['issues']]).toEqual([
    400,
    [{ path: 'settings.key', received: 'string', says: 'is shorter than 5 characters' }],
  ]);
  expect(JSON.stringify(body)).not.toContain('hush');
});
