import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { post, startSystem, statusWebhook, type System } from '../../support/start-system.ts';

let system: System;
let club: string;
let neighbour: string;

beforeAll(async () => {
  system = await startSystem();
  for (const locationId of ['club', 'neighbour']) {
    await system.addLocation(locationId, { ordersUrl: 'http://127.0.0.1:9/orders' });
  }
  [club, neighbour] = await Promise.all([system.webhookUrl('club'), system.webhookUrl('neighbour')]);
});
afterAll(() => system?.stop());

type Answered = { status: number; took: number; outcome: unknown };

async function send(url: string, webhook: object): Promise<Answered> {
  const began = performance.now();
  const { status, body } = await post(url, webhook);
  return { status, took: performance.now() - began, outcome: body['outcome'] };
}

/** Sends at a steady pace, whatever the answers. */
async function sendSteadily(
  perSecond: number,
  seconds: number,
  one: (nth: number) => Promise<Answered>,
): Promise<Answered[]> {
  const began = performance.now();
  const answers: Promise<Answered>[] = [];
  for (let nth = 0; nth < perSecond * seconds; nth += 1) {
    await sleep(Math.max(0, began + (nth * 1_000) / perSecond - performance.now()));
    answers.push(one(nth));
  }
  return Promise.all(answers);
}

/** Has a neighbour's transaction run `sql` and stay open during `work`. */
async function beside<Result>(sql: string, work: (holder: PoolClient) => Promise<Result>): Promise<Result> {
  const holder = await system.pool.connect();
  try {
    await holder.query('BEGIN');
    await holder.query(sql);
    return await work(holder);
  } finally {
    await holder.query('ROLLBACK');
    holder.release();
  }
}

const seed = async (prefix: string, locationId: string, count: number): Promise<void> => {
  const nths = Array.from({ length: count }, (_, nth) => nth);
  await Promise.all(nths.map((nth) => system.seedOrder({ serviceOrderId: `${prefix}-${nth}`, locationId })));
};
const waitsInVain = (): number => system.logged.filter((line) => line.includes('a row is locked')).length;

/** Sends about one order of the club, and about others of it and of the neighbour. @returns the answers of the others */
async function sendAround(
  name: string,
  about: (nth: number) => object,
): Promise<{ own: Answered[]; others: Answered[] }> {
  const status = 'ready';
  const seconds = 2;
  const [own, ofClub, ofNeighbour] = await Promise.all([
    sendSteadily(5, seconds, (nth) => send(club, about(nth))),
    sendSteadily(10, seconds, (nth) => send(club, statusWebhook({ serviceOrderId: `${name}-club-${nth}`, status }))),
    sendSteadily(20, seconds, (nth) =>
      send(neighbour, statusWebhook({ serviceOrderId: `${name}-other-${nth}`, status })),
    ),
  ]);
  return { own, others: [...ofClub, ...ofNeighbour] };
}

const ROWS: [what: string, name: string, lock: string, about: (nth: number) => object][] = [
  [
    'the row of its order',
    'row',
    `SELECT FROM orders WHERE service_order_id = 'row' FOR UPDATE`,
    () => statusWebhook({ serviceOrderId: 'row', status: 'received' }),
  ],
  [
    'that row, where it names the POS id alone',
    'by-pos-id',
    `SELECT FROM orders WHERE service_order_id = 'by-pos-id' FOR NO KEY UPDATE`,
    () => statusWebhook({ providerOrderId: 'pos-by-pos-id', status: 'received' }),
  ],
  [
    'the row of its placement, which learns the POS id',
    'placement',
    `UPDATE placements SET attempts = 1 WHERE service_order_id = 'placement'`,
    () => statusWebhook({ serviceOrderId: 'placement', providerOrderId: 'pos-1', status: 'received' }),
  ],
  [
    'a POS id that is just being stored',
    'pos-id',
    `INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
     VALUES ('club', 'standard', 'pos-2', 'somebody')`,
    () => statusWebhook({ serviceOrderId: 'pos-id', providerOrderId: 'pos-2', status: 'received' }),
  ],
];

it.each(ROWS)(
  'a webhook that waits for %s keeps nobody else waiting',
  { timeout: 30_000 },
  async (_what, name, lock, about) => {
    const providerOrderId = name === 'by-pos-id' ? 'pos-by-pos-id' : undefined;
    await system.seedOrder({
      serviceOrderId: name,
      locationId: 'club',
      ...(providerOrderId !== undefined && { providerOrderId }),
    });
    await seed(`${name}-club`, 'club', 20);
    await seed(`${name}-other`, 'neighbour', 40);
    const before = waitsInVain();
    const { own, others } = await beside(lock, () => sendAround(name, about));
    expect(new Set(others.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(own.map(({ status }) => status))).toEqual(new Set([500]));
    expect(Math.max(...own.map(({ took }) => took))).toBeLessThan(1_700);
    // The first of them costs a wait, perhaps at both flushers; the rest go aside at once.
    expect(waitsInVain() - before).toBeLessThanOrEqual(3);
    expect((await send(club, about(0))).status).toBe(200);
  },
);

it('a webhook that waits aside is applied once its row is free, and its order waits aside no longer', async () => {
  await system.seedOrder({ serviceOrderId: 'soon', locationId: 'club' });
  const waiting = await beside(`SELECT FROM orders WHERE service_order_id = 'soon' FOR UPDATE`, async () => {
    const sent = ['received', 'ready'].map((status) => send(club, statusWebhook({ serviceOrderId: 'soon', status })));
    await sleep(600);
    return sent;
  });
  const answers = await Promise.all(waiting);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(Math.max(...answers.map(({ took }) => took))).toBeLessThan(1_000);
  expect(await system.order('soon')).toMatchObject({ status: 'ready' });
});

it('hundreds of locked orders keep nobody else waiting either', { timeout: 30_000 }, async () => {
  await seed('crowd', 'club', 150);
  await seed('crowd-other', 'neighbour', 60);
  const lock = `SELECT FROM orders WHERE service_order_id LIKE 'crowd-%' AND location_id = 'club' FOR UPDATE`;
  const [own, others] = await beside(lock, () =>
    Promise.all([
      sendSteadily(75, 2, (nth) => send(club, statusWebhook({ serviceOrderId: `crowd-${nth}`, status: 'ready' }))),
      sendSteadily(30, 2, (nth) =>
        send(neighbour, statusWebhook({ serviceOrderId: `crowd-other-${nth}`, status: 'ready' })),
      ),
    ]),
  );
  expect(new Set(others.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(own.map(({ status }) => status))).toEqual(new Set([500]));
  // A wait for each of them would be felt by almost all; a busy machine is felt by some.
  const took = others.map((each) => each.took).toSorted((a, b) => a - b);
  expect(took[took.length / 4]).toBeLessThan(140);
});
