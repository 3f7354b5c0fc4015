import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MOST_FOUND } from '../../../src/core/domain/most-found.ts';
import { uuidV7 } from '../../../src/core/domain/uuid-v7.ts';
import { search, searchMember, type FoundOrders } from '../../../src/core/orders/search.ts';
import { OPERATOR_TOKEN, askOperator } from '../../../world/system/ask-operator.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { readPlans } from '../../support/read-plans.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { statusWebhook } from '../../../world/pos/status-webhook.ts';

/** There are two orders more than a search finds. */
const OLDEST = 11 - MOST_FOUND;
const ADA = { id: 'member-42', name: 'Ada Lovelace', phone: '+4930123456', email: 'ada@example.com' };

let stage: Stage;
let webhookId: string;
beforeAll(async () => {
  stage = await startStage();
  for (const id of ['club-1', 'club-2']) await stage.addLocation(id, { ordersUrl: 'http://127.0.0.1:9/orders' });
  await stage.query(`UPDATE locations SET name = 'Trattoria Nord' WHERE location_id = 'club-2'`);
  for (let nth = OLDEST; nth <= 12; nth++) {
    const about = { serviceOrderId: `order-${nth}`, locationId: nth === 12 ? 'club-2' : 'club-1' };
    const contents = { ...sampleOrder(about), member: nth > 10 ? ADA : { id: `member-${nth}`, name: 'Grace Hopper' } };
    await stage.seedOrder({ ...about, providerOrderId: `pos-${nth}`, contents });
    await stage.query(
      `WITH p AS (UPDATE placements SET signalled_at = now() + $2 * interval '1 s' WHERE service_order_id = $1)
       UPDATE orders SET call_out_code = $3, created_at = now() + $2 * interval '1 s' WHERE service_order_id = $1`,
      [about.serviceOrderId, nth, nth === 1 ? 'T333' : 'K472'],
    );
  }
  const { body } = await stage.post(
    await stage.webhookPath('club-1'),
    statusWebhook({ serviceOrderId: 'order-1', status: 'READY' }),
  );
  webhookId = String(body['webhookId']);
});
afterAll(() => stage?.stop());

const idsOf = ({ orders }: FoundOrders): string[] => orders.map(({ serviceOrderId }) => serviceOrderId);
const found = async (text: string, within?: string[]): Promise<unknown> => {
  const { orders, locations, webhooks } = await search(stage.pool, text, within);
  return [idsOf({ orders }), locations.map((each) => each.locationId), webhooks.map((each) => each.webhookId)];
};

const setMember = (about: object): Promise<unknown> =>
  stage.query(
    `UPDATE order_contents SET contents = jsonb_set(contents, '{member}', contents -> 'member' || $1::jsonb)
     WHERE service_order_id = 'order-3'`,
    [JSON.stringify(about)],
  );

describe('a search', () => {
  it('finds the newest orders by call-out code, and one order by its id or POS id', async () => {
    const numbers = Array.from({ length: MOST_FOUND + 1 }, (_, nth) => 12 - nth);
    const newest = numbers.filter((nth) => nth !== 1).map((nth) => `order-${nth}`);
    expect(await found('k472')).toEqual([newest, [], []]);
    expect(await found('order-1')).toEqual([['order-1'], [], []]);
    expect(await found('pos-1')).toEqual([['order-1'], [], []]);
    const { orders } = await search(stage.pool, 'T333', undefined);
    expect(orders).toMatchObject([
      { callOutCode: 'T333', memberState: 'ready_for_pickup', ordered: { total: 4834, currency: 'EUR' } },
    ]);
    expect(JSON.stringify(orders), 'as on the board, nothing of the member').not.toMatch(/Grace|member-1/);
  });

  it('finds locations by the beginning of their id or a part of their name, and a webhook by its id', async () => {
    expect(await found('CLUB-')).toEqual([[], ['club-1', 'club-2'], []]);
    expect(await found('tratt')).toEqual([[], ['club-2'], []]);
    expect(await found('%')).toEqual([[], [], []]);
    expect(await found(webhookId)).toEqual([[], [], [webhookId]]);
    expect(await found(uuidV7())).toEqual([[], [], []]);
  });

  it('finds no order of another location', async () => {
    for (const text of ['T333', 'order-1', 'pos-1', 'club-1', webhookId]) {
      expect(await found(text, ['club-2']), text).toEqual([[], [], []]);
    }
    expect(await found('K472', ['club-2'])).toEqual([['order-12'], [], []]);
    expect(idsOf(await searchMember(stage.pool, ADA.name, ['club-2']))).toEqual(['order-12']);
  });

  it.each([
    ['the name, in any order', 'ada lovelace', 'Lovelace, Ada'],
    ['the family name', 'LOVELACE', ' lovelace ', 'Ms Lovelace', 'Ms. Ada Lovelace'],
    ['the name and the last digits of the number', 'Lovelace 3456', 'Ms Lovelace, 34 56', 'ada lovelace 56'],
    ['the number as it is dialled abroad', '+49 (30) 123-456', '0049 30 123456', '+49 (0)30 123456'],
    ['the number as it is dialled in the country', '030 123456', '030/123 456', '30123456'],
    ['the e-mail address', 'ADA@example.com'],
    ["the platform's id", 'member-42'],
  ])("finds a member's orders by %s", async (_, ...texts) => {
    for (const text of texts) {
      expect(idsOf(await searchMember(stage.pool, text, undefined)), text).toEqual(['order-12', 'order-11']);
    }
  });

  it.each([
    'lovel',
    'Ada Hopper',
    'Lovelace 3457',
    'Hopper 3456',
    '040 123456',
    '123456',
    '+49',
    'example.com',
    'member-4',
    '.',
    ' - ',
  ])('finds no orders of another member by %s', async (text) => {
    expect(idsOf(await searchMember(stage.pool, text, undefined))).not.toContain('order-12');
  });

  it.each([
    ['Jörg Müller-Groß', 'muller', 'MÜLLER GROSS', 'Joerg', 'Mueller Groß'],
    ['Siobhán O’Brien', "o'brien", 'OBRIEN', 'siobhan'],
    ['Łukasz Žižek', 'lukasz zizek', 'ZIZEK'],
    ['Νίκος Παπαδόπουλος', 'παπαδοπουλοσ', 'ΝΙΚΟΣ'],
    ['Ольга Йорданова', 'ЙОРДАНОВА', 'иорданова ольга'],
  ])('finds %s, however the name is written', async (name, ...texts) => {
    await setMember({ name });
    for (const text of texts) {
      expect(idsOf(await searchMember(stage.pool, text, undefined)), text).toEqual(['order-3']);
    }
  });

  it.each([
    ['+77011234567', '8 701 123 45 67', '701 1234567'],
    ['+3545551234', '555 1234'],
    ['+390612345678', '06 12345678'],
    ['+14155550123', '(415) 555-0123', '415.555.0123', '1 415 555 0123'],
  ])('finds the number %s as people of its country write it', async (phone, ...texts) => {
    await setMember({ phone });
    for (const text of texts) {
      expect(idsOf(await searchMember(stage.pool, text, undefined)), text).toEqual(['order-3']);
    }
  });

  it('finds no number of another country by a number with the code of its country', async () => {
    await setMember({ phone: '+212345678901' });
    for (const text of ['+1 2345678901', '001 2345678901', '+49 30 45678901']) {
      expect(idsOf(await searchMember(stage.pool, text, undefined)), text).toEqual([]);
    }
  });

  it('asks for more than a name if too many orders have it to find the newest', async () => {
    await stage.query(
      `INSERT INTO order_contents SELECT 'of maria ' || nth, '{"member":{"name":"Maria"}}' FROM generate_series(1, 10001) AS nth`,
    );
    await expect(searchMember(stage.pool, 'maria', undefined)).rejects.toMatchObject({
      statusCode: 400,
      message: expect.stringContaining('Search by the first name and the family name'),
    });
    await stage.query(`DELETE FROM order_contents WHERE starts_with(service_order_id, 'of maria')`);
  });

  it('does not find the orders of an erased member', async () => {
    await stage.query(`DELETE FROM order_contents WHERE service_order_id = 'order-12'`);
    expect(idsOf(await searchMember(stage.pool, ADA.name, undefined))).toEqual(['order-11']);
  });

  it('finds a member by a name that is longer than a key of an index', async () => {
    // The last one is 18 letters long when it is taken apart.
    for (const name of [randomBytes(25_000).toString('hex'), '\u{fdfa}'.repeat(250)]) {
      await setMember({ name });
      expect(idsOf(await searchMember(stage.pool, name.slice(0, 255), undefined))).toEqual(['order-3']);
    }
  });

  it('writes the name of a member neither to the log nor to the audit', async () => {
    const operator = await askOperator(stage.app);
    expect((await operator.post('/search/member', { text: ADA.name })).body).toMatchObject({
      orders: [{ serviceOrderId: 'order-11' }],
    });
    const { text, body } = await operator.get('/audit?action=search%20member');
    expect(body['actions']).toMatchObject([
      { outcome: 'done', after: 'orders 1', locationId: 'club-1', callOutCode: null },
      { outcome: 'done', after: 'found 1', locationId: null, callOutCode: null },
    ]);
    expect(text + stage.logged.join('\n')).not.toMatch(/lovelace/i);
    expect(stage.logged.join('\n')).not.toContain(OPERATOR_TOKEN);
  });

  it('reads only indexes, however much is stored', async () => {
    await stage.query(
      `WITH o AS (
         INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment)
         SELECT 'many-' || i, 'X' || i % 4096, 'club-1', 'pickup' FROM generate_series(1, 5000) AS i
       ), p AS (
         INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
         SELECT 'club-1', 'standard', 'many-' || i, 'many-' || i FROM generate_series(1, 5000) AS i
       ), c AS (
         INSERT INTO order_contents (service_order_id, contents)
         SELECT 'many-' || i, jsonb_build_object('member', jsonb_build_object('name', 'Many ' || i, 'id', 'many-' || i))
         FROM generate_series(1, 5000) AS i
       )
       INSERT INTO placements (service_order_id, deadline_at) SELECT 'many-' || i, now() FROM generate_series(1, 5000) AS i`,
    );
    await stage.query('ANALYZE orders, provider_orders, order_contents, placements');
    const plans = [
      await readPlans(stage.pool, (asked) => search(asked, 'K472', undefined)),
      await readPlans(stage.pool, (asked) => searchMember(asked, 'Ada Lovelace', ['club-1'])),
      await readPlans(stage.pool, (asked) => searchMember(asked, '030 123456', ['club-1'])),
    ];
    for (const { whole } of plans) expect(whole.filter((table) => table !== 'locations')).toEqual([]);
    for (const { reads } of plans.slice(1)) expect(reads).toBeLessThan(20);
  });
});

it("the audit shows the call-out code of an action's order", async () => {
  const operator = await askOperator(stage.app);
  await operator.send('PUT', '/orders/order-1/case', {});
  const { body } = await operator.get('/audit?order=order-1');
  expect(body['actions']).toMatchObject([{ action: 'take case', serviceOrderId: 'order-1', callOutCode: 'T333' }]);
});
