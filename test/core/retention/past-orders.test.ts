import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { z } from 'zod';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { StatusEvent } from '../../../src/core/domain/order.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { listOrders } from '../../../src/core/orders/list-orders.ts';
import { orderTimeline } from '../../../src/core/orders/order-timeline.ts';
import { search } from '../../../src/core/orders/search.ts';
import { showOrder, type ShownOrder } from '../../../src/core/orders/show-order.ts';
import { createLog } from '../../../src/observe/create-log.ts';
import { eraseMembers } from '../../../src/core/retention/erase-members.ts';
import { PACKED, unpackOrder } from '../../../src/core/retention/pack-order.ts';
import { findTombstone, MOVE_BATCH, movePastOrders } from '../../../src/core/retention/past-orders.ts';
import { dropOldPartitions } from '../../../src/core/retention/retention-rules.ts';
import { allPages } from '../../support/all-pages.ts';
import { post, startSystem, type System } from '../../../world/system/start-system.ts';
import { whileLocked } from '../../support/while-locked.ts';

const PII_DAYS = 30;

let tickets: string[] = [];
const simple: Provider = {
  integration: 'simple',
  settings: z.object({}),
  deduplicates: false,
  createOrder(order) {
    tickets.push(order.serviceOrderId);
    return Promise.resolve({ providerOrderId: `pos-${order.serviceOrderId}` });
  },
  webhookHeaders: [],
  translateWebhook: ({ body }) => JSON.parse(body.toString()) as StatusEvent[],
};

let system: System;
let pool: pg.Pool;
let url: string;

beforeAll(async () => {
  system = await startSystem({ providers: [simple], stepped: ['placements', 'relay', 'refreshes', 'cancellations'] });
  ({ pool } = system);
  await system.addLocation('club-1', {}, 'simple');
  await system.addLocation('club-2', {}, 'simple');
  url = await system.webhookUrl('club-1');
});
afterAll(() => system?.stop());
beforeEach(async () => {
  tickets = [];
  await truncate('placements, orders, status_events, past_orders');
});

const truncate = (tables: string): Promise<unknown> => system.query(`TRUNCATE ${tables} CASCADE`);

const send = (serviceOrderId: string, status: string): Promise<unknown> =>
  post(url, [{ serviceOrderId, status, nativeStatus: status.toUpperCase() }]);

/** An order that went its whole way through the service. */
async function completedOrder(): Promise<string> {
  const { serviceOrderId } = await system.placeOrder({ locationId: 'club-1' });
  await system.finish('placements');
  for (const status of ['in_progress', 'ready', 'completed', 'ready']) await send(serviceOrderId, status);
  await system.finish('relay');
  return serviceOrderId;
}

/** Moves everything about all orders into the past. */
async function passDays(days: number): Promise<void> {
  for (const [table, ...columns] of [
    ['placements', 'signalled_at', 'finished_at'],
    ['orders', 'created_at', 'updated_at', 'ended_at', 'erased_at'],
  ] as const) {
    const sets = columns.map((column) => `${column} = ${column} - make_interval(days => $1)`);
    await system.query(`UPDATE ${table} SET ${sets.join(', ')}`, [days]);
  }
}

async function passUntilErased(): Promise<void> {
  await passDays(40);
  await eraseMembers(pool, PII_DAYS);
}

/** Seeds orders that ended 40 days ago and were erased, each signalled a second after the one before. */
async function seedErased(locationId: string, ...ids: string[]): Promise<void> {
  await system.query(
    `WITH p AS (
       INSERT INTO placements (service_order_id, location_id, state, deadline_at, signalled_at, finished_at)
       SELECT id, $1, 'sent', now(), at, at FROM unnest($2::text[]) WITH ORDINALITY AS t(id, n), LATERAL (
         SELECT now() - interval '40 days' + make_interval(secs => n) AS at) AS times
     )
     INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, rank, sequence, ended_at, erased_at)
     SELECT id, 'K472', $1, 'pickup', 60, 2, now() - interval '40 days', now() - interval '10 days'
     FROM unnest($2::text[]) AS id`,
    [locationId, ids],
  );
}

const idsIn = async (table: string): Promise<string[]> =>
  (await system.query(`SELECT service_order_id AS id FROM ${table} ORDER BY 1`)).map((row) => String(row['id']));

const shown = async (id: string): Promise<ShownOrder> => {
  const order = await showOrder(pool, id);
  if (order === undefined) throw new Error(`no order ${id}`);
  return order;
};

describe('an order whose member data was erased', () => {
  it('becomes one row, and is shown as before', async () => {
    const id = await completedOrder();
    await passDays(40);
    expect(await eraseMembers(pool, PII_DAYS)).toBe(1);
    const before = await shown(id);
    expect([before.past, before.history.length, before.attempts.length, before.live.length]).toEqual([false, 4, 1, 5]);

    expect(await movePastOrders(pool, PII_DAYS)).toBe(1);
    for (const table of PACKED) expect(await idsIn(table), table).toEqual([]);
    expect(await idsIn('past_orders')).toEqual([id]);
    const after = await shown(id);
    expect(after).toEqual({ ...before, past: true });
    expect(orderTimeline(after)).toEqual(orderTimeline(before));
  });

  it('takes less than 650 bytes in its row', async () => {
    for (let i = 0; i < 5; i++) await completedOrder();
    await passUntilErased();
    await movePastOrders(pool, PII_DAYS);
    const [row] = await system.query('SELECT max(length(packed)) AS bytes, count(*)::int FROM past_orders');
    expect(row).toEqual({ bytes: expect.any(Number), count: 5 });
    expect(row?.['bytes']).toBeLessThan(650);
  });

  it('has no member data in its row', async () => {
    const { serviceOrderId: id, member } = await system.placeOrder({ locationId: 'club-1', notes: 'ring twice' });
    await system.finish('placements');
    const words = `${member.name} rang`;
    await post(url, [
      {
        serviceOrderId: id,
        status: 'cancelled',
        nativeStatus: 'x',
        reason: words,
        trackingUrl: 'https://track.test/9',
      },
    ]);
    await system.finish('relay');
    await system.query('UPDATE placement_attempts SET error = $1', [words]);
    await passUntilErased();
    expect(await movePastOrders(pool, PII_DAYS)).toBe(1);
    const [row] = await system.query('SELECT packed FROM past_orders');
    const text = unpackOrder(row?.['packed'] as Buffer);
    expect(text).toContain(id);
    for (const secret of [member.name, member.id, 'rang', 'ring twice', 'track.test'])
      expect(text).not.toContain(secret);
  });

  it.each([
    ['its member data is not erased', 'UPDATE orders SET erased_at = NULL'],
    ['it ended yesterday', `UPDATE orders SET ended_at = now() - interval '1 day'`],
    ['its placement is unfinished', 'UPDATE placements SET finished_at = NULL'],
    ['a live message waits', `INSERT INTO outbox (service_order_id, sequence, rank) VALUES ('a', 3, 60)`],
    ['it will be refreshed', `INSERT INTO refreshes (service_order_id, next_attempt_at) VALUES ('a', 'infinity')`],
    [
      'only a person can cancel it',
      `INSERT INTO cancellations (service_order_id, location_id, requested_by, deadline_at, next_attempt_at)
       VALUES ('a', 'club-1', 'platform', now(), 'infinity')`,
    ],
  ])('is not moved while %s', async (_, sql) => {
    await seedErased('club-1', 'a', 'b');
    await system.query(sql.includes('UPDATE') ? `${sql} WHERE service_order_id = 'a'` : sql);
    expect(await movePastOrders(pool, PII_DAYS)).toBe(1);
    expect(await idsIn('orders')).toEqual(['a']);
    expect(await idsIn('past_orders')).toEqual(['b']);
    await truncate('outbox, refreshes, cancellations');
  });

  it('is not moved while a webhook about it is being applied', async () => {
    await seedErased('club-1', 'a', 'b');
    await whileLocked(pool, 'a', async () => expect(await movePastOrders(pool, PII_DAYS)).toBe(1));
    expect(await idsIn('orders')).toEqual(['a']);
    expect(await movePastOrders(pool, PII_DAYS)).toBe(1);
  });

  it('is moved once, even if two processes move many orders', async () => {
    const ids = Array.from({ length: 3 * MOVE_BATCH }, () => randomUUID()).toSorted();
    await seedErased('club-1', ...ids);
    const moved = await Promise.all([movePastOrders(pool, PII_DAYS), movePastOrders(pool, PII_DAYS)]);
    const rest = await movePastOrders(pool, PII_DAYS);
    expect(moved[0] + moved[1] + rest).toBe(ids.length);
    expect(await idsIn('past_orders')).toEqual(ids);
    expect(await idsIn('orders')).toEqual([]);
  });

  it('is moved even if another order cannot be moved, which is logged', async () => {
    await seedErased('club-1', 'a', 'broken', 'c');
    await system.query(
      `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN IF old.service_order_id = 'broken' THEN RAISE EXCEPTION 'broken' USING ERRCODE = '22000'; END IF; RETURN old; END $$;
       CREATE TRIGGER fail BEFORE DELETE ON orders FOR EACH ROW EXECUTE FUNCTION fail()`,
    );
    const lines: string[] = [];
    const log = createLog('info', { write: (line: string) => void lines.push(line) });
    expect(await movePastOrders(pool, PII_DAYS, { log })).toBe(2);
    expect(await idsIn('past_orders')).toEqual(['a', 'c']);
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { serviceOrderId: 'broken', message: 'a past order could not be moved' },
    ]);
    await system.query('DROP TRIGGER fail ON orders');
  });

  it('is moved even if older orders cannot be moved yet', async () => {
    const stuck = Array.from({ length: MOVE_BATCH + 1 }, (_, nth) => `stuck-${nth}`);
    await seedErased('club-1', ...stuck, 'free');
    await system.query(`UPDATE placements SET finished_at = NULL WHERE service_order_id LIKE 'stuck%'`);
    expect(await movePastOrders(pool, PII_DAYS)).toBe(1);
    expect(await idsIn('past_orders')).toEqual(['free']);
  });
});

describe('a past order', () => {
  it('is not placed again by a late signal', async () => {
    const id = await completedOrder();
    await passUntilErased();
    await movePastOrders(pool, PII_DAYS);
    expect(tickets).toEqual([id]);
    expect(await system.signal(id)).toBe(204);
    await system.finish('placements');
    expect(await system.placement(id)).toBeUndefined();
    expect(system.logged.some((line) => line.includes('a signal about a past order was ignored'))).toBe(true);
    expect(tickets).toEqual([id]);
    expect(await shown(id)).toMatchObject({ past: true });
  });

  it('is placed by a new signal if it was never read', async () => {
    const { serviceOrderId: id } = await system.placeOrder({ locationId: 'club-1' });
    await system.finish('placements');
    await system.finish('relay');
    await truncate('orders, order_contents, provider_orders, placement_attempts');
    await system.query(
      `UPDATE placements SET location_id = NULL, state = 'failed', last_notified_sequence = 7, signalled_at = now() - interval '40 days',
              finished_at = now() - interval '40 days'`,
    );
    expect(await movePastOrders(pool, PII_DAYS)).toBe(1);
    expect(await shown(id)).toMatchObject({ past: true, order: null, placement: { state: 'failed' } });
    await system.signal(id);
    await system.finish('placements');
    expect(tickets).toEqual([id, id]);
    expect(await shown(id)).toMatchObject({ past: false });
    // Its messages continue after the last one that the member got.
    expect((await system.order(id))?.['sequence']).toBeGreaterThan(7);
    expect(await idsIn('past_orders')).toEqual([]);
  });

  it('is unknown to a late webhook, whose outcome is `unmatched`', async () => {
    await seedErased('club-1', 'a');
    await movePastOrders(pool, PII_DAYS);
    expect(await send('a', 'cancelled')).toMatchObject({ status: 200, body: { outcome: 'unmatched' } });
    expect(await shown('a')).toMatchObject({ order: { status: 'completed' } });
  });

  it('is found by its id and its POS id, at the locations that the operator may see', async () => {
    await seedErased('club-1', 'a');
    await system.query(`UPDATE placements SET provider_order_id = 'P-9'`);
    await movePastOrders(pool, PII_DAYS);
    for (const text of ['a', 'P-9']) {
      expect((await search(pool, text, ['club-1'])).orders, text).toMatchObject([
        { serviceOrderId: 'a', callOutCode: 'K472', status: 'completed', placement: 'sent' },
      ]);
      expect((await search(pool, text, ['club-2'])).orders, text).toEqual([]);
    }
  });
});

describe('a month of past orders', () => {
  /** Moves orders now, and makes it look as if that was `days` days ago. @returns the name of the month's table */
  async function moveDaysAgo(days: number): Promise<string> {
    await movePastOrders(pool, PII_DAYS);
    const [row] = await system.query(
      `SELECT date_trunc('month', now() AT TIME ZONE 'UTC' - make_interval(days => $1))::date::text AS month`,
      [days],
    );
    await pool.query('SELECT ensure_past_orders_partition($1)', [row?.['month']]);
    await system.query('UPDATE past_orders SET month = $1', [row?.['month']]);
    return `past_orders_${String(row?.['month']).slice(0, 7).replace('-', '')}`;
  }

  it('is dropped after its retention, and a late signal still does not place its orders again', async () => {
    const id = await completedOrder();
    await passUntilErased();
    const table = await moveDaysAgo(400);
    expect(await dropOldPartitions(pool, 'past_orders', 431)).toEqual([]);
    expect(await showOrder(pool, id)).toBeDefined();
    expect(await dropOldPartitions(pool, 'past_orders', 369)).toEqual([table]);
    expect(await showOrder(pool, id)).toBeUndefined();
    expect(await findTombstone(pool, id)).toEqual({
      locationId: 'club-1',
      status: 'completed',
      month: `${table.slice(-6, -2)}-${table.slice(-2)}`,
    });
    expect(await findTombstone(pool, `${id}0`)).toBeUndefined();

    await system.signal(id);
    await system.finish('placements');
    expect(await system.placement(id)).toBeUndefined();
    expect(tickets).toEqual([id]);
  });

  it('leaves 16 bytes for each order when it is dropped', async () => {
    await truncate('tombstones, tombstone_locations');
    const ids = Array.from({ length: 10_000 }, () => randomUUID());
    await moveDaysAgo(100);
    await system.query(
      `INSERT INTO past_orders (month, service_order_id, location_id, signalled_at, state, rank, last_notified_sequence, packed)
       SELECT date_trunc('month', now() AT TIME ZONE 'UTC' - interval '100 days')::date, id, 'club-' || n % 300, now(), 'sent', 80, 0, ''
       FROM unnest($1::text[]) WITH ORDINALITY AS t (id, n)`,
      [ids],
    );
    expect(await dropOldPartitions(pool, 'past_orders', 60)).toHaveLength(1);
    const [left] = await system.query('SELECT sum(length(entries))::int AS bytes FROM tombstones');
    expect(left).toEqual({ bytes: 160_000 });
    for (const nth of [0, 4_711, 9_999]) {
      expect(await findTombstone(pool, String(ids[nth]))).toMatchObject({
        locationId: `club-${(nth + 1) % 300}`,
        status: 'cancelled',
      });
    }
  });

  it('is not dropped while orders may still be moved to it', async () => {
    await seedErased('club-1', 'a');
    await movePastOrders(pool, PII_DAYS);
    expect(await dropOldPartitions(pool, 'past_orders', 0)).toEqual([]);
    await expect(
      pool.query(`SELECT drop_past_orders_partition(date_trunc('month', now() AT TIME ZONE 'UTC')::date)`),
    ).rejects.toThrow('orders may still be moved to this month');
  });

  it('leaves nothing of an order that was never read, so that a new signal may place it', async () => {
    await seedErased('club-1', 'a');
    await truncate('orders, order_contents');
    await system.query(`UPDATE placements SET location_id = NULL, state = 'failed'`);
    await moveDaysAgo(400);
    expect(await dropOldPartitions(pool, 'past_orders', 369)).toHaveLength(1);
    expect(await findTombstone(pool, 'a')).toBeUndefined();
  });
});

describe('a list of orders', () => {
  /** Reads all pages. */
  async function listed(filter: Parameters<typeof listOrders>[1], limit: number): Promise<string[]> {
    const pages = await allPages((after: string | undefined) => listOrders(pool, filter, { after, limit }));
    return pages.flatMap(({ orders }) => orders.map(({ serviceOrderId }) => serviceOrderId));
  }

  it('has current and past orders by time, whatever the size of a page', async () => {
    await seedErased('club-1', 'a', 'b', 'c', 'd', 'e');
    await system.query(`UPDATE placements SET finished_at = NULL WHERE service_order_id IN ('b', 'd')`);
    await seedErased('club-2', 'f', 'g');
    await movePastOrders(pool, PII_DAYS);
    await system.seedOrder({ serviceOrderId: 'new', locationId: 'club-1' });
    expect(await idsIn('past_orders')).toEqual(['a', 'c', 'e', 'f', 'g']);
    for (const limit of [1, 2, 3, 100]) {
      expect(await listed({ locations: ['club-1'] }, limit), `${limit}`).toEqual(['new', 'e', 'd', 'c', 'b', 'a']);
      expect(await listed({}, limit), `${limit}`).toHaveLength(8);
    }
    expect(await listed({ locations: ['club-2'] }, 1)).toEqual(['g', 'f']);
    const many = Array.from({ length: 300 }, (_, nth) => `club-${nth}`);
    expect(await listed({ locations: many }, 2)).toEqual(await listed({}, 2));
    expect(await listed({ locations: [] }, 1)).toEqual([]);
  });

  it('filters past orders like current ones', async () => {
    await seedErased('club-1', 'a', 'b', 'c');
    await system.query(`UPDATE orders SET rank = 80 WHERE service_order_id = 'b'`);
    await movePastOrders(pool, PII_DAYS);
    expect(await listed({ status: 'cancelled' }, 1)).toEqual(['b']);
    expect(await listed({ status: 'completed' }, 1)).toEqual(['c', 'a']);
    expect(await listed({ state: 'failed' }, 1)).toEqual([]);
    expect(await listed({ open: true }, 1)).toEqual([]);
    expect(await listed({ since: new Date(Date.now() - 86_400_000) }, 1)).toEqual([]);
  });
});
