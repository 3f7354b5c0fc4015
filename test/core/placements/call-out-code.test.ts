import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { CODES, CODE_OF_COUNT } from '../../../src/core/placements/record-order.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { startPos, type Pos } from '../../../world/pos/start-pos.ts';
import { startSystem, type System } from '../../../world/system/start-system.ts';

/** A letter and three digits, without those that look like another. */
const CODE = /^[FHKMRTWX][2-9]{3}$/;

let system: System;
let pos: Pos;

beforeAll(async () => {
  [system, pos] = await Promise.all([
    startSystem({ processes: 2, stepped: ['placements', 'refreshes', 'relay'], env: { LOG_LEVEL: 'fatal' } }),
    startPos(),
  ]);
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
});
afterEach(() => {
  pos.behave = undefined;
});
afterAll(() => Promise.all([system?.stop(), pos?.stop()]));

async function toldCodes(serviceOrderId: string): Promise<unknown[]> {
  await system.finish('relay');
  return system.live(serviceOrderId).map((told) => told.callOutCode);
}

/** The codes of so many counts in a row, by seed. */
async function codesOf(seeds: readonly number[], counts: number, first = 0): Promise<string[][]> {
  const rows = await system.query(
    `SELECT array_agg(${CODE_OF_COUNT} ORDER BY given) AS codes
     FROM unnest($1::int[]) AS s(seed), generate_series($2::int, $2::int + $3::int - 1) AS g(given)
     GROUP BY seed ORDER BY seed`,
    [seeds, first, counts],
  );
  return rows.map(({ codes }) => codes as string[]);
}

it('a code repeats only after all other codes were used, with any seed and number of orders', async () => {
  const seeds = [0, 1, 4_095, 4_096, 123_456_789, 2 ** 23, 2 ** 31 - 1];
  for (const first of [0, 2 ** 31 - CODES - 1]) {
    const found = await codesOf(seeds, CODES, first);
    expect(found).toHaveLength(seeds.length);
    for (const codes of found) {
      expect(codes.filter((code) => !CODE.test(code))).toEqual([]);
      expect(new Set(codes).size).toBe(4_096);
    }
  }
});

it('eight codes in a row end in eight different digits, and do not reveal the number of orders', async () => {
  const seeds = [123_456_789, 1_987_654_321];
  const [some = [], others = []] = await codesOf(seeds, 40);
  for (let from = 0; from + 8 <= some.length; from += 1) {
    expect(new Set(some.slice(from, from + 8).map((code) => code.at(-1))).size).toBe(8);
  }
  expect(some).not.toEqual(some.toSorted());
  expect(some.filter((code, nth) => code === others[nth])).toEqual([]);
});

it('two processes give different codes to simultaneous orders at one location', async () => {
  const orders = Array.from({ length: 24 }, () => sampleOrder());
  for (const order of orders) system.platform.orders.set(order.serviceOrderId, order);
  await Promise.all(orders.map(({ serviceOrderId }) => system.signal(serviceOrderId)));
  // A location has four workers in each process.
  await Promise.all([system.finish('placements', 0), system.finish('placements', 1)]);
  const codes = new Map(
    pos.tickets.map(({ serviceOrderId, order }): [string, unknown] => [serviceOrderId, order.callOutCode]),
  );
  const given = orders.map(({ serviceOrderId }) => codes.get(serviceOrderId));
  expect(given.filter((code) => !CODE.test(String(code)))).toEqual([]);
  expect(new Set(given).size).toBe(orders.length);
  for (const { serviceOrderId } of orders) {
    const code = codes.get(serviceOrderId);
    expect(await toldCodes(serviceOrderId)).toEqual([code, code]);
  }
});

it("the codes of a location count only the location's own orders", async () => {
  await system.addLocation('club-2', { ordersUrl: pos.ordersUrl });
  const counted = async (): Promise<unknown> =>
    (await system.query(`SELECT given FROM call_outs WHERE location_id = 'club-1'`))[0];
  const before = await counted();
  await system.placeOrder({ locationId: 'club-2' });
  await system.round('placements');
  expect(await counted()).toEqual(before);
  expect(await system.query(`SELECT given FROM call_outs WHERE location_id = 'club-2'`)).toEqual([{ given: 0 }]);
});

it('an order keeps its code when it is sent again, signalled again or changed', async () => {
  const order = sampleOrder();
  const { serviceOrderId } = order;
  const sent: unknown[] = [];
  pos.behave = (request) => {
    if (request.order.serviceOrderId !== serviceOrderId) return undefined;
    sent.push(request.order.callOutCode);
    return request.attempt === 1 ? 'drop-answer' : undefined;
  };
  await system.placeOrder(order);
  await system.round('placements');
  await system.query('UPDATE placements SET next_attempt_at = now() WHERE service_order_id = $1', [serviceOrderId]);
  await system.round('placements');
  system.platform.orders.set(serviceOrderId, { ...order, notes: 'changed' });
  expect(await system.signal(serviceOrderId)).toBe(204);
  await system.finish('refreshes');
  const code = (await system.order(serviceOrderId))?.['call_out_code'];
  expect(code).toMatch(CODE);
  expect(sent).toEqual([code, code]);
  expect(await toldCodes(serviceOrderId)).toEqual([code, code, code]);
});
