import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { z } from 'zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyWebhooks } from '../../../src/core/statuses/apply-webhooks.ts';
import { ensureWebhookPartitions } from '../../../src/core/postgres/ensure-webhook-partitions.ts';
import { deleteOld, dropOldPartitions, endOrders } from '../../../src/core/retention/retention-rules.ts';
import { eraseMembers, eraseOrders } from '../../../src/core/retention/erase-members.ts';
import { GiveUp, TryAgain } from '../../../src/core/domain/errors.ts';
import {
  LOCK_DROP_PARTITIONS,
  LOCK_ERASE_MEMBERS,
  LOCK_DELETE_UNMATCHED,
} from '../../../src/core/postgres/transactions.ts';
import type { StatusEvent } from '../../../src/core/domain/order.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { withClient } from '../../../src/core/postgres/transactions.ts';
import { resolveAMinuteLater } from '../../support/resolve-a-minute-later.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { moveClock, prepareClock } from '../../../world/processes/move-clock.ts';
import { placesOf } from '../../support/places-of.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { post, startSystem, type Answer, type System } from '../../../world/system/start-system.ts';
import { translatedWebhook } from '../../support/translated-webhook.ts';
import { beside, whileLocked } from '../../support/while-locked.ts';

const DAY_S = 86_400;
const WEBHOOK_DAYS = 14;
const PII_DAYS = 30;
const deleteUnmatched = (pool: pg.Pool): Promise<number[]> =>
  deleteOld(pool, 'deletion of unmatched webhooks', 2 * DAY_S);
/** A POS that says more than it should, of an order that it refuses and of one that it may have. */
const gossip: Provider = {
  integration: 'gossip',
  settings: z.object({}),
  deduplicates: false,
  createOrder(order) {
    const words = `${order.member.name} again`;
    if (order.notes === 'refuse') throw new GiveUp(words, { reason: words });
    if (order.notes === 'lose') throw new TryAgain(words, { sent: true });
    return Promise.resolve({ providerOrderId: `pos-${order.serviceOrderId}` });
  },
  webhookHeaders: ['x-table'],
  translateWebhook: ({ body }) => JSON.parse(body.toString()) as StatusEvent[],
};

let system: System;
/** A pool as each of two processes has one. */
let pools: [pg.Pool, pg.Pool];
let pool: pg.Pool;
let url: string;

beforeAll(async () => {
  system = await startSystem({
    stepped: ['placements', 'relay', 'refreshes', 'cancellations'],
    providers: [gossip],
    prepare: prepareClock,
    // Push tokens are signed today.
    env: { PUSH_AUTH: 'off' },
  });
  const open = (): pg.Pool => openDatabase(system.env['DATABASE_URL'] ?? '', 5, () => {}).pool;
  pools = [open(), open()];
  [pool] = pools;
  await system.addLocation('club-1', {}, 'gossip');
  url = await system.webhookUrl('club-1');
});
afterAll(async () => {
  await Promise.all(pools.map((each) => each.end()));
  await system.stop();
});

/** Moves the clock ahead, and lets the process know it, as it does every ten seconds. */
async function passDays(days: number): Promise<void> {
  await moveClock(system.databaseUrl, { days });
  await ensureWebhookPartitions(pool);
  await system.round('reading of the clock');
}

async function seedOrder(): Promise<string> {
  const serviceOrderId = `order-${randomUUID()}`;
  await system.seedOrder({ serviceOrderId, locationId: 'club-1' });
  return serviceOrderId;
}

const send = (event: Partial<StatusEvent>, headers?: Record<string, string>): Promise<Answer> =>
  post(url, [{ nativeStatus: 'x', ...event }], headers);

const webhook = async ({ body }: Answer): Promise<Record<string, unknown> | undefined> =>
  (await system.query('SELECT * FROM webhooks WHERE id = $1', [body['webhookId']]))[0];

/** Posts webhooks, one after the other. */
async function postMany(): Promise<void> {
  const serviceOrderId = await seedOrder();
  for (let i = 0; i < 10; i++) expect(await send({ serviceOrderId, status: 'ready' })).toMatchObject({ status: 200 });
}

/** Every day's table, attached or not, by its day; and how it stands with its parent. */
async function dayTables(): Promise<Record<string, string>> {
  const rows = await system.query(
    `SELECT right(c.relname, 8) AS day,
            CASE WHEN i.inhrelid IS NULL THEN 'detached' ELSE 'attached' END AS state
     FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
     WHERE c.relkind = 'r' AND c.relname ~ '^webhooks_' AND c.relnamespace = 'expediter'::regnamespace`,
  );
  return Object.fromEntries(rows.map((row) => [String(row['day']), String(row['state'])]));
}

/** A day relative to today, as tables are named. */
async function dayAt(days: number): Promise<string> {
  const [row] = await system.query(`SELECT to_char((now() AT TIME ZONE 'UTC')::date + $1::int, 'YYYYMMDD') AS day`, [
    days,
  ]);
  return String(row?.['day']);
}

const sum = (counts: number[]): number => counts.reduce((total, count) => total + count, 0);

/** What a job does while another process is at it. */
async function whileLockedOut<Result>(lock: number, work: () => Promise<Result>): Promise<Result> {
  const other = await system.pool.connect();
  await other.query('SELECT pg_advisory_lock($1)', [lock]);
  try {
    return await work();
  } finally {
    await other.query('SELECT pg_advisory_unlock($1)', [lock]);
    other.release();
  }
}

describe('webhooks older than WEBHOOK_RETENTION_DAYS', () => {
  it('are dropped with their day, while two processes clean up and webhooks arrive', async () => {
    const serviceOrderId = await seedOrder();
    const first = await send({ serviceOrderId, status: 'received' });
    const firstDay = await dayAt(0);
    await passDays(7);
    const second = await send({ serviceOrderId, status: 'ready' });
    const secondDay = await dayAt(0);
    await passDays(7);
    expect(await dropOldPartitions(pool, 'webhooks', WEBHOOK_DAYS)).toEqual([`webhooks_${await dayAt(-15)}`]);
    expect(await webhook(first)).toBeDefined();

    await passDays(4);
    expect(await whileLockedOut(LOCK_DROP_PARTITIONS, () => dropOldPartitions(pool, 'webhooks', WEBHOOK_DAYS))).toEqual(
      [],
    );
    const [result] = await Promise.all([
      Promise.all(pools.map((each) => dropOldPartitions(each, 'webhooks', WEBHOOK_DAYS))),
      postMany(),
    ]);
    const expected = [-18, -17, -16, -15].map(async (days) => `webhooks_${await dayAt(days)}`);
    expect(result.flat().sort()).toEqual(await Promise.all(expected));
    const tables = await dayTables();
    expect(tables[firstDay]).toBeUndefined();
    expect(tables[secondDay]).toBe('attached');
    expect(await webhook(first)).toBeUndefined();
    expect(await webhook(second)).toBeDefined();
    // What they did to the order stays.
    expect(await system.order(serviceOrderId)).toMatchObject({ status: 'ready' });
  });

  it.each([
    ['webhooks', 'canceling statement due to lock timeout'],
    // Webhooks wait by then.
    ['the day itself', 'could not obtain lock on relation'],
  ])('are kept while another session reads %s, and no webhook waits for that', async (read, why) => {
    await passDays(4);
    const oldest = await dayAt(-18);
    const neighbour = new pg.Client(system.databaseUrl);
    await neighbour.connect();
    await neighbour.query('BEGIN');
    await neighbour.query(`SELECT FROM ${read === 'webhooks' ? read : `webhooks_${oldest}`} LIMIT 1`);
    await expect(dropOldPartitions(pool, 'webhooks', WEBHOOK_DAYS, { patienceMs: 0 })).rejects.toMatchObject({
      code: '55P03',
      message: expect.stringContaining(why),
    });
    // The other process tries again and again, and webhooks are committed in between.
    const dropping = dropOldPartitions(pools[1], 'webhooks', WEBHOOK_DAYS, { patienceMs: 60_000 });
    await postMany();
    expect((await dayTables())[oldest]).toBe('attached');
    // The day's partition is made all the same.
    await passDays(1);
    expect((await dayTables())[await dayAt(7)]).toBe('attached');
    await neighbour.query('ROLLBACK');
    await neighbour.end();

    expect(await dropping).not.toEqual([]);
    const tables = await dayTables();
    expect(Object.keys(tables).filter((day) => day <= oldest)).toEqual([]);
    expect(new Set(Object.values(tables))).toEqual(new Set(['attached']));
  });

  it('the connection that cleaned up returns to the pool with its old settings', async () => {
    const settings = async (): Promise<unknown[]> => {
      const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
      const shown = await Promise.all(
        clients.map(
          async (client) =>
            (
              await client.query(
                `SELECT current_setting('lock_timeout') AS wait,
                        (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks`,
              )
            ).rows[0] as unknown,
        ),
      );
      for (const client of clients) client.release();
      return shown;
    };
    await dropOldPartitions(pool, 'webhooks', WEBHOOK_DAYS);
    expect(await settings()).toEqual(Array.from({ length: pool.options.max }, () => ({ wait: '4s', locks: 0 })));
  });
});

describe('webhooks that match no order', () => {
  it('are deleted after two days, and webhooks of our orders stay', async () => {
    const serviceOrderId = await seedOrder();
    const applied = await send({ serviceOrderId, status: 'ready' });
    const duplicate = await send({ serviceOrderId, status: 'ready' });
    const dropped = await post(url, 'no JSON');
    const ignored = await post(url, []);
    const unmatched = await send({ providerOrderId: 'nobody-1', status: 'ready' });
    await system.query(
      `INSERT INTO placements (service_order_id, location_id, deadline_at, requested_at, next_attempt_at)
       VALUES ('open', 'club-1', now() + interval '1 year', now(), 'infinity')`,
    );
    const parked = await send({ providerOrderId: 'nobody-2', status: 'ready' });
    const outcomes = [applied, duplicate, dropped, ignored, unmatched, parked].map(({ body }) => body['outcome']);
    expect(outcomes).toEqual(['applied', 'duplicate', 'dropped', 'ignored', 'unmatched', 'parked']);

    await passDays(1.9);
    expect(await deleteUnmatched(pool)).toEqual([0, 0]);
    await passDays(0.2);
    expect(await whileLockedOut(LOCK_DELETE_UNMATCHED, () => deleteUnmatched(pool))).toEqual([0, 0]);
    await Promise.all(pools.map(deleteUnmatched));

    const kept = await Promise.all([applied, duplicate, dropped, ignored, unmatched, parked].map(webhook));
    expect(kept.map((row) => row?.['outcome'])).toEqual([
      'applied',
      'duplicate',
      'dropped',
      undefined,
      undefined,
      'unmatched',
    ]);
    expect(kept.at(-1)).toMatchObject({ reason: 'its POS id never became ours', events: 1 });
    expect(await system.query('SELECT * FROM parked_events')).toEqual([]);
    // A later round leaves it to its partition.
    await deleteUnmatched(pool);
    expect(await webhook(parked)).toBeDefined();
  });

  it('are deleted in any number, except those whose row is locked', async () => {
    await system.query(
      `INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome)
       SELECT (now() AT TIME ZONE 'UTC')::date, 'club-1', gen_random_uuid(), 'gossip', now(), '{}', '', 1,
              CASE WHEN i % 10 = 0 THEN 'applied' ELSE 'unmatched' END
       FROM generate_series(1, 3000) AS i`,
    );
    await system.query(
      `INSERT INTO parked_events (location_id, integration, provider_order_id, webhook_day, webhook_id, rank, native_status)
       SELECT location_id, integration, id::text, day, id, 40, 'x' FROM webhooks WHERE body = '' AND outcome = 'unmatched'`,
    );
    await passDays(3);
    // What somebody is at is left to the next round.
    await beside(
      system.pool,
      `SELECT FROM webhooks WHERE body = '' AND outcome = 'unmatched' LIMIT 1 FOR UPDATE;
       SELECT FROM parked_events LIMIT 1 FOR UPDATE`,
      async () => expect(await deleteUnmatched(pool)).toEqual([2_699, 2_699]),
    );
    expect(await deleteUnmatched(pool)).toEqual([1, 1]);
    const [left] = await system.query(`SELECT count(*)::int FROM webhooks WHERE body = '' AND outcome = 'applied'`);
    expect(left).toEqual({ count: 300 });
  });
});

describe('member data', () => {
  const mark = `Zuleika-${randomUUID()}`;
  const openMark = `Quentin-${randomUUID()}`;
  const member = { id: 'member-1', name: mark };
  const words = `for ${mark}`;
  const ids = { sent: '', refused: '', lost: '', open: '', unfetched: '' };
  let original: Answer;

  /** The states of placements after all that is due was done. */
  const settled = async (...orders: string[]): Promise<unknown[]> => {
    await system.finish('placements');
    return Promise.all(orders.map(async (id) => (await system.placement(id))?.['state']));
  };

  beforeAll(async () => {
    await system.query('TRUNCATE placements, orders, webhooks CASCADE');
    const place = async (notes: string): Promise<string> => (await system.placeOrder({ member, notes })).serviceOrderId;
    ids.sent = await place('take');
    ids.refused = await place('refuse');
    ids.lost = await place('lose');
    const later = new Date(Date.now() + 180 * DAY_S * 1000).toISOString();
    ids.open = (
      await system.placeOrder({
        member: { id: 'member-2', name: openMark },
        fulfillment: { type: 'pickup', requestedAt: later },
      })
    ).serviceOrderId;
    system.platform.orders.set('not-canonical', sampleOrder({ serviceOrderId: 'not-canonical', items: [] }));
    ids.unfetched = 'not-canonical';
    await system.signal('not-canonical');
    expect(await settled(ids.sent, ids.refused, ids.lost, ids.open, ids.unfetched)).toEqual([
      'sent',
      'failed',
      'in_doubt',
      'sent',
      'held',
    ]);
    await system.query(`UPDATE placements SET deadline_at = now() WHERE service_order_id = $1`, [ids.unfetched]);
    await system.signal(ids.unfetched);
    expect(await settled(ids.unfetched)).toEqual(['failed']);
    await send({ serviceOrderId: ids.sent, status: 'received', reason: words });
    await send({ serviceOrderId: ids.sent, status: 'cancelled', reason: words });
    await passDays(2);
    expect(await endOrders(pool)).toBe(1);

    await passDays(PII_DAYS - 6);
    // Webhooks that are still there when the time comes, one of them about another order, too.
    await send({ serviceOrderId: ids.sent, status: 'cancelled', reason: words }, { 'x-table': words });
    await send({ serviceOrderId: ids.open, status: 'received', reason: openMark }, { 'x-table': openMark });
    original = await post(url, `{"unreadable": "${mark}`);
    const receivedAt = (await webhook(original))?.['received_at'] as Date;
    const about = {
      integration: 'gossip',
      receivedAt,
      body: Buffer.from(`{"unreadable": "${mark}`),
      replayOf: { webhookId: String(original.body['webhookId']), receivedAt },
    };
    const dropped = { reason: 'unreadable again', cause: { code: 'unreadable' } } as const;
    const replays = [
      translatedWebhook([], { ...about, dropped }),
      translatedWebhook([{ serviceOrderId: ids.sent, status: 'ready' }], about),
    ];
    await withClient(pool, (client) => applyWebhooks(client, replays));
  });

  it('stays in all known places until PII_RETENTION_DAYS after the end of its order', async () => {
    const [row] = await system.query('SELECT day, id FROM webhooks WHERE outcome = $1 LIMIT 1', ['duplicate']);
    await system.query(
      `INSERT INTO parked_events (location_id, integration, provider_order_id, webhook_day, webhook_id, rank, native_status, reason)
       VALUES ('club-1', 'gossip', $1, $2, $3, 40, 'x', $4)`,
      [`pos-${ids.sent}`, row?.['day'], row?.['id'], words],
    );
    const before = await placesOf(system, mark);
    expect(before).toEqual([
      'order_contents.contents',
      'orders.reason',
      'outbox.reason',
      'parked_events.reason',
      'placement_attempts.error',
      'placements.problem',
      'status_events.reason',
      'webhooks.body',
      'webhooks.headers',
    ]);
    expect(await eraseMembers(pool, PII_DAYS)).toBe(0);
    expect(await placesOf(system, mark)).toEqual(before);
  });

  it('is deleted everywhere after PII_RETENTION_DAYS, and data of open orders stays', async () => {
    const open = await placesOf(system, openMark);
    expect(open).toEqual(
      expect.arrayContaining(['webhooks.body', 'webhooks.headers', 'order_contents.contents', 'orders.reason']),
    );
    expect((await system.placement(ids.unfetched))?.['problem']).toMatch(/^the deadline has passed; last problem: /);
    await passDays(8);
    await endOrders(pool);
    expect(await whileLockedOut(LOCK_ERASE_MEMBERS, () => eraseMembers(pool, PII_DAYS))).toBe(0);
    const erased = await Promise.all(pools.map((each) => eraseMembers(each, PII_DAYS)));
    expect(sum(erased)).toBe(3);
    // Each process skips a step while the other one holds its lock. One more round takes the skipped steps.
    expect(await eraseMembers(pool, PII_DAYS)).toBe(0);
    expect(await placesOf(system, mark)).toEqual([]);
    expect(await placesOf(system, openMark)).toEqual(open);
    expect(await webhook(original)).toMatchObject({ outcome: 'dropped', sealed: null, reason: null });
    expect((await system.placement(ids.unfetched))?.['problem']).toBeNull();
    // What is no member's stays.
    expect(await system.order(ids.sent)).toMatchObject({ status: 'cancelled', erased_at: expect.any(Date) });
    expect(await system.order(ids.open)).toMatchObject({ erased_at: null, ended_at: null });
  });

  it('is not stored again by a signal, or when a doubt is settled', async () => {
    const asked = system.platform.requests.length;
    for (const id of [ids.sent, ids.refused, ids.lost]) expect(await system.signal(id)).toBe(204);
    expect(await settled(ids.lost)).toEqual(['in_doubt']);
    expect(await resolveAMinuteLater({ pool: pool }, ids.lost)).toEqual({
      serviceOrderId: ids.lost,
      state: 'waiting',
      late: true,
    });
    expect(await settled(ids.lost)).toEqual(['failed']);
    expect(await system.placement(ids.lost)).toMatchObject({ problem: 'the order has ended' });
    // Nor where the contents alone are gone.
    await seedOrders(pool, ['hollow'], { placement: { deadline_at: 'tomorrow' } });
    expect(await settled('hollow')).toEqual(['failed']);
    expect(system.platform.requests).toHaveLength(asked);
    expect(await placesOf(system, mark)).toEqual([]);
  });

  it.each([
    ['moves the order', 'cancelled', 'applied', () => ids.lost],
    ['is a duplicate', 'cancelled', 'duplicate', () => ids.sent],
    ['is stale', 'ready', 'stale', () => ids.sent],
  ] as const)('is not stored from a webhook that %s, which is answered 200', async (_what, status, outcome, id) => {
    const answer = await send({ serviceOrderId: id(), status, reason: words }, { 'x-table': words });
    expect(answer).toMatchObject({ status: 200, body: { outcome } });
    expect(await placesOf(system, mark)).toEqual([]);
    expect(await webhook(answer)).toMatchObject({ outcome, events: 1, body: Buffer.alloc(0), headers: {} });
    const [last] = await system.query(
      'SELECT * FROM status_events WHERE service_order_id = $1 ORDER BY event_id DESC LIMIT 1',
      [id()],
    );
    expect(last).toMatchObject({ outcome, status, reason: null });
  });

  it('is not stored for an erased order, even from a webhook that also moves an open order', async () => {
    const answer = await post(url, [
      { serviceOrderId: ids.sent, status: 'ready', nativeStatus: 'x', reason: words },
      { serviceOrderId: ids.open, status: 'ready', nativeStatus: 'x', reason: 'soon' },
    ]);
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'applied' } });
    expect(await system.order(ids.open)).toMatchObject({ status: 'ready', reason: 'soon' });
    expect(await placesOf(system, mark)).toEqual([]);
  });

  it('is not erased if its order has not ended', async () => {
    const open = await placesOf(system, openMark);
    expect(await withClient(pool, (client) => eraseOrders(client, [ids.open]))).toBe(0);
    expect(await placesOf(system, openMark)).toEqual(open);
  });

  it('is deleted in batches that skip locked orders until the next round', async () => {
    const stuck = Array.from({ length: 250 }, (_, i) => `ended-${String(i).padStart(3, '0')}`);
    await system.query(
      `INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, reason, ended_at)
       SELECT id, 'K472', 'club-1', 'pickup', $2, now() - interval '40 days' + make_interval(secs => n)
       FROM unnest($1::text[]) WITH ORDINALITY AS t(id, n)`,
      [stuck, words],
    );
    await whileLocked(system.pool, 'ended-150', async () => expect(await eraseMembers(pool, PII_DAYS)).toBe(249));
    const left = `SELECT count(*)::int AS left FROM orders WHERE reason = $1`;
    expect(await system.query(left, [words])).toEqual([{ left: 1 }]);
    const erased = await Promise.all(pools.map((each) => eraseMembers(each, PII_DAYS)));
    expect(sum(erased)).toBe(1);
    expect(await system.query(left, [words])).toEqual([{ left: 0 }]);
  });

  it('is deleted with all other overdue data by the jobs of a process', async () => {
    const late = await seedOrder();
    await system.query(`INSERT INTO order_contents (service_order_id, contents) VALUES ($1, $2)`, [late, { member }]);
    const kept = await send({ serviceOrderId: late, status: 'completed' });
    const unmatched = await send({ providerOrderId: 'nobody', status: 'ready' });
    await passDays(PII_DAYS + 1);
    for (const job of ['deletion of unmatched webhooks', 'dropping of partitions', 'erasure of member data'] as const) {
      await system.round(job);
    }
    expect(await system.order(late)).toMatchObject({ erased_at: expect.any(Date) });
    const oldest = await dayAt(-WEBHOOK_DAYS);
    expect(Object.keys(await dayTables()).filter((day) => day < oldest)).toEqual([]);
    expect([await webhook(kept), await webhook(unmatched)]).toEqual([undefined, undefined]);
    expect(await system.query('SELECT FROM parked_events')).toEqual([]);
    expect(await placesOf(system, mark)).toEqual([]);
  });
});
