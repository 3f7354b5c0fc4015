import { deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { PLANS, POISON_EVERY, chooseRequest, countPoison } from '../../tools/bench/measure/choose-request.ts';
import type { Sender } from '../../tools/bench/stage/prepare-bench-database.ts';
import { orderId, senderOf } from '../../tools/bench/load/seed-orders.ts';
import { MOVES, type SignedRequest } from '../../tools/bench/load/sign-request.ts';
import { ORDERS } from '../../tools/bench/variants/start-contest.ts';
import { RANK_SENT, rankOf } from '../../src/core/domain/lifecycle.ts';
import { verifyAndTranslate } from '../../src/core/statuses/translate-webhook-request.ts';
import { standard } from '../../src/providers/standard/index.ts';

const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
const senders: Sender[] = ['club-1', 'club-2', 'club-3'].map((locationId) => ({
  locationId,
  token: `token-of-${locationId}`,
  secret: SECRET,
}));

/** As the service does. */
function read({ path, headers, body }: SignedRequest): ReturnType<typeof verifyAndTranslate> {
  const webhook = { headers, body: Buffer.from(body), url: path, receivedAt: new Date(), verified: false };
  return verifyAndTranslate(standard, { ordersUrl: 'http://127.0.0.1:9/orders', secret: SECRET }, webhook);
}

describe('a spread load', () => {
  const orders = 256;
  const connections = 64;
  const all = Array.from({ length: MOVES.length * orders }, (_, g) => ({
    g,
    path: chooseRequest(senders, 'spread', orders, g).path,
    event: read(chooseRequest(senders, 'spread', orders, g)).events[0],
  }));

  it('moves an order with every request, through all statuses from first to last', () => {
    const moves = Map.groupBy(all, ({ event }) => event?.serviceOrderId);
    expect(moves.size).toBe(orders);
    for (const of of moves.values()) expect(of.map(({ event }) => event?.status)).toEqual(MOVES);
    const ranks = MOVES.map(rankOf);
    expect(ranks).toEqual(ranks.toSorted((a, b) => a - b));
    expect(ranks[0]).toBeGreaterThan(RANK_SENT);
  });

  it('sends the statuses of an order over one connection, one after another', () => {
    // As the generator deals them out.
    for (const of of Map.groupBy(all, ({ event }) => event?.serviceOrderId).values()) {
      expect(new Set(of.map(({ g }) => g % connections)).size).toBe(1);
    }
    expect([8, 64, 256].filter((connections) => ORDERS % connections !== 0)).toEqual([]);
  });

  it('visits every order once per round, and never two neighbours directly after each other', () => {
    const nths = all.slice(0, orders).map(({ event }) => Number(event?.serviceOrderId?.slice('order-'.length)));
    expect(new Set(nths).size).toBe(orders);
    for (const [at, nth] of nths.slice(1).entries()) expect(Math.abs(nth - (nths[at] ?? 0))).toBeGreaterThan(1);
    for (const count of [ORDERS, 1_000_000, 10_000_000]) expect(gcd(611_953, count)).toBe(1);
  });

  it('sends each order to its own location, with its POS id', () => {
    for (const { path, event } of all) {
      const nth = Number(event?.serviceOrderId?.slice('order-'.length));
      expect(path).toContain(`/${senderOf(senders, nth).locationId}?token=${senderOf(senders, nth).token}`);
      expect(event).toMatchObject({ serviceOrderId: orderId(nth), providerOrderId: `pos-${nth}` });
    }
  });
});

describe('a load with whole orders', () => {
  it.each([2_000, 20_000, 200_000])(
    'of %i bytes has the same events as a small one, and compresses like a body of a real POS',
    (bytes) => {
      const bodies = Array.from({ length: 20 }, (_, g) => {
        const request = chooseRequest(senders, 'spread', ORDERS, g, bytes);
        expect(read(request).events).toEqual(read(chooseRequest(senders, 'spread', ORDERS, g)).events);
        return request.body;
      });
      const mean = bodies.reduce((sum, body) => sum + Buffer.byteLength(body), 0) / bodies.length;
      expect(Math.abs(mean / bytes - 1)).toBeLessThan(0.1);
      expect(new Set(bodies).size).toBe(bodies.length);
      // Square's documented order of 3.5 kB has 3.2.
      const compressed = bodies.map((body) => Buffer.byteLength(body) / deflateSync(body, { level: 1 }).length);
      expect(Math.min(...compressed)).toBeGreaterThan(1.8);
      expect(Math.max(...compressed)).toBeLessThan(7);
    },
  );
});

describe('a hot load', () => {
  it('concerns one order in nine of ten requests, and has no poison', () => {
    const all = Array.from({ length: 1_000 }, (_, g) => read(chooseRequest(senders, 'hot', ORDERS, g)));
    const hot = all.filter(({ events }) => events[0]?.serviceOrderId === orderId(0));
    expect(hot.length).toBeGreaterThanOrEqual(900);
    expect(hot.length).toBeLessThan(910);
    expect(all.filter(({ dropped }) => dropped !== undefined)).toEqual([]);
  });
});

describe('poison', () => {
  it('is one request in a hundred, and the provider drops only these', () => {
    const reads = Array.from({ length: 2_000 }, (_, g) => read(chooseRequest(senders, 'poison', ORDERS, g)));
    const dropped = reads.flatMap(({ dropped }, g) => (dropped === undefined ? [] : [{ g, dropped }]));
    expect(dropped.length).toBe(2_000 / POISON_EVERY);
    for (const { dropped: why } of dropped) expect(why.reason).toMatch(/^unreadable: /);
    for (const [from, requests] of [
      [0, 2_000],
      [37, 13],
      [37, 14],
      [50, 1],
      [51, 99],
      [51, 100],
      [333, 1_111],
    ] as const) {
      const within = dropped.filter(({ g }) => g >= from && g < from + requests);
      expect(countPoison('poison', from, requests), `${requests} from ${from}`).toBe(within.length);
    }
    expect(PLANS.filter((plan) => countPoison(plan, 0, 1_000) > 0)).toEqual(['poison']);
  });
});

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
