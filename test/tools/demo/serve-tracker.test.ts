import { createLocalJWKSet, jwtVerify, SignJWT, generateKeyPair, type JSONWebKeySet } from 'jose';
import { afterEach, beforeAll, afterAll, describe, expect, it, vi } from 'vitest';
import { serveTracker, type Tracker } from '../../../tools/demo/serve-tracker.ts';
import { refuseEnded, takeOwnOrders } from '../../../tools/demo/take-orders.ts';

const HOUR_MS = 3_600_000;

let tracker: Tracker;
beforeAll(async () => {
  tracker = await serveTracker('http://127.0.0.1:9');
});
afterAll(() => tracker.stop());
afterEach(() => void vi.useRealTimers());

const tokenOf = async (serviceOrderId: string): Promise<string> =>
  new URL(await tracker.urlOf(serviceOrderId)).hash.slice(1);
const renew = (token: string): Promise<Response> =>
  fetch(`${tracker.url}/follow-token`, { method: 'POST', headers: { authorization: `Bearer ${token}` } });

describe('the tracker page', () => {
  it('is at /guest for the newest order, and /guest answers 404 before there is an order', async () => {
    const ask = () => fetch(`${tracker.url}/guest`, { redirect: 'manual' });
    expect((await ask()).status).toBe(404);
    tracker.newest = () => 'order-2';
    const { status, headers } = await ask();
    tracker.newest = undefined;
    expect([status, headers.get('location')]).toEqual([302, expect.stringContaining('/track#ey')]);
  });

  it('has a content security policy and sends no Referer, and so does everything that the page loads', async () => {
    const page = await (await fetch(`${tracker.url}/track`)).text();
    expect(page).toContain('content="http://127.0.0.1:9/follow"');
    const loaded = [...page.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, path = '']) => path);
    expect(loaded).toHaveLength(3);
    for (const path of ['/track', ...loaded, '/tracker/follow.js']) {
      const { status, headers } = await fetch(`${tracker.url}${path}`);
      expect([path, status]).toEqual([path, 200]);
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' http://127.0.0.1:9; " +
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      );
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  it.each(['/', '/track?token=x', '/tracker/', '/tracker/..%2f..%2fpackage.json', '/tracker/../../package.json'])(
    'is served without other files: %s answers 404',
    async (path) => {
      expect((await fetch(`${tracker.url}${path}`)).status).toBe(404);
    },
  );
});

describe('a follow token', () => {
  it('is for one order and ten minutes, and its public key is published', async () => {
    const jwks = (await (await fetch(tracker.env.FOLLOW_TOKEN_KEYS)).json()) as JSONWebKeySet;
    expect(Object.keys(jwks.keys[0] ?? {}).toSorted()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
    const { payload } = await jwtVerify(await tokenOf('order-1'), createLocalJWKSet(jwks), {
      audience: tracker.env.FOLLOW_TOKEN_AUDIENCE,
      algorithms: ['ES256'],
    });
    expect(Object.keys(payload).toSorted()).toEqual(['aud', 'exp', 'sub']);
    expect(payload.sub).toBe('order-1');
    expect((payload.exp ?? 0) * 1000 - Date.now()).toBeLessThanOrEqual(600_000);
  });

  it("can be renewed for the same order, until a day after the order's end", async () => {
    const token = await tokenOf('order-1');
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 24 * HOUR_MS });
    const answer = await renew(token);
    expect(answer.status).toBe(200);
    const renewed = (await answer.json()) as { token: string };
    const [, claims = ''] = renewed.token.split('.');
    const { sub, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { sub: string; exp: number };
    expect(sub).toBe('order-1');
    expect(exp * 1000).toBeGreaterThan(Date.now());
    vi.setSystemTime(Date.now() + HOUR_MS);
    expect((await renew(token)).status).toBe(401);
  });

  it('cannot be renewed if it is missing or of another issuer', async () => {
    const { privateKey } = await generateKeyPair('ES256');
    const foreign = await new SignJWT({ sub: 'order-1', aud: tracker.env.FOLLOW_TOKEN_AUDIENCE })
      .setProtectedHeader({ alg: 'ES256', kid: 'demo' })
      .setExpirationTime('10m')
      .sign(privateKey);
    const own = await tokenOf('order-1');
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${own.split('.')[1]}.`;
    for (const token of [foreign, unsigned, `${own.slice(0, -4)}AAAA`, '']) {
      const answer = await renew(token);
      expect(answer.status).toBe(401);
      expect(answer.headers.get('access-control-allow-origin')).toBeNull();
    }
  });
});

it('an ended order is not placed again, and the answer gives the reason', async () => {
  const counter = await takeOwnOrders(async (id) => {
    const endedAt = id === 'old' ? new Date() : null;
    refuseEnded(id, id === 'new' ? undefined : ({ order: { endedAt }, notified: 'It was cancelled.' } as never));
    return { serviceOrderId: id, fulfillment: 'pickup' };
  }, tracker);
  const place = (id: string) => fetch(`${counter.url}/orders?id=${id}`, { method: 'POST' });
  const [old, ...others] = await Promise.all(['old', 'going', 'new'].map(place));
  await counter.stop();
  expect(await old?.text()).toContain('order old is over: a signal no longer changes it. It was cancelled.');
  expect([old, ...others].map((answer) => answer?.status)).toEqual([400, 201, 201]);
});
