import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { CanonicalOrder } from '../../../src/core/domain/order.ts';
import { pauseLocation, resumeLocation } from '../../../src/core/kitchens/pause-location.ts';
import { problemOf } from '../../../src/core/domain/explain-cause.ts';
import { digest, makeToken } from '../../../src/core/domain/make-token.ts';
import { concludeByPhone, requestCancellation } from '../../../src/core/cancellations/operator-cancellations.ts';
import { answerNotice, findAnswerPage, type AnswerPage } from '../../../src/core/notices/answer-notice.ts';
import { findNotices } from '../../../src/core/notices/find-notices.ts';
import { CODE_OF_COUNT } from '../../../src/core/placements/record-order.ts';
import { listOrders, type ListedOrder } from '../../../src/core/orders/list-orders.ts';
import { orderTimeline } from '../../../src/core/orders/order-timeline.ts';
import { readBoard, type BoardRead } from '../../../src/core/orders/read-board.ts';
import { showOrder } from '../../../src/core/orders/show-order.ts';
import { retryPlacement } from '../../../src/core/placements/retry-placement.ts';
import { failPlacement } from '../../../src/core/transitions/placement-outcomes.ts';
import { withClient } from '../../../src/core/postgres/transactions.ts';
import { eraseOrders } from '../../../src/core/retention/erase-members.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import type { System } from '../../../world/system/start-system.ts';
import { setContacts } from '../notices/seed-trouble.ts';
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

const refresh = async (id: string): Promise<Record<string, unknown> | undefined> =>
  (await system.query('SELECT * FROM refreshes WHERE service_order_id = $1', [id]))[0];
/** In how many seconds the order is refreshed again. */
const refreshIn = async (id: string): Promise<number> => {
  const [row] = await system.query(
    `SELECT extract(epoch FROM next_attempt_at - now())::float8 AS seconds FROM refreshes WHERE service_order_id = $1`,
    [id],
  );
  return Number(row?.['seconds']);
};
const changes = async (id: string): Promise<unknown[]> => {
  const rows = await system.query('SELECT changes FROM order_changes WHERE service_order_id = $1 ORDER BY seen_at', [
    id,
  ]);
  return rows.map((row) => row['changes']);
};
/** The order changes, and is refreshed. */
const refreshed = async (order: CanonicalOrder, about: Partial<CanonicalOrder> = {}): Promise<void> => {
  await shop.change(order, about);
  await system.round('refreshes');
};
const asked = (id: string): number => system.platform.requests.filter((each) => each === id).length;
const ticket = (id: string): unknown => tills.tickets.find((each) => each.serviceOrderId === id);
const placedAt = (locationId: string, wanted = 'sent'): ReturnType<Shop['place']> => shop.place({ locationId }, wanted);
/** An order that waits because its location is paused, which it is no more. */
const heldAt = async (locationId: string): ReturnType<Shop['place']> => {
  await pauseLocation(system.pool, locationId);
  const placed = await placedAt(locationId, 'held');
  await resumeLocation(system.pool, locationId);
  return placed;
};
const CANCELLED = { cancelledAt: '2027-01-31T18:00:00Z' };

it("a waiting order is placed with the platform's newest contents at its newest location", async () => {
  const { order, id } = await heldAt('exact');
  await refreshed(order, { locationId: 'mute', notes: 'no cutlery', fulfillment: { type: 'pickup' } });
  await system.round('placements');
  const [code] = await system.query(
    `SELECT ${CODE_OF_COUNT} AS "callOutCode" FROM call_outs WHERE location_id = 'mute'`,
  );
  expect(ticket(id)).toMatchObject({
    notes: 'no cutlery',
    locationId: 'mute',
    callOutCode: code?.['callOutCode'],
  });
  expect(await system.order(id)).toMatchObject({ location_id: 'mute', integration: 'mute' });
  expect(await system.placement(id)).toMatchObject({ location_id: 'mute', state: 'sent' });
  expect(await changes(id)).toEqual([]);
});

it('an order that is moved from a paused location is not late at the new location', async () => {
  await pauseLocation(system.pool, 'exact');
  const { order, id } = await placedAt('exact', 'held');
  await system.query(`UPDATE locations SET paused_at = paused_at - interval '40 min' WHERE location_id = 'exact'`);
  await system.query(
    `UPDATE placements SET signalled_at = signalled_at - interval '40 min', deadline_at = deadline_at - interval '40 min'
     WHERE service_order_id = $1`,
    [id],
  );
  await refreshed(order, { locationId: 'mute' });
  expect(await system.placement(id)).toMatchObject({ state: 'waiting', problem: null, cause: null });
  await system.round('placements');
  expect(await shop.state(id)).toBe('sent');
  await resumeLocation(system.pool, 'exact');
});

it('a pause of the new location counts only from the move on, and extends the deadline only once', async () => {
  const { order, id } = await heldAt('exact');
  await pauseLocation(system.pool, 'mute');
  await system.query(`UPDATE locations SET paused_at = paused_at - interval '40 min' WHERE location_id = 'mute'`);
  await system.query(
    `UPDATE placements SET signalled_at = signalled_at - interval '20 min', clock_at = clock_at - interval '20 min'
     WHERE service_order_id = $1`,
    [id],
  );
  const deadline = async (): Promise<number> => Number((await system.placement(id))?.['deadline_at']);
  const before = await deadline();
  await refreshed(order, { locationId: 'mute' });
  await system.query(`UPDATE placements SET moved_at = moved_at - interval '5 min' WHERE service_order_id = $1`, [id]);
  for (const _twice of [1, 2]) await resumeLocation(system.pool, 'mute');
  expect(Math.round(((await deadline()) - before) / 60_000)).toBe(5);
});

it('a late order that is moved is reported to its new location, and the answer link of the old location ends', async () => {
  const manager = { name: 'Manager of both', email: 'manager@club.example', via: 'email' } as const;
  for (const each of ['exact', 'mute']) await setContacts(system, each, [manager]);
  const { order, id } = await heldAt('exact');
  await system.query(
    `UPDATE placements SET state = 'waiting', cause = NULL, signalled_at = now() - interval '3 min',
            clock_at = clock_at - interval '3 min'
     WHERE service_order_id = $1`,
    [id],
  );
  const told = async (): Promise<unknown[]> => {
    await findNotices(system.pool, 0);
    const rows = await system.query(
      `SELECT location_id FROM notices WHERE service_order_id = $1 AND message_id IS NOT NULL ORDER BY created_at`,
      [id],
    );
    return rows.map((row) => row['location_id']);
  };
  expect(await told()).toEqual(['exact']);
  const token = makeToken('exa_');
  await system.query(`UPDATE notice_messages SET links = ARRAY[$1::bytea]`, [Buffer.from(digest(token), 'base64')]);
  const page = await findAnswerPage(system.pool, token);
  await refreshed(order, { locationId: 'mute' });
  const given = { noticeId: page?.orders[0]?.noticeId ?? '', answer: 'seen' };
  expect(await answerNotice(system.pool, page as AnswerPage, given, { source: 'test' })).toBeUndefined();
  expect((await findAnswerPage(system.pool, token))?.orders).toMatchObject([{ isOpen: false, callOutCode: '–' }]);
  expect(await told()).toEqual(['exact', 'mute']);
  for (const each of ['exact', 'mute']) await setContacts(system, each, []);
});

const skipped = () => ({ order: { skipped: 'dine_in' } });

it('an order that the mapper skips ends without a message to the member, and is read again at each signal or retry', async () => {
  system.platform.answer = skipped;
  const { serviceOrderId: id } = await system.placeOrder({ locationId: 'exact' });
  for (const times of [1, 2, 3]) {
    await system.round('placements');
    expect(asked(id)).toBe(times);
    expect(await system.placement(id)).toMatchObject({
      state: 'withdrawn',
      problem: 'the mapper skipped the order: dine_in',
    });
    if (times === 1) expect(await system.signal(id)).toBe(204);
    if (times === 2) expect(await retryPlacement(system.pool, id)).toEqual({ serviceOrderId: id, retry: 'due' });
  }
  const notified = await system.query('SELECT FROM status_events WHERE service_order_id = $1', [id]);
  expect([notified, await system.order(id), ticket(id)]).toEqual([[], undefined, undefined]);
});

it('a known order that the mapper begins to skip continues unchanged, and is read again', async () => {
  const { order, id } = await heldAt('exact');
  system.platform.answer = skipped;
  await refreshed(order);
  expect(await refresh(id)).toMatchObject({ failures: 1 });
  await system.round('placements');
  expect(await shop.state(id)).toBe('sent');
});

it('a worker that has read the old order does not send it after a refresh', async () => {
  const { order, id } = await heldAt('exact');
  const lease = crypto.randomUUID();
  await system.query(
    `UPDATE placements SET lease_id = $2, lease_until = now() + interval '1 min' WHERE service_order_id = $1`,
    [id, lease],
  );
  await refreshed(order, { notes: 'no cutlery' });
  expect((await system.placement(id))?.['lease_id']).not.toBe(lease);
  await system.round('placements');
  expect(ticket(id)).toMatchObject({ notes: 'no cutlery' });
});

it('an order that was sent is not changed, and each later change is stored once for the operator', async () => {
  const { order, id } = await placedAt('exact');
  const [first] = order.items;
  const items = [{ ...first, quantity: 3 }, ...order.items.slice(1)] as CanonicalOrder['items'];
  for (const _twice of [1, 2]) await refreshed(order, { items, notes: undefined });
  const difference = [
    { path: 'items.0.quantity', was: 2, is: 3 },
    { path: 'notes', was: order.notes },
  ];
  expect(await changes(id)).toEqual([difference]);
  const line = system.logged.find((each) => each.includes('changed an order that its POS has') && each.includes(id));
  expect(line).toContain('items.0.quantity');
  expect(line).not.toContain(String(order.notes));
  // What it was before, it is again.
  await refreshed(order);
  expect(await changes(id)).toEqual([expect.anything(), []]);
  // What goes with the contents.
  await withClient(system.pool, async (client) => eraseOrders(client, [id], true));
  expect(await changes(id)).toEqual([]);
});

it('an order in doubt is repeated with its first contents, and its change is recorded later', async () => {
  tills.creates = lost;
  const { order, id } = await placedAt('exact', 'in_doubt');
  await refreshed(order, { notes: 'no cutlery' });
  expect(await refreshIn(id)).toBeGreaterThan(10);
  // The longer it takes, the less often it is fetched.
  await system.query(
    `UPDATE refreshes SET signalled_at = now() - interval '5 min', next_attempt_at = now() WHERE service_order_id = $1`,
    [id],
  );
  await system.round('refreshes');
  expect(await refreshIn(id)).toBeGreaterThan(120);
  tills.creates = undefined;
  await system.query(
    `WITH p AS (UPDATE placements SET next_attempt_at = now() WHERE service_order_id = $1)
     UPDATE refreshes SET next_attempt_at = now() WHERE service_order_id = $1`,
    [id],
  );
  await system.round('placements');
  expect(await shop.state(id)).toBe('sent');
  expect(ticket(id)).toMatchObject({ notes: order.notes });
  await system.round('refreshes');
  expect(await changes(id)).toEqual([[{ path: 'notes', was: order.notes, is: 'no cutlery' }]]);
});

it('ten signals at once cause one fetch, after the last signal', async () => {
  const { order, id } = await placedAt('exact');
  await Promise.all(Array.from({ length: 10 }, () => system.signal(id)));
  await shop.change(order, { notes: 'the last word' });
  await system.finish('refreshes');
  expect(asked(id)).toBe(2);
  expect(await changes(id)).toMatchObject([[{ path: 'notes', is: 'the last word' }]]);
});

it('a signal during the first fetch of an order causes a second fetch', async () => {
  await system.query(
    `INSERT INTO placements (service_order_id, deadline_at, next_attempt_at, lease_id, lease_until)
     VALUES ('first-fetch', now() + interval '1 h', now(), gen_random_uuid(), now() + interval '1 min'),
            ('not-fetched', now() + interval '1 h', now() + interval '1 h', NULL, NULL)`,
  );
  for (const id of ['first-fetch', 'not-fetched']) await system.signal(id);
  expect(await refresh('first-fetch')).toBeDefined();
  // Not under way, it is still to be fetched.
  expect(await refresh('not-fetched')).toBeUndefined();
});

it('a signal during the last fetch of a missing order starts the order again', async () => {
  const order = sampleOrder({ locationId: 'exact' });
  const claim = { serviceOrderId: order.serviceOrderId, leaseId: crypto.randomUUID() };
  await system.query(
    `INSERT INTO placements (service_order_id, deadline_at, lease_id, lease_until)
     VALUES ($1, now() + interval '1 h', $2, now() + interval '1 h')`,
    [claim.serviceOrderId, claim.leaseId],
  );
  await shop.change(order);
  await failPlacement(system.pool, claim, { reason: 'no such order', ...problemOf({ code: 'order_missing' }) });
  await system.round('refreshes');
  await system.round('placements');
  expect(await shop.told(order.serviceOrderId)).toEqual(['failed', 'placed', 'sent']);
});

it('a signal for an order that has ended or is erased causes no fetch', async () => {
  const [ended, erased] = [await placedAt('exact'), await placedAt('exact')];
  await system.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1', [ended.id]);
  await withClient(system.pool, async (client) => eraseOrders(client, [erased.id], true));
  for (const { id } of [ended, erased]) {
    await system.signal(id);
    expect(await refresh(id)).toBeUndefined();
  }
});

it.each(['null', { order: { serviceOrderId: 1 } }] as const)(
  'a refresh that gets %j is tried again for ten minutes, and is then given up',
  async (fault) => {
    const { order, id } = await placedAt('exact');
    system.platform.answer = () => fault;
    await refreshed(order);
    expect(await refresh(id)).toMatchObject({ failures: 1 });
    await system.query(
      `UPDATE refreshes SET signalled_at = now() - interval '600 s', failing_since = now() - interval '600 s', next_attempt_at = now()
       WHERE service_order_id = $1`,
      [id],
    );
    await system.round('refreshes');
    expect(await refreshIn(id)).toBeGreaterThan(86_000);
    expect(logged('could not be refreshed', id)).toBe(1);
    expect(await shop.state(id)).toBe('sent');
    // Operators see it until a signal finds the order readable.
    expect((await failureOf(id)).shown).toMatchObject({ since: expect.any(String) });
    system.platform.answer = undefined;
    await refreshed(order);
    expect(await refresh(id)).toBeUndefined();
  },
);

const logged = (words: string, id: string): number =>
  system.logged.filter((line) => line.includes(words) && line.includes(id)).length;
/** Why the order cannot be fetched again, in its story, in the list and on a board that saw all up to `since`. */
const failureOf = async (id: string, { seen, hidden }: Partial<BoardRead> = {}) => {
  const shown = await showOrder(system.pool, id);
  const listed = await listOrders(system.pool, {}, { limit: 1_000 });
  const board = await readBoard(system.pool, seen, hidden);
  const of = (orders: readonly ListedOrder[] | BoardRead['orders'] = []) =>
    orders.find(({ serviceOrderId }) => serviceOrderId === id)?.refreshFailure;
  expect(of(board.orders)).toEqual(shown?.refreshFailure);
  expect(of(listed?.orders)).toEqual(shown?.refreshFailure);
  return { shown: shown?.refreshFailure, happened: shown && orderTimeline(shown).map(({ what }) => what), board };
};

it('a refresh that fails is shown from the first failure on, and logged once, until one succeeds', async () => {
  const { order, id } = await placedAt('exact');
  const { board: before } = await failureOf(id);
  system.platform.answer = () => 'down';
  await refreshed(order);
  const first = await failureOf(id, before);
  expect(first.shown).toMatchObject({
    problem: 'the ordering platform answered 503 with errors',
    cause: { code: 'platform_failing', httpStatus: 503 },
  });
  expect(first.happened).toContain('refresh failed');

  system.platform.answer = () => 'null';
  await system.query(`UPDATE refreshes SET next_attempt_at = now() WHERE service_order_id = $1`, [id]);
  await system.round('refreshes');
  const second = await failureOf(id, first.board);
  expect(second.shown).toMatchObject({ since: first.shown?.since, cause: { code: 'order_missing' } });
  expect(logged('cannot be refreshed', id)).toBe(1);

  system.platform.answer = undefined;
  await system.query(`UPDATE refreshes SET next_attempt_at = now() WHERE service_order_id = $1`, [id]);
  await system.round('refreshes');
  const last = await failureOf(id, second.board);
  expect(last.shown).toBeNull();
  expect(last.happened).not.toContain('refresh failed');
});

it('a failed refresh is forgotten when the order has ended', async () => {
  const { order, id } = await placedAt('exact');
  system.platform.answer = () => 'down';
  await refreshed(order);
  await system.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1', [id]);
  expect((await failureOf(id)).shown).toBeNull();
  await system.query('UPDATE refreshes SET next_attempt_at = now() WHERE service_order_id = $1', [id]);
  await system.round('refreshes');
  expect(await refresh(id)).toBeUndefined();
});

it('a refresh that has waited for long is not given up at its first failure', async () => {
  tills.creates = lost;
  const { order, id } = await placedAt('exact', 'in_doubt');
  await refreshed(order, { notes: 'no cutlery' });
  system.platform.answer = () => 'null';
  await system.query(
    `UPDATE refreshes SET signalled_at = now() - interval '20 min', next_attempt_at = now() WHERE service_order_id = $1`,
    [id],
  );
  await system.round('refreshes');
  expect(await refresh(id)).toMatchObject({ failures: 1 });
  expect(await refreshIn(id)).toBeLessThan(600);
});

it('a cancel is not lost if an operator had begun one that the restaurant then refuses', async () => {
  const { order, id } = await placedAt('mute');
  await requestCancellation(system.pool, id);
  await refreshed(order, CANCELLED);
  expect(await refreshIn(id)).toBeGreaterThan(10);
  await concludeByPhone(system.pool, id, false);
  await system.round('refreshes');
  expect(await system.order(id)).toMatchObject({ cancellation: 'requested' });
  const requests = 'SELECT requested_by, finished_at FROM cancellations WHERE service_order_id = $1';
  expect(await system.query(requests, [id])).toEqual([{ requested_by: 'platform', finished_at: null }]);
});

it('a refresh is retried until the platform is back, so that a cancel is not lost', async () => {
  const { order, id } = await placedAt('exact');
  system.platform.answer = () => 'down';
  await refreshed(order, CANCELLED);
  expect(await refresh(id)).toMatchObject({ failures: 1 });
  await system.query(
    `UPDATE refreshes SET signalled_at = now() - interval '1 h', next_attempt_at = now() WHERE service_order_id = $1`,
    [id],
  );
  system.platform.answer = undefined;
  await system.round('refreshes');
  expect(await system.order(id)).toMatchObject({ cancellation: 'requested' });
});

it('a refresh whose process dies is done by another process', async () => {
  const { order, id } = await placedAt('exact');
  system.platform.orders.set(id, { ...order, ...CANCELLED });
  await system.query(
    `INSERT INTO refreshes (service_order_id, lease_id, lease_until)
     VALUES ($1, gen_random_uuid(), now() + interval '1 min')`,
    [id],
  );
  await system.round('refreshes');
  expect(await system.order(id)).toMatchObject({ cancellation: null });
  await system.query(`UPDATE refreshes SET lease_until = now() - interval '1 s' WHERE service_order_id = $1`, [id]);
  await system.round('refreshes');
  expect(await system.order(id)).toMatchObject({ cancellation: 'requested' });
});

it('a signal does not shorten the wait that the platform asked for', async () => {
  const { id } = await placedAt('exact');
  await system.query(
    `INSERT INTO refreshes (service_order_id, next_attempt_at, failures) VALUES ($1, now() + interval '1 min', 1)`,
    [id],
  );
  const before = (await refresh(id))?.['next_attempt_at'];
  await system.signal(id);
  expect((await refresh(id))?.['next_attempt_at']).toEqual(before);
});

it('only the newest twenty changes of an order are kept', async () => {
  const { order, id } = await placedAt('exact');
  await system.query(
    `INSERT INTO order_changes (service_order_id, seen_at, changes)
     SELECT $1, now() - nth * interval '1 s', '[]' FROM generate_series(1, 20) AS nth`,
    [id],
  );
  await refreshed(order, { notes: 'the newest' });
  const kept = await changes(id);
  expect(kept).toHaveLength(20);
  expect(kept.at(-1)).toMatchObject([{ path: 'notes', is: 'the newest' }]);
});
