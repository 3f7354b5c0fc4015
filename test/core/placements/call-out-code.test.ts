import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { CODES, CODE_OF_COUNT } from '../../../src/core/placements/record-order.ts';
import { sampleOrder } from '../../support/sample-order.ts';
import { startPos, type Pos } from '../../support/start-pos.ts';
import { startSystem, type System } from '../../support/start-system.ts';
import { until } from '../../support/until.ts';

/** A letter and three digits, without those that look like another. */
const CODE = /^[FHKMRTWX][2-9]{3}$/;

let system: System;
let pos: Pos;

beforeAll(async () => {
  [system, pos] = await Promise.all([startSystem({ processes: 2, env: { LOG_LEVEL: 'fatal' } }), startPos()]);
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
});
afterEach(() => {
  pos.behave = undefined;
});
afterAll(() => Promise.all([system?.stop(), pos?.stop()]));

const storedCode = async (serviceOrderId: string): Promise<unknown> =>
  (await system.order(serviceOrderId))?.['call_out_code'];
const toldCodes = (serviceOrderId: string): unknown[] => system.live(serviceOrderId).map((told) => told.callOutCode);

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

it('comes again only after all the others, whatever the seed, however many orders there were', async () => {
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

it('of eight orders in a row ends in eight digits, and does not tell how many orders there were', async () => {
  const seeds = [123_456_789, 1_987_654_321];
  const [some = [], others = []] = await codesOf(seeds, 40);
  for (let from = 0; from + 8 <= some.length; from += 1) {
    expect(new Set(some.slice(from, from + 8).map((code) => code.at(-1))).size).toBe(8);
  }
  expect(some).not.toEqual(some.toSorted());
  expect(some.filter((code, nth) => code === others[nth])).toEqual([]);
});

it('is another for each of many orders that two processes place at one location at once', async () => {
  const orders = Array.from({ length: 24 }, () => sampleOrder());
  for (const order of orders) system.platform.orders.set(order.serviceOrderId, order);
  await Promise.all(orders.map(({ serviceOrderId }) => system.signal(serviceOrderId)));
  const isSent = ({ serviceOrderId }: { serviceOrderId: string }): boolean => toldCodes(serviceOrderId).length >= 2;
  await until(() => orders.every(isSent));
  const codes = new Map(
    pos.tickets.map(({ serviceOrderId, order }): [string, unknown] => [serviceOrderId, order.callOutCode]),
  );
  const given = orders.map(({ serviceOrderId }) => codes.get(serviceOrderId));
  expect(given.filter((code) => !CODE.test(String(code)))).toEqual([]);
  expect(new Set(given).size).toBe(orders.length);
  for (const { serviceOrderId } of orders) {
    expect(new Set(toldCodes(serviceOrderId))).toEqual(new Set([codes.get(serviceOrderId)]));
  }
});

it('goes by the orders of its own location alone', async () => {
  await system.addLocation('club-2', { ordersUrl: pos.ordersUrl });
  const counted = async (): Promise<unknown> =>
    (await system.query(`SELECT given FROM call_outs WHERE location_id = 'club-1'`))[0];
  const before = await counted();
  const { serviceOrderId } = await system.placeOrder({ locationId: 'club-2' });
  await until(() => storedCode(serviceOrderId));
  expect(await counted()).toEqual(before);
  expect(await system.query(`SELECT given FROM call_outs WHERE location_id = 'club-2'`)).toEqual([{ given: 0 }]);
});

it('stays as it is when the order is sent again, and when it is signalled again and has changed', async () => {
  const order = sampleOrder();
  const { serviceOrderId } = order;
  const sent: unknown[] = [];
  pos.behave = (request) => {
    if (request.order.serviceOrderId !== serviceOrderId) return undefined;
    sent.push(request.order.callOutCode);
    return request.attempt === 1 ? 'drop-answer' : undefined;
  };
  await system.placeOrder(order);
  await until(() => toldCodes(serviceOrderId).length === 2);
  system.platform.orders.set(serviceOrderId, { ...order, notes: 'changed' });
  expect(await system.signal(serviceOrderId)).toBe(204);
  const code = await storedCode(serviceOrderId);
  expect(code).toMatch(CODE);
  expect(sent).toEqual([code, code]);
  expect(toldCodes(serviceOrderId)).toEqual([code, code]);
});
