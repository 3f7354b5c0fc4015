import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { GiveUp, TryAgain } from '../../../src/core/domain/errors.ts';
import { TimeUnknown } from '../../../src/core/postgres/database-clock.ts';
import { deleteOld } from '../../../src/core/retention/retention-rules.ts';
import { countTraffic } from '../../../src/core/traffic/count-traffic.ts';
import type { Observed } from '../../../src/core/domain/observed.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import type { IntegrationTraffic, ReadTraffic } from '../../../src/core/traffic/read-traffic.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../../world/system/ask-operator.ts';
import { placesOf } from '../../support/places-of.ts';
import { startPos } from '../../../world/pos/start-pos.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { post, startSystem, statusWebhook } from '../../../world/system/start-system.ts';

const env = { OPERATOR_TOKEN };

/** A POS that has every order's fate in its notes. */
const moody: Provider = {
  integration: 'moody',
  settings: z.object({}),
  deduplicates: false,
  createOrder: async ({ notes }) => {
    if (notes === 'refuse') throw new GiveUp('no', { reason: 'We are closed' });
    throw new TryAgain('no answer', { sent: true });
  },
  translateWebhook: () => [],
};

const read = async (operator: Operator, query = ''): Promise<ReadTraffic> => {
  const { status, body } = await operator.get(`/traffic${query}`);
  expect(status).toBe(200);
  return body as ReadTraffic;
};
const sum = (list: readonly number[] = []): number => list.reduce((total, count) => total + count, 0);
const sums = (of: Record<string, number[]>): Record<string, number> =>
  Object.fromEntries(Object.entries(of).map(([name, list]) => [name, sum(list)]));
const brief = ({ integrations }: ReadTraffic): Record<string, object> =>
  Object.fromEntries(
    integrations.map(({ integration, webhooks, placements }) => [
      integration,
      { webhooks: sums(webhooks), placements: sums(placements) },
    ]),
  );
const NO_PLACEMENTS = { sent: 0, failed: 0, held: 0, in_doubt: 0 };

describe('the traffic counts', () => {
  it('are exact over two processes and a restart', async () => {
    const pos = await startPos();
    const before = await startSystem({ stepped: 'all', providers: [moody], env, processes: 2 });
    await before.addLocation('club-1', { ordersUrl: pos.ordersUrl });
    await before.addLocation('club-2', { ordersUrl: pos.ordersUrl });
    await before.addLocation('moody-1', {}, 'moody');
    const [first = '', second = ''] = before.urls;
    const at = (url: string, process: string): string => url.replace(first, process);

    const order = await before.placeOrder();
    await before.placeOrder();
    await before.placeOrder({ locationId: 'club-2' });
    await before.round('placements', 0);
    await before.placeOrder({ locationId: 'moody-1', notes: 'refuse' });
    await before.placeOrder({ locationId: 'moody-1' });
    await before.placeOrder({ locationId: 'nowhere' });
    await before.round('placements', 1);
    await before.finish('relay', 1);
    const webhook = await before.webhookUrl('club-1');
    const tell = (process: string, status: string): Promise<{ status: number }> =>
      post(at(webhook, process), statusWebhook({ serviceOrderId: order.serviceOrderId, status }));
    for (const process of [first, second, second]) expect((await tell(process, 'READY')).status).toBe(200);
    for (let nth = 0; nth < 20; nth++)
      expect((await post(at(webhook, nth % 2 === 0 ? first : second), 'not json')).status).toBe(200);
    await before.finish('relay');
    for (const path of [
      'standard/club-1',
      'standard/made-up',
      'standard/%00',
      `standard/${'x'.repeat(300)}`,
      'none/club-1',
    ])
      expect((await post(`${first}/webhook/${path}?token=wrong`, {})).status).toBe(401);
    expect((await post(`${first}/webhook`, {})).status).toBe(401);
    await Promise.all([before.drain(0), before.drain(1)]);
    const rows = await before.query('SELECT DISTINCT location_id FROM traffic ORDER BY 1');
    expect(rows.map((row) => row['location_id'])).toEqual(['', 'club-1', 'club-2', 'moody-1']);
    for (const text of [order.serviceOrderId, 'Ada Lovelace', 'wrong', webhook.split('token=')[1] ?? '']) {
      expect((await placesOf(before, text)).filter((place) => place.startsWith('traffic.'))).toEqual([]);
    }
    await before.stop();

    const after = await startStage({ databaseUrl: before.databaseUrl });
    const operator = await askOperator(after.app);
    const whole = await read(operator);
    expect(brief(whole)).toEqual({
      standard: {
        webhooks: { applied: 1, duplicate: 2, dropped: 20, unauthorized: 4 },
        placements: { ...NO_PLACEMENTS, sent: 3 },
      },
      moody: { webhooks: {}, placements: { ...NO_PLACEMENTS, failed: 1, in_doubt: 1 } },
      unknown: { webhooks: { unauthorized: 2 }, placements: { ...NO_PLACEMENTS, held: 1 } },
    });
    expect(await read(operator, '?integration=moody')).toMatchObject({ integrations: [{ integration: 'moody' }] });
    expect(brief(await read(operator, '?location=club-1'))).toEqual({
      standard: {
        webhooks: { applied: 1, duplicate: 2, dropped: 20, unauthorized: 1 },
        placements: { ...NO_PLACEMENTS, sent: 2 },
      },
      unknown: { webhooks: { unauthorized: 1 }, placements: NO_PLACEMENTS },
    });
    for (const location of ['nowhere', 'made-up']) {
      expect((await read(operator, `?location=${location}`)).integrations).toEqual([]);
    }

    const { integrations, from, to, at: began, stepSeconds } = whole;
    expect([began.length, stepSeconds, began[0]]).toEqual([60, 60, from]);
    const [start = 0, last = 0, end = 0] = [from, began.at(-1) ?? '', to].map((time) => Date.parse(time));
    expect(last - start).toBe(59 * 60_000);
    expect(end - last).toBeLessThan(60_000);
    const standard = integrations.find(({ integration }) => integration === 'standard') as IntegrationTraffic;
    for (const [nth, sentThen] of standard.placements.sent.entries()) {
      expect(typeof standard.placementSeconds.p95[nth]).toBe(sentThen === 0 ? 'object' : 'number');
    }
    expect(standard.liveLagSeconds.p50.some((seconds) => seconds !== null && seconds < 3)).toBe(true);
    await Promise.all([after.stop(), pos.stop()]);
  });

  it('are not stored if no operator could read them', async () => {
    const stage = await startStage({ env: {} });
    await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
    expect((await stage.post(await stage.webhookPath('club-1'), { eventType: 'menu.changed' })).status).toBe(200);
    await stage.drain();
    expect(await stage.query('SELECT FROM traffic')).toEqual([]);
    await stage.stop();
  });
});

describe('traffic counts of a quiet system', () => {
  let stage: Stage;
  let operator: Operator;
  beforeAll(async () => {
    stage = await startStage();
    operator = await askOperator(stage.app);
    await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  });
  afterAll(() => stage?.stop());

  /** Counts as a process does. */
  const counter = (
    pool: Pick<pg.Pool, 'query'> = stage.pool,
    now = () => new Date(),
  ): ReturnType<typeof countTraffic> => countTraffic(pool as pg.Pool, { integrations: new Set(['standard']), now });

  it('are deleted after 25 hours', async () => {
    await stage.query(
      `INSERT INTO traffic
       SELECT 'left-' || n, now() - CASE WHEN n > 6000 THEN interval '2 days' ELSE interval '24 h' END, 'standard', 'left',
              CASE WHEN n > 6000 THEN 'old' ELSE 'young' END, 1
       FROM generate_series(1, 18000) AS n`,
    );
    await deleteOld(stage.pool, 'deletion of old traffic', 25 * 3_600);
    const left = `SELECT outcome, count(*)::int AS n FROM traffic WHERE what = 'left' GROUP BY outcome`;
    expect(await stage.query(left)).toEqual([{ outcome: 'young', n: 6_000 }]);
    expect(await deleteOld(stage.pool, 'deletion of old traffic', 25 * 3_600)).toEqual([0]);
  });

  it('have percentiles over the counts of all processes', async () => {
    const now = new Date();
    const [one, other] = [counter(stage.pool, () => now), counter(stage.pool, () => now)];
    for (let nth = 0; nth < 90; nth++) one.observe(placement({ locationId: 'fast', sinceSignalMs: 40 }));
    for (let nth = 0; nth < 10; nth++) other.observe(placement({ locationId: 'fast', sinceSignalMs: 4_000 }));
    one.observe(placement({ locationId: 'slow', sinceSignalMs: 7_200_000 }));
    await Promise.all([one.write(), other.write()]);
    for (const hours of [1, 6, 24]) {
      const { integrations } = await read(operator, `?location=fast&hours=${hours}`);
      const { p50, p95 } = integrations[0]?.placementSeconds ?? { p50: [], p95: [] };
      const at = p50.findIndex((seconds) => seconds !== null);
      expect(p50[at]).toBeGreaterThan(0.03);
      expect(p50[at]).toBeLessThanOrEqual(0.05);
      expect(p95[at]).toBeGreaterThan(3);
      expect(p95[at]).toBeLessThanOrEqual(5);
    }
    const { integrations } = await read(operator, '?location=slow');
    expect(integrations[0]?.placementSeconds.p50.find((seconds) => seconds !== null)).toBe(5_000);
  });

  it('have steps of 1, 5 or 15 minutes for the requested hours', async () => {
    for (const [hours, stepSeconds, steps] of [
      [1, 60, 60],
      [6, 300, 72],
      [24, 900, 96],
    ]) {
      const traffic = await read(operator, `?hours=${hours}`);
      expect([traffic.stepSeconds, traffic.at.length]).toEqual([stepSeconds, steps]);
      for (const at of traffic.at) expect(Date.parse(at) % ((stepSeconds ?? 0) * 1_000)).toBe(0);
    }
  });

  it('are not stored for invented locations', async () => {
    const asked: number[] = [];
    const flooded = counter({
      query: (async (query: { values: unknown[][] }) => {
        if (query.values.length === 1) asked.push(query.values[0]?.length ?? 0);
        return stage.pool.query(query as unknown as pg.QueryConfig);
      }) as unknown as pg.Pool['query'],
    });
    for (let nth = 0; nth < 5_000; nth++) flooded.observe(refused(`made-up-${nth}`));
    await flooded.write();
    expect(asked).toEqual([1_000]);
    expect(await stage.query(`SELECT FROM traffic WHERE location_id LIKE 'made-up%'`)).toEqual([]);
    const [row] = await stage.query(`SELECT sum(count)::int AS n FROM traffic WHERE outcome = 'unauthorized'`);
    expect(row).toEqual({ n: 5_000 });
    flooded.observe(refused('club-1'));
    await flooded.write();
    const { body } = await operator.get('/locations/club-1');
    expect(body['errors']).toContain(1);
  });

  it('stay in memory if they cannot be stored, but only the newest 20,000 of them', async () => {
    let away = true;
    const one = counter({
      query: (async (query: pg.QueryConfig) =>
        away ? Promise.reject(new Error('away')) : stage.pool.query(query)) as unknown as pg.Pool['query'],
    });
    one.observe(placement({ locationId: 'waits', sinceSignalMs: 40 }));
    const writing = one.write();
    one.observe(placement({ locationId: 'waits', sinceSignalMs: 40 }));
    await expect(writing).rejects.toThrow('away');
    one.observe(placement({ locationId: 'waits', sinceSignalMs: 40 }));
    await expect(one.write()).rejects.toThrow('away');
    const rows = (location: string): Promise<Record<string, unknown>[]> =>
      stage.query(
        `SELECT sum(count)::int AS n,
                (SELECT sum(each)::int FROM traffic t, unnest(t.latencies) AS each WHERE t.location_id = $1) AS timed
         FROM traffic WHERE location_id = $1`,
        [location],
      );
    away = false;
    await one.write();
    expect(await rows('waits')).toEqual([{ n: 3, timed: 3 }]);

    away = true;
    for (let nth = 0; nth < 25_000; nth++) one.observe(placement({ locationId: `many-${nth}`, sinceSignalMs: 40 }));
    await expect(one.write()).rejects.toThrow('away');
    one.observe(placement({ locationId: 'many-newest', sinceSignalMs: 40 }));
    await expect(one.write()).rejects.toThrow('away');
    away = false;
    await one.write();
    const [kept] = await stage.query(`SELECT count(*)::int AS n FROM traffic WHERE location_id LIKE 'many-%'`);
    expect(kept).toEqual({ n: 20_000 });
    expect(await rows('many-newest')).toMatchObject([{ n: 1 }]);
    expect(await rows('many-0')).toMatchObject([{ n: null }]);
  });

  it('are stored by two processes at once without a deadlock', async () => {
    const placements = Array.from({ length: 2_000 }, (_, nth) =>
      placement({ locationId: `both-${nth}`, sinceSignalMs: 40, integration: nth < 1_000 ? 'one' : 'other' }),
    );
    const [one, other] = [counter(), counter()];
    for (let round = 0; round < 5; round++) {
      for (const each of placements) one.observe(each);
      for (const each of placements.toReversed()) other.observe(each);
      await Promise.all([one.write(), other.write()]);
    }
    const [row] = await stage.query(`SELECT sum(count)::int AS n FROM traffic WHERE location_id LIKE 'both-%'`);
    expect(row).toEqual({ n: 20_000 });
  });

  it('are stored with the first time that Postgres gives if they were counted before that', async () => {
    let told = false;
    const early = counter(stage.pool, () => {
      if (!told) throw new TimeUnknown();
      return new Date();
    });
    await stage.query(`DELETE FROM traffic WHERE outcome = 'unauthorized'`);
    early.observe(refused('club-1'));
    told = true;
    await early.write();
    expect(await read(operator, '?location=club-1')).toMatchObject({
      integrations: [{ webhooks: { unauthorized: expect.arrayContaining([1]) as number[] } }],
    });
  });
});

function placement(about: { locationId: string; sinceSignalMs: number; integration?: string }): Observed {
  return {
    what: 'placement',
    outcome: 'sent',
    entered: true,
    serviceOrderId: 'order-1',
    integration: 'standard',
    milliseconds: 1,
    problem: undefined,
    cause: undefined,
    forOperator: false,
    ...about,
  };
}

function refused(claimedLocationId: string): Observed {
  return {
    what: 'webhook refused',
    outcome: 'unauthorized',
    requestId: '1',
    trace: undefined,
    milliseconds: 1,
    integration: 'standard',
    claimedLocationId,
  };
}
