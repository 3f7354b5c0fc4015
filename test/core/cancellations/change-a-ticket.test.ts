import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { answerChange } from '../../../src/core/cancellations/answer-change.ts';
import { compareOrders, withChanges } from '../../../src/core/cancellations/changed-order.ts';
import { claimRefreshes, type Refresh, refreshOrder } from '../../../src/core/cancellations/refresh-order.ts';
import type { Observed } from '../../../src/core/domain/observed.ts';
import type { ReadOrder } from '../../../src/core/domain/read-canonical-order.ts';
import { refuseCancellation } from '../../../src/core/cancellations/begin-cancellation.ts';
import { concludeByPhone, requestCancellation } from '../../../src/core/cancellations/operator-cancellations.ts';
import type { CanonicalOrder } from '../../../src/core/domain/order.ts';
import { recordAttention } from '../../../src/core/orders/attention-events.ts';
import { sampleAttention } from '../../../src/core/orders/sample-attention.ts';
import { showOrder, type ShownOrder } from '../../../src/core/orders/show-order.ts';
import { withClient } from '../../../src/core/postgres/transactions.ts';
import { eraseOrders } from '../../../src/core/retention/erase-members.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import type { System } from '../../../world/system/start-system.ts';
import { lost, startTills, type Shop, type Tills } from './start-tills.ts';

let system: System;
let tills: Tills;
let shop: Shop;

beforeAll(async () => {
  shop = await startTills();
  ({ system, tills } = shop);
});
afterEach(() => shop.rest());
afterAll(() => system?.stop());

const item = (name: string, about: object = {}): CanonicalOrder['items'][number] =>
  ({ ...sampleOrder().items[0], name, quantity: 1, modifiers: [], notes: undefined, ...about }) as never;
const [BURGER, FRIES, COLA] = [item('Burger'), item('Fries'), item('Cola')];
const sent = (): ReturnType<Shop['place']> => shop.place({ locationId: 'exact', items: [BURGER] }, 'sent');
/** The order changes, and is refreshed. What was said before is published first. */
const becomes = async (order: CanonicalOrder, about: Partial<CanonicalOrder> = {}): Promise<void> => {
  await system.finish('relay');
  await shop.change(order, about);
  await system.round('refreshes');
};
/** What the topic says of the change, in each message. */
const told = async (id: string): Promise<(string | undefined)[]> => {
  await system.finish('relay');
  return system.live(id).map(({ change }) => change);
};
const changeOf = async (id: string): Promise<ShownOrder['change'] | undefined> =>
  (await showOrder(system.pool, id))?.change;
const answer = async (id: string, said: 'done' | 'too_late', since?: string): Promise<unknown> => {
  await system.finish('relay');
  return answerChange(system.pool, id, { answer: said, ...(since !== undefined && { since }) });
};
const listed = async (id: string): Promise<string[] | undefined> =>
  (await sampleAttention(system.pool)).changed.find(({ serviceOrderId }) => serviceOrderId === id)?.changes;

describe('a change of an order that has a ticket', () => {
  it('is published and shown to operators once, however often the platform signals it', async () => {
    const { order, id } = await sent();
    for (const _twice of [1, 2]) await becomes(order, { items: [BURGER, FRIES], notes: 'for Ada' });
    const changes = ['1 × Fries added', 'the note of the order is changed'];
    expect(await changeOf(id)).toMatchObject({ state: 'not_applied', waits: true, changes });
    expect(await listed(id)).toEqual(changes);
    expect(await told(id)).toEqual([undefined, undefined, 'not_applied']);
    expect(await system.query('SELECT FROM order_changes WHERE service_order_id = $1', [id])).toHaveLength(1);
    const messages = system.live(id);
    expect(messages.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    expect(messages[2]).toMatchObject({ memberState: 'sent', providerOrderId: `pos-${id}` });
    expect(tills.tickets.find(({ serviceOrderId }) => serviceOrderId === id)?.items, 'at the POS').toHaveLength(1);
  });

  it('has only what differs, also of a delivery', async () => {
    const { order, id } = await shop.place({ locationId: 'exact', type: 'delivery' }, 'sent');
    await becomes(order, { items: [...order.items, FRIES] });
    expect(await changeOf(id)).toMatchObject({ changes: ['1 × Fries added'] });
    const elsewhere = { ...order.fulfillment.destination, line1: 'Hauptstraße 1' };
    await becomes(order, { fulfillment: { type: 'delivery', destination: elsewhere } });
    expect(await changeOf(id)).toMatchObject({ changes: ['the address is changed'] });
  });

  it.each([
    ['done', 'applied'],
    ['too_late', 'too_late'],
  ] as const)('needs nobody after the answer "%s", and the topic says %s', async (said, state) => {
    const { order, id } = await sent();
    await becomes(order, { items: [BURGER, FRIES] });
    expect(await answer(id, said)).toEqual({ serviceOrderId: id, change: state });
    await becomes(order, { items: [BURGER, FRIES] });
    expect(await told(id)).toEqual([undefined, undefined, 'not_applied', state]);
    expect(await changeOf(id)).toMatchObject({ state, waits: false });
    expect(await listed(id)).toBeUndefined();
    expect(await answer(id, 'done')).toMatchObject({ cause: { code: 'change_settled' } });
  });

  it('is gone from the topic if the platform takes it back, also after it was too late', async () => {
    const { order, id } = await sent();
    await becomes(order, { items: [BURGER, FRIES] });
    await becomes(order);
    expect([await told(id), await changeOf(id), await listed(id)]).toEqual([
      [undefined, undefined, 'not_applied', undefined],
      null,
      undefined,
    ]);
    await becomes(order, { items: [BURGER, FRIES] });
    await answer(id, 'too_late');
    await becomes(order);
    expect((await told(id)).slice(4)).toEqual(['not_applied', 'too_late', undefined]);
  });

  it('is asked about again if there is another, which is the difference from what the restaurant has applied', async () => {
    const { order, id } = await sent();
    await becomes(order, { items: [BURGER, FRIES] });
    await answer(id, 'done');
    await becomes(order, { items: [BURGER, FRIES, COLA] });
    expect(await changeOf(id)).toMatchObject({ state: 'not_applied', changes: ['1 × Cola added'] });
    await answer(id, 'too_late');
    await becomes(order, { items: [BURGER] });
    expect(await changeOf(id)).toMatchObject({ state: 'not_applied', changes: ['1 × Fries removed'] });
    await becomes(order, { items: [BURGER, FRIES] });
    expect(await changeOf(id)).toMatchObject({ state: 'applied', waits: false });
    expect(await told(id)).toEqual([
      undefined,
      undefined,
      'not_applied',
      'applied',
      'not_applied',
      'too_late',
      'not_applied',
      'applied',
    ]);
  });

  it('is another one if only the text of a note is another, and an answer to the first is not taken for it', async () => {
    const { order, id } = await sent();
    await becomes(order, { notes: 'no onions' });
    const first = (await changeOf(id))?.since ?? '';
    await becomes(order, { notes: 'no onions, no salt' });
    expect(await answer(id, 'done', first)).toMatchObject({ cause: { code: 'change_settled' } });
    expect(await told(id), 'the topic says so already').toEqual([undefined, undefined, 'not_applied']);
    expect(await answer(id, 'done', (await changeOf(id))?.since ?? '')).toMatchObject({ change: 'applied' });
  });

  it("is no job if only money differs, which stays in the order's story", async () => {
    const { order, id } = await sent();
    const money = { ...order.money, tip: order.money.tip + 100, total: order.money.total + 100 };
    await becomes(order, { money });
    expect([await changeOf(id), await listed(id), await told(id)]).toEqual([null, undefined, [undefined, undefined]]);
    expect((await showOrder(system.pool, id))?.changes).toMatchObject([{ paths: ['money.tip', 'money.total'] }]);
    await becomes(order, { money, items: [BURGER, FRIES] });
    const { since } = (await changeOf(id)) ?? {};
    await becomes(order, { items: [BURGER, FRIES] });
    expect(await changeOf(id), 'it began before').toMatchObject({ since, changes: ['1 × Fries added'] });
  });

  it('needs nobody once the order has ended, and the topic keeps the last word', async () => {
    const { order, id } = await sent();
    await becomes(order, { items: [BURGER, FRIES] });
    await system.query('UPDATE orders SET ended_at = now(), rank = 60 WHERE service_order_id = $1', [id]);
    expect(await changeOf(id)).toMatchObject({ state: 'not_applied', waits: false });
    expect(await listed(id)).toBeUndefined();
    expect(await answer(id, 'done')).toMatchObject({ cause: { code: 'already_over' } });
    expect((await told(id)).at(-1)).toBe('not_applied');
  });

  it('needs nobody while the order is to be cancelled, and again if the POS refuses', async () => {
    const { order, id } = await sent();
    await becomes(order, { items: [BURGER, FRIES] });
    await becomes(order, { items: [BURGER, FRIES], cancelledAt: '2027-01-31T18:00:00Z' });
    expect(await listed(id)).toBeUndefined();
    await refuseCancellation(system.pool, id, {});
    expect(await listed(id)).toEqual(['1 × Fries added']);
  });

  it('counts if it came while an operator cancelled the order, and the restaurant refused', async () => {
    const { order, id } = await shop.place({ locationId: 'mute' }, 'sent');
    await requestCancellation(system.pool, id);
    await becomes(order, { notes: 'no onions' });
    expect(await changeOf(id), 'nobody is asked meanwhile').toBeNull();
    await concludeByPhone(system.pool, id, false);
    await system.round('refreshes');
    expect(await changeOf(id)).toMatchObject({ waits: true, changes: ['the note of the order is changed'] });
  });

  it('is fetched no more if it came while an operator cancelled the order, and it is cancelled', async () => {
    const { order, id } = await shop.place({ locationId: 'mute' }, 'sent');
    await requestCancellation(system.pool, id);
    await becomes(order, { notes: 'no onions' });
    await concludeByPhone(system.pool, id, true);
    await system.query('UPDATE refreshes SET next_attempt_at = now() WHERE service_order_id = $1', [id]);
    await system.round('refreshes');
    expect(await system.query('SELECT FROM refreshes WHERE service_order_id = $1', [id])).toEqual([]);
  });

  it('is no job if the platform has cancelled the order, which it may then empty, and the POS refused', async () => {
    const { order, id } = await shop.place({ locationId: 'exact', items: [BURGER, FRIES] }, 'sent');
    const cancelled = { cancelledAt: '2027-01-31T18:00:00Z' };
    await becomes(order, cancelled);
    await refuseCancellation(system.pool, id, {});
    await becomes(order, { ...cancelled, items: [BURGER] });
    expect([await changeOf(id), await listed(id)]).toEqual([null, undefined]);
    await becomes(order, { items: [BURGER] });
    expect(await listed(id), 'the platform has taken the cancel back').toEqual(['1 × Fries removed']);
  });

  it('is not taken back by a process whose answer is older, and which lost its lease', async () => {
    const { order, id } = await sent();
    await shop.change(order);
    const [late] = await claimRefreshes(system.pool, 1);
    await system.query(`UPDATE refreshes SET lease_until = now() - interval '1 s' WHERE service_order_id = $1`, [id]);
    await becomes(order, { items: [BURGER, FRIES] });
    const seen: Observed[] = [];
    const refetch = async (): Promise<ReadOrder> => ({ order, leftOut: [] });
    const deps = { pool: system.pool, refetch, deadlineS: 60, observe: seen.push.bind(seen), onDue: () => {} };
    await refreshOrder(deps, late as Refresh);
    expect(seen.at(-1)).toMatchObject({ what: 'refresh', outcome: 'unchanged', serviceOrderId: id });
    expect(await listed(id)).toEqual(['1 × Fries added']);
  });

  it('needs nobody once its member is erased, because nobody knows it any more', async () => {
    const { order, id } = await sent();
    await becomes(order, { items: [BURGER, FRIES] });
    await withClient(system.pool, async (client) => eraseOrders(client, [id], true));
    expect(await changeOf(id)).toMatchObject({ waits: false, changes: [] });
    expect(await listed(id)).toBeUndefined();
  });

  it('while it was in doubt is published when the ticket is known', async () => {
    tills.creates = lost;
    const { order, id } = await shop.place({ locationId: 'exact' }, 'in_doubt');
    await becomes(order, { notes: 'no onions' });
    expect(await changeOf(id)).toBeNull();
    tills.creates = undefined;
    await system.query('UPDATE placements SET next_attempt_at = now() WHERE service_order_id = $1', [id]);
    await system.round('placements');
    // The refresh was to come later.
    await system.round('refreshes');
    expect(await changeOf(id)).toMatchObject({ state: 'not_applied', changes: ['the note of the order is changed'] });
  });

  it('that waits is kept when older ones are deleted, as well as what was applied', async () => {
    const { order, id } = await sent();
    await becomes(order, { items: [BURGER, FRIES] });
    await answer(id, 'done');
    await becomes(order, { items: [BURGER, FRIES, COLA] });
    await system.query(`UPDATE order_changes SET seen_at = seen_at - interval '1 h' WHERE service_order_id = $1`, [id]);
    await system.query(`UPDATE orders SET changed_at = changed_at - interval '1 h' WHERE service_order_id = $1`, [id]);
    await system.query(
      `INSERT INTO order_changes (service_order_id, seen_at, changes, told)
       SELECT $1, now() - nth * interval '1 s', '[]', '[]' FROM generate_series(1, 20) AS nth`,
      [id],
    );
    const tip = (by: number) => ({ ...order.money, tip: by, total: order.money.total - order.money.tip + by });
    for (const by of [1, 2]) await becomes(order, { items: [BURGER, FRIES, COLA], money: tip(by) });
    expect(await changeOf(id)).toMatchObject({ state: 'not_applied', changes: ['1 × Cola added'] });
    expect((await told(id)).slice(2)).toEqual(['not_applied', 'applied', 'not_applied']);
  });

  it('that a process of the previous version has found is listed for a day, and becomes a job at the next signal', async () => {
    const { order, id } = await sent();
    const changes = JSON.stringify(compareOrders(order, { ...order, items: [BURGER, FRIES] }));
    await system.query('INSERT INTO order_changes (service_order_id, changes) VALUES ($1, $2)', [id, changes]);
    expect(await listed(id)).toEqual([]);
    await recordAttention(system.pool);
    const items = `SELECT closed_at FROM attention_items WHERE kind = 'changed' AND about ->> 'serviceOrderId' = $1`;
    expect(await system.query(items, [id])).toEqual([{ closed_at: null }]);
    await becomes(order, { items: [BURGER, FRIES] });
    expect(await listed(id)).toEqual(['1 × Fries added']);
    expect(await told(id)).toEqual([undefined, undefined, 'not_applied']);
    await answer(id, 'done');
    await recordAttention(system.pool);
    expect(await system.query(items, [id])).toEqual([{ closed_at: expect.any(Date) }]);
  });
});

it('an order with the differences that were found is the newer order', () => {
  const was: CanonicalOrder = { ...sampleOrder(), items: [BURGER], notes: 'for Ada' };
  const { notes: _notes, ...rest } = was;
  const is: CanonicalOrder = { ...rest, items: [{ ...BURGER, quantity: 3 }, FRIES], fulfillment: { type: 'pickup' } };
  expect(withChanges(was, compareOrders(was, is))).toEqual(is);
  expect(withChanges(is, compareOrders(is, was))).toEqual(was);
  expect(withChanges(was, [{ path: 'of.a.newer.version', is: 1 }])).toEqual(was);
});
