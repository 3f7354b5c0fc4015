import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { statusAt } from '../../../src/core/domain/lifecycle.ts';
import {
  BoardComplete,
  BoardOrders,
  BoardReset,
  boardFeed,
  type WholeBoard,
} from '../../../src/core/orders/board-feed.ts';
import { BoardOrder } from '../../../src/core/orders/read-board.ts';
import { Attention } from '../../../src/core/orders/sample-attention.ts';
import { eraseBatch } from '../../../src/core/retention/erase-members.ts';
import { eventStream, writeBoardEvents } from '../../../src/http/operator/event-stream.ts';
import { OPERATOR_TOKEN, askOperator } from '../../../world/system/ask-operator.ts';
import { createDatabase } from '../../../world/postgres/create-database.ts';
import { holdOpen } from '../../support/hold-open.ts';
import { nameToken } from '../../../world/system/log-in.ts';
import { readEvents, type ReadEvents } from '../../support/read-events.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { statusWebhook } from '../../../world/pos/status-webhook.ts';
import { until } from '../../../world/processes/until.ts';
import { whilePostgresIsAway } from '../../support/while-postgres-is-away.ts';

const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
/** Nothing but what the API describes. */
const SHAPES: Record<string, z.ZodType> = {
  reset: BoardReset,
  orders: z.object({ orders: z.array(BoardOrder.strict()) }),
  complete: BoardComplete,
  attention: Attention,
  heartbeat: z.strictObject({}),
};

type Watched = ReadEvents & {
  /** What a client has by now. */
  order(serviceOrderId: string): z.infer<typeof BoardOrder> | undefined;
  attention(): z.infer<typeof Attention> | undefined;
};

let stage: Stage;
/** The stage, and another process. */
let both: Stage[];
let urls: string[];
let webhook: string;
const open: Watched[] = [];

beforeAll(async () => {
  stage = await startStage();
  both = [stage, await startStage({ databaseUrl: stage.databaseUrl })];
  urls = await Promise.all(both.map((each) => each.listen()));
  for (const id of ['club-1', 'club-2']) await stage.addLocation(id, { ordersUrl: 'http://127.0.0.1:9/orders' });
  webhook = await stage.webhookPath('club-1');
});
afterEach(() => {
  for (const each of open.splice(0)) {
    for (const { event, data } of each.events) SHAPES[event ?? '']?.parse(data);
    each.leave();
  }
});
afterAll(() => Promise.all(both.map((each) => each.stop())));

/** @param process webhooks come to the first, 0 */
async function watch(process: number, query = '', as: Record<string, string> = headers): Promise<Watched> {
  const read = await readEvents(`${urls[process]}/v1/live${query}`, as);
  const all = <Data>(event: string): Data[] =>
    read.events.filter((each) => each.event === event).map(({ data }) => data as Data);
  const watched: Watched = {
    ...read,
    order: (id) =>
      all<z.infer<typeof BoardOrders>>('orders')
        .flatMap(({ orders }) => orders)
        .findLast(({ serviceOrderId }) => serviceOrderId === id),
    attention: () => all<z.infer<typeof Attention>>('attention').at(-1),
  };
  open.push(watched);
  if (read.status === 200) await until(() => watched.attention() !== undefined);
  return watched;
}

/** Waits for something that needs attention, or does no more. */
const noticed = (isSo: () => boolean | undefined): Promise<unknown> =>
  until(() => {
    for (const each of both) each.lookForProblems();
    return isSo();
  });

const report = (serviceOrderId: string, status: string, path = webhook, at = stage): Promise<{ status: number }> =>
  at.post(path, statusWebhook({ serviceOrderId, providerOrderId: `pos-${serviceOrderId}`, status }));

describe('the board', () => {
  it('sends reset, orders, complete and attention, without member data', async () => {
    await stage.seedOrder({ serviceOrderId: 'whole', locationId: 'club-1' });
    await stage.query(`UPDATE orders SET reason = 'Ada is allergic' WHERE service_order_id = 'whole'`);
    const watched = await watch(0);
    expect(watched.headers.get('content-type')).toBe('text/event-stream');
    expect(watched.headers.get('cache-control')).toBe('no-store, no-transform');
    expect(watched.retries).toEqual([2000]);
    expect(watched.events.map(({ event }) => event)).toEqual(['reset', 'orders', 'complete', 'attention']);
    expect(watched.events.every(({ id }) => id === '' || id === undefined)).toBe(true);
    expect(watched.events[2]?.data).toEqual({ open: 1, ended: 0, truncated: false });
    expect(watched.order('whole')).toMatchObject({
      locationId: 'club-1',
      integration: 'standard',
      placement: 'sent',
      memberState: 'sent',
      endedAt: null,
      requestedAt: null,
    });
    expect(JSON.stringify(watched.events)).not.toContain('Ada');
  });

  it("shows only items and total of an order's contents, and shows nothing of them after the member's erasure", async () => {
    const contents = sampleOrder({ serviceOrderId: 'ordered', type: 'delivery' });
    const { items, money } = contents;
    await stage.seedOrder({ serviceOrderId: 'ordered', locationId: 'club-1', contents });
    const watched = await watch(0);
    await until(() => watched.order('ordered') !== undefined);
    expect(watched.order('ordered')?.ordered).toEqual({
      items: items.map(({ name, quantity }) => ({ name, quantity })),
      lines: 3,
      total: money.total,
      currency: 'EUR',
    });
    expect(JSON.stringify(watched.events)).not.toMatch(
      /Ada|ada@|\+4930|Lindenstra|Ring twice|well done|terrace|onions/,
    );

    expect(await eraseBatch(stage.pool, ['ordered'], { sent: true })).toBe(1);
    await until(() => watched.order('ordered')?.ordered === null);
  });

  it("shows, with the filter of a group, only orders at the group's locations, also after the group has changed", async () => {
    await stage.seedOrder({ serviceOrderId: 'in-brand', locationId: 'club-1' });
    await stage.seedOrder({ serviceOrderId: 'in-no-brand', locationId: 'club-2' });
    await stage.query(`UPDATE locations SET groups = '{brand}' WHERE location_id = 'club-1'`);
    const watched = await watch(0, '?group=brand');
    expect(watched.order('in-brand')).toBeDefined();
    expect(watched.order('in-no-brand')).toBeUndefined();
    await stage.query(`UPDATE locations SET groups = '{brand}' WHERE location_id = 'club-2'`);
    // The stream ends, and its reader opens it again.
    await watched.ended;
    expect((await watch(0, '?group=brand')).order('in-no-brand')).toBeDefined();
    await stage.query(`UPDATE locations SET groups = '{}'`);
  });

  it('shows each state of an order, at both processes', async () => {
    const [near, far] = await Promise.all([watch(0), watch(1)]);
    await stage.seedOrder({ serviceOrderId: 'moving', locationId: 'club-1' });
    for (const board of [near, far]) {
      await until(() => board.order('moving')?.memberState === 'sent');
    }
    for (const [status, memberState] of [
      ['RECEIVED', 'confirmed'],
      ['IN_PROGRESS', 'preparing'],
      ['COMPLETED', 'picked_up'],
    ] as const) {
      await report('moving', status);
      for (const board of [near, far]) await until(() => board.order('moving')?.memberState === memberState);
    }
    expect(far.order('moving')).toEqual(near.order('moving'));
    expect(far.order('moving')).toMatchObject({
      placement: 'sent',
      status: 'completed',
      providerOrderId: 'pos-moving',
    });
    expect(far.order('moving')?.endedAt).not.toBeNull();
  });

  it('has orders that failed before they were fetched, and orders that ended within a day', async () => {
    await stage.query(
      `WITH p AS (
         INSERT INTO placements (service_order_id, state, problem, deadline_at, finished_at)
         VALUES ('unfetched', 'failed', 'no such order', now(), now()),
                ('unfetched-long-ago', 'failed', 'no such order', now(), now() - interval '25 h'))
       SELECT`,
    );
    for (const id of ['ended', 'ended-long-ago']) await stage.seedOrder({ serviceOrderId: id, locationId: 'club-1' });
    await stage.query(
      `UPDATE orders SET ended_at = now() - CASE service_order_id WHEN 'ended' THEN interval '23 h' ELSE interval '25 h' END
       WHERE service_order_id LIKE 'ended%'`,
    );
    const watched = await watch(1);
    expect(watched.order('unfetched')).toMatchObject({
      placement: 'failed',
      problem: 'no such order',
      locationId: null,
      memberState: null,
      endedAt: expect.any(String) as string,
    });
    expect(watched.order('ended')).toBeDefined();
    expect(watched.order('ended-long-ago')).toBeUndefined();
    expect(watched.order('unfetched-long-ago')).toBeUndefined();
  });

  it('can be filtered by a location or an integration', async () => {
    for (const club of ['club-1', 'club-2']) {
      await stage.seedOrder({ serviceOrderId: `of-${club}`, locationId: club });
    }
    const second = await stage.webhookPath('club-2');
    const [one, none] = await Promise.all([watch(0, '?location=club-2'), watch(0, '?integration=other')]);
    await report('of-club-1', 'READY');
    await report('of-club-2', 'READY', second);
    await until(() => one.order('of-club-2')?.status === 'ready');
    expect(one.order('of-club-1')).toBeUndefined();
    await stage.query(`UPDATE orders SET integration = 'other' WHERE service_order_id = 'of-club-1'`);
    await until(() => none.order('of-club-1') !== undefined);
    await stage.query(`UPDATE orders SET integration = 'standard' WHERE service_order_id = 'of-club-1'`);
    await until(() => none.order('of-club-1')?.integration === 'standard');
    expect(none.order('of-club-2')).toBeUndefined();
  });

  it.each([['?location='], ['?club=1'], ['?integration=']])('answers 400 to an invalid filter: %s', async (query) => {
    expect((await watch(0, query)).status).toBe(400);
  });

  it('shows every watcher the state in Postgres after 50 simultaneous changes and a late commit', async () => {
    const ORDERS = 50;
    await stage.query(
      `WITH p AS (
         INSERT INTO placements (service_order_id, location_id, state, deadline_at, provider_order_id, finished_at)
         SELECT 'many-' || i, 'club-2', 'sent', now(), 'pos-many-' || i, now() FROM generate_series(1, $1::int) AS i
       )
       INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence, provider_order_id)
       SELECT 'many-' || i, 'K472', 'club-2', 'standard', 'pickup', 10, 2, 'pos-many-' || i FROM generate_series(1, $1::int) AS i`,
      [ORDERS],
    );
    const watching = await Promise.all([watch(0), watch(1)]);
    const url = await stage.webhookPath('club-2');
    const early = `UPDATE orders SET reason = 'begun early', rank = 50 WHERE service_order_id = 'many-1'`;
    const late = await holdOpen(stage.databaseUrl, early);
    await Promise.all(
      Array.from({ length: ORDERS - 1 }, async (_, i) => {
        for (const [nth, status] of ['RECEIVED', 'IN_PROGRESS', 'READY', 'COMPLETED'].entries()) {
          await until(async () => (await report(`many-${i + 2}`, status, url, both[(i + nth) % 2])).status === 200);
        }
      }),
    );
    await late.end('COMMIT');
    const rows = await stage.query(
      `SELECT service_order_id AS id, rank, ended_at IS NOT NULL AS ended FROM orders WHERE service_order_id LIKE 'many-%'`,
    );
    for (const watched of watching) {
      const differing = (): unknown[] =>
        rows.filter(({ id, rank, ended }) => {
          const order = watched.order(String(id));
          return order?.status !== statusAt(Number(rank)) || (order?.endedAt !== null) !== ended;
        });
      await until(() => differing().length === 0).catch(() => expect(differing()).toEqual([]));
      await until(() => watched.order('many-1')?.memberState === 'ready_for_pickup');
    }
  });
});

describe('the attention list', () => {
  it('lists a dropped webhook until a replay of the webhook is applied', async () => {
    await stage.addLocation('mended', {
      ordersUrl: 'http://127.0.0.1:9/orders',
      secret: `whsec_${Buffer.alloc(24, 1).toString('base64')}`,
    });
    await stage.seedOrder({ serviceOrderId: 'unheard', locationId: 'mended' });
    const watched = await watch(1);
    const url = await stage.webhookPath('mended');
    const { body } = await stage.post(url, statusWebhook({ serviceOrderId: 'unheard', status: 'READY' }));
    expect(body).toMatchObject({ outcome: 'dropped' });
    const droppedThere = (): unknown => watched.attention()?.dropped.find(({ locationId }) => locationId === 'mended');
    await noticed(() => droppedThere() !== undefined);
    expect(droppedThere()).toMatchObject({
      integration: 'standard',
      count: 1,
      lastReason: expect.stringMatching(/./) as string,
      lastCause: { code: 'signature_missing', header: 'webhook-id' },
    });
    const droppedSince = async (): Promise<unknown> => {
      const answer = await fetch(`${urls[0]}/v1/orders/unheard`, { headers });
      return ((await answer.json()) as Record<string, unknown>)['droppedSince'];
    };
    expect(await droppedSince(), 'nobody claims that the POS said nothing').toBe(1);

    const replay = (): Promise<Response> =>
      fetch(`${urls[0]}/v1/webhooks/${String(body['webhookId'])}/replay`, { method: 'POST', headers });
    expect(await (await replay()).json()).toMatchObject({ outcome: 'dropped' });
    // What is sampled after it.
    await stage.query(
      `INSERT INTO order_changes (service_order_id, changes) VALUES ('unheard', '[{"path": "notes"}]')`,
    );
    await noticed(() => watched.attention()?.changed.some(({ serviceOrderId }) => serviceOrderId === 'unheard'));
    expect(droppedThere()).toMatchObject({ count: 1 });
    await stage.query('DELETE FROM order_changes');

    await stage.addLocation('mended', { ordersUrl: 'http://127.0.0.1:9/orders' });
    expect(await (await replay()).json()).toMatchObject({ outcome: 'applied' });
    await noticed(() => droppedThere() === undefined);
    expect(await droppedSince()).toBe(0);
    await until(() => watched.order('unheard')?.status === 'ready');
  });

  it('shows a status after the end of an order as one conflict', async () => {
    await stage.seedOrder({ serviceOrderId: 'contradicted', locationId: 'club-1' });
    const [watched, elsewhere] = await Promise.all([watch(0), watch(0, '?location=club-2')]);
    await stage.query(
      `UPDATE orders SET rank = 70, failed_by_us = true, ended_at = now() WHERE service_order_id = 'contradicted'`,
    );
    for (let i = 0; i < 3; i++) await report('contradicted', 'READY');
    await noticed(() => (watched.attention()?.conflicts.length ?? 0) > 0);
    expect(watched.attention()?.conflicts).toMatchObject([
      { serviceOrderId: 'contradicted', locationId: 'club-1', status: 'ready' },
    ]);
    expect(watched.attention()?.conflicts[0]).not.toHaveProperty('integration');
    expect(elsewhere.attention()?.conflicts).toEqual([]);
  });

  it('lists a cancellation that only a person can do, until the cancellation is finished', async () => {
    await stage.seedOrder({ serviceOrderId: 'by-phone', locationId: 'club-1' });
    await stage.query(`UPDATE orders SET provider_order_id = '8F2K' WHERE service_order_id = 'by-phone'`);
    await stage.query(
      `INSERT INTO cancellations (service_order_id, location_id, requested_by, state, deadline_at, next_attempt_at)
       VALUES ('by-phone', 'club-1', 'platform', 'by_phone', now(), 'infinity'),
              ('tried-again', 'club-1', 'platform', 'due', now() + interval '1 h', now() + interval '1 h')`,
    );
    await stage.query(
      `INSERT INTO cancellations (service_order_id, location_id, requested_by, state, deadline_at, next_attempt_at, requested_at)
       SELECT 'older-' || nth, 'club-1', 'platform', 'by_phone', now(), 'infinity', now() - make_interval(mins => nth)
       FROM generate_series(1, 120) AS nth`,
    );
    const [watched, elsewhere] = await Promise.all([watch(0), watch(0, '?location=club-2')]);
    await noticed(() => (watched.attention()?.cancelByPhone.length ?? 0) > 1);
    const { cancelByPhone, cancelByPhoneTotal } = watched.attention() ?? {};
    expect(cancelByPhone?.[0]).toMatchObject({ serviceOrderId: 'by-phone', providerOrderId: '8F2K' });
    expect([cancelByPhone?.length, cancelByPhone?.at(-1)?.serviceOrderId, cancelByPhoneTotal]).toEqual([
      100,
      'older-99',
      121,
    ]);
    expect(elsewhere.attention()).toMatchObject({ cancelByPhone: [], cancelByPhoneTotal: 0 });
    await stage.query(`UPDATE cancellations SET finished_at = now()`);
    await noticed(() => watched.attention()?.cancelByPhone.length === 0);
  });

  it("lists the platform's changes of a sent order for a day, without the changed values", async () => {
    for (const serviceOrderId of ['changed', 'changed-before']) {
      await stage.seedOrder({ serviceOrderId, locationId: 'club-1' });
    }
    await stage.query(
      `INSERT INTO order_changes (service_order_id, seen_at, changes)
       VALUES ('changed', now(), '[{"path": "notes", "was": "For Ada", "is": "For Grace"}]'),
              ('changed', now() - interval '1 h', '[{"path": "money.total", "was": 1, "is": 2}]'),
              ('changed-before', now() - interval '25 h', '[{"path": "money.total", "was": 1, "is": 2}]')`,
    );
    const [watched, elsewhere] = await Promise.all([watch(0), watch(0, '?location=club-2')]);
    await noticed(() => (watched.attention()?.changed.length ?? 0) > 0);
    expect(elsewhere.attention()?.changed).toEqual([]);
    expect(watched.attention()?.changed).toMatchObject([{ serviceOrderId: 'changed', paths: ['notes'] }]);
    expect(JSON.stringify(watched.events)).not.toMatch(/Ada|Grace/);
    await stage.query(`INSERT INTO order_changes (service_order_id, changes) VALUES ('changed', '[]')`);
    await noticed(() => watched.attention()?.changed.length === 0);
  });

  it('lists a location that sent no webhook within minutes after a ticket, until the location sends a webhook', async () => {
    await stage.addLocation('quiet', { ordersUrl: 'http://127.0.0.1:9/orders' });
    for (const id of ['unreceived', 'just-sent', 'for-tomorrow']) {
      await stage.seedOrder({ serviceOrderId: id, locationId: 'quiet' });
    }
    const silentThere = (watched: Watched): unknown =>
      watched.attention()?.silent.find(({ locationId }) => locationId === 'quiet');
    const watched = await watch(0);
    expect(silentThere(watched)).toBeUndefined();
    await stage.query(
      `UPDATE orders SET requested_at = now() + interval '1 day' WHERE service_order_id = 'for-tomorrow'`,
    );
    await stage.query(
      `UPDATE placements SET finished_at = now() - interval '6 min'
       WHERE service_order_id IN ('unreceived', 'for-tomorrow')`,
    );
    await noticed(() => silentThere(watched) !== undefined);
    expect(silentThere(watched)).toMatchObject({ integration: 'standard', lastSeenAt: null, sent: 1, hasToken: false });
    await stage.webhookPath('quiet');
    await noticed(() => (silentThere(watched) as { hasToken?: boolean } | undefined)?.hasToken === true);
    const unreported = async (): Promise<unknown> =>
      (await (await askOperator(stage.app)).get('/locations/quiet')).body['open'];
    expect(await unreported()).toMatchObject({ unreported: 1, unreportedSince: expect.any(String) });
    await stage.query(`INSERT INTO location_last_seen VALUES ('quiet', 'standard', now())`);
    await noticed(() => silentThere(watched) === undefined);
    expect(await unreported()).toMatchObject({ unreported: 0 });
  });

  it('lists a location whose POS is unreachable', async () => {
    await stage.addLocation('down', { ordersUrl: 'http://127.0.0.1:9/orders' });
    const watched = await watch(0);
    await stage.query(
      `INSERT INTO kitchens (location_id, since, state, unreachable_since) VALUES ('down', now(), 'unreachable', now())`,
    );
    await noticed(() => watched.attention()?.unreachable.some(({ locationId }) => locationId === 'down'));
  });
});

it('the attention list has a location whose contact could not be reached, until a message is sent', async () => {
  await stage.addLocation('unreached', { ordersUrl: 'http://127.0.0.1:9/orders' });
  const end = (outcome: string): Promise<unknown> =>
    stage.query(
      `INSERT INTO notice_messages (message_id, location_id, step, contact, outcome, problem, ended_at)
       VALUES (gen_random_uuid(), 'unreached', 'email 0', '{}', $1, 'no answer', clock_timestamp())`,
      [outcome],
    );
  const watched = await watch(0);
  await end('gave_up');
  await noticed(() => watched.attention()?.unreachedContacts.length === 1);
  expect(watched.attention()?.unreachedContacts).toMatchObject([
    { locationId: 'unreached', integration: 'standard', count: 1, lastProblem: 'no answer' },
  ]);
  await end('sent');
  await noticed(() => watched.attention()?.unreachedContacts.length === 0);
});

describe('live messages that cannot be published', () => {
  it('are on the board of each operator who may see their locations, with any filter', async () => {
    const [watched, elsewhere] = await Promise.all([watch(0), watch(1, '?location=nowhere')]);
    const token = await nameToken(stage, 'club-2', ['viewer'], ['club-2']);
    const ofAnother = await watch(0, '', { authorization: `Bearer ${token}` });
    const unnotified = async (count: number): Promise<void> => {
      for (const board of [watched, elsewhere]) {
        await noticed(() => (board.attention()?.unnotified?.orders ?? 0) === count);
      }
    };
    // As the relay leaves them when the topic refuses them.
    await stage.query('DELETE FROM outbox');
    await unnotified(0);
    for (const id of ['unnotified-1', 'unnotified-2']) {
      await stage.seedOrder({ serviceOrderId: id, locationId: 'club-1' });
      await report(id, 'READY');
    }
    await stage.query(`UPDATE outbox SET applied_at = now() - interval '1 h'`);
    await unnotified(2);
    expect(watched.attention()?.unnotified).toMatchObject({
      messages: 2,
      serviceOrderId: expect.stringMatching(/^unnotified-[12]$/),
    });
    expect(ofAnother.attention()?.unnotified).toBeNull();
    await stage.query('DELETE FROM outbox');
    await unnotified(0);
  });
});

describe('the board during an outage of Postgres', () => {
  it('stays open, and then shows the changes that it missed', async () => {
    for (const id of ['missed-1', 'missed-2']) await stage.seedOrder({ serviceOrderId: id, locationId: 'club-1' });
    const watched = await watch(1);
    const before = both.map(({ logged }) => logged.length);
    const told = (): string[] =>
      both
        .flatMap(({ logged }, nth) => logged.slice(before[nth]))
        .filter((line) => line.includes('board cannot be read'));
    const joined = await whilePostgresIsAway(stage.databaseUrl, async () => {
      await until(() => told().length > 0);
      return readEvents(`${urls[0]}/v1/live`, headers);
    });
    await until(async () => (await report('missed-1', 'READY')).status === 200);
    await until(() => watched.order('missed-1')?.status === 'ready');
    expect(joined.status).toBe(200);
    await until(() => joined.events.some(({ event }) => event === 'complete'));
    joined.leave();
    // The process that is watched since before, and the one that was joined meanwhile.
    expect(told().length).toBeLessThanOrEqual(2);
    expect(watched.events.filter(({ event }) => event === 'reset')).toHaveLength(1);
  });
});

it('a board without watchers sends no queries, and twenty watchers cause only a few queries', async () => {
  const databaseUrl = await createDatabase();
  const [pool, others] = [0, 1].map(() => new pg.Pool({ connectionString: databaseUrl, max: 3 })) as [pg.Pool, pg.Pool];
  let [asked, askedByOther] = [0, 0];
  const counting = (target: pg.Pool, count: () => void): pg.Pool =>
    new Proxy(target, {
      get: (_target, name) => {
        if (name !== 'query') return Reflect.get(target, name) as unknown;
        return (query: pg.QueryConfig) => {
          count();
          return target.query(query);
        };
      },
    });
  const log = { error: () => {} };
  const board = boardFeed({ pool: counting(pool, () => (asked += 1)), log });
  const heard: WholeBoard[] = [];
  const watcher = { whole: (whole: WholeBoard) => void heard.push(whole), changed: () => {}, attention: () => {} };
  // Another board is watched all the time. Each poll of it takes as long as one of ours would.
  const other = boardFeed({ pool: counting(others, () => (askedByOther += 1)), log });
  other.watch({}, { ...watcher, whole: () => {} });
  const aWhile = async (): Promise<void> => {
    const before = askedByOther;
    await until(() => askedByOther >= before + 5);
  };
  board.wake();
  await aWhile();
  expect(asked, 'nobody watches').toBe(0);

  const alone = board.watch({}, watcher);
  await until(() => heard.length === 1);
  const askedForOne = asked;
  asked = 0;
  const leave = [alone, ...Array.from({ length: 20 }, () => board.watch({}, watcher))];
  await until(() => heard.length === 21);
  // Each of them alone would ask as often as the first. On a slow machine the board is read more than once meanwhile.
  expect(asked).toBeLessThan(10 * askedForOne);
  for (const each of leave) each();
  // When all have left, a poll that has begun ends, and no other begins.
  await until(async () => {
    asked = 0;
    await aWhile();
    return asked === 0;
  });

  // A new watcher is not told of what was known then.
  await pool.query(`INSERT INTO placements (service_order_id, deadline_at) VALUES ('later', now())`);
  board.watch({}, watcher);
  await until(() => heard.length === 22);
  expect(heard.at(-1)?.orders.map(({ serviceOrderId }) => serviceOrderId)).toEqual(['later']);
  await Promise.all([board.stop(), other.stop()]);
  await Promise.all([pool.end(), others.end()]);
});

it('a watcher that joins when the last watcher has just left gets the whole board', async () => {
  const pool = new pg.Pool({ connectionString: await createDatabase(), max: 3 });
  await pool.query(`INSERT INTO placements (service_order_id, deadline_at) VALUES ('there', now())`);
  let looks = 0;
  let meanwhile = (): void => {};
  const slow = new Proxy(pool, {
    get: (target, name) => {
      if (name !== 'query') return Reflect.get(target, name) as unknown;
      return async (query: pg.QueryConfig) => {
        const answer = await target.query(query);
        if (query.name === 'read-board-changes') {
          looks += 1;
          meanwhile();
        }
        return answer;
      };
    },
  });
  const board = boardFeed({ pool: slow, log: { error: () => {} } });
  const heard: WholeBoard[] = [];
  const watcher = { whole: (whole: WholeBoard) => void heard.push(whole), changed: () => {}, attention: () => {} };
  const leave = board.watch({}, watcher);
  await until(() => looks > 0);
  meanwhile = () => {
    meanwhile = () => {};
    leave();
    board.watch({}, watcher);
  };
  await until(() => heard.length === 2);
  expect(heard.map(({ orders }) => orders.length)).toEqual([1, 1]);
  await board.stop();
  await pool.end();
});

it('the board is read completely at intervals, so that the data of erased members disappears', async () => {
  const pool = new pg.Pool({ connectionString: await createDatabase(), max: 3 });
  await pool.query(
    `WITH p AS (
       INSERT INTO placements (service_order_id, location_id, state, problem, deadline_at, finished_at)
       VALUES ('erased', 'club-1', 'failed', 'no peanuts for Ada', now(), now())
     )
     INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, rank, ended_at)
     VALUES ('erased', 'K472', 'club-1', 'pickup', 70, now())`,
  );
  const board = boardFeed({ pool, log: { error: () => {} } }, 300);
  const problems: unknown[] = [];
  const tell = (orders: BoardOrder[]): void => void problems.push(...orders.map(({ problem }) => problem));
  board.watch({}, { whole: ({ orders }) => tell(orders), changed: tell, attention: () => {} });
  await until(() => problems.length === 1);
  await pool.query(`WITH p AS (UPDATE placements SET problem = NULL) UPDATE orders SET erased_at = now()`);
  await until(() => problems.length === 2);
  expect(problems).toEqual(['no peanuts for Ada', null]);
  await board.stop();
  await pool.end();
});

describe('a slow reader of the board', () => {
  const order = (id: number, version: number): BoardOrder =>
    ({ serviceOrderId: `order-${id}`, problem: `${version} ${'x'.repeat(300)}` }) as BoardOrder;

  it('gets only the newest state of each order when it reads again', async () => {
    const stream = eventStream();
    const watcher = writeBoardEvents(stream);
    const old = Array.from({ length: 1_000 }, (_, id) => order(id, 0));
    watcher.whole({ at: 'now', orders: old, open: 0, ended: 0, truncated: false });
    const ROUNDS = 200;
    for (let version = 1; version <= ROUNDS; version++) {
      watcher.changed(Array.from({ length: 1_000 }, (_, id) => order(id, version)));
      watcher.attention({
        conflicts: [],
        cancelByPhone: [],
        cancelByPhoneTotal: 0,
        changed: [],
        dropped: [],
        silent: [{ sent: version } as never],
        unreachable: [],
        unreachedContacts: [],
        unnotified: null,
        cases: [],
      });
    }
    expect(stream.isBehind()).toBe(true);
    expect((stream.body as unknown as { writableLength: number }).writableLength).toBeLessThan(300_000);

    let text = '';
    stream.body.on('data', (chunk: Buffer) => (text += chunk.toString()));
    await until(() => text.includes(`"sent":${ROUNDS}}`));
    const last = new Map<string, string>();
    for (const [, id, version] of text.matchAll(/"serviceOrderId":"(order-\d+)","problem":"(\d+) /g)) {
      last.set(id ?? '', version ?? '');
    }
    expect(new Set(last.values())).toEqual(new Set([String(ROUNDS)]));
    expect(last.size).toBe(1_000);
    expect(text.length).toBeLessThan(1_000_000);
    expect(text.match(/^event: attention$/gm)?.length).toBeLessThan(5);
    stream.cutOff();
  });

  it('is disconnected after too many changes', async () => {
    const stream = eventStream();
    let isClosed = false;
    stream.onClose(() => (isClosed = true));
    const watcher = writeBoardEvents(stream);
    for (let from = 0; from < 60_000; from += 1_000) {
      watcher.changed(Array.from({ length: 1_000 }, (_, id) => order(from + id, 1)));
    }
    await until(() => isClosed);
  });
});
