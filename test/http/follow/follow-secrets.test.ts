/** What a member's token opens, and where nothing of it is: with keys by URL, as most platforms have them. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OPERATOR_TOKEN } from '../../../world/system/ask-operator.ts';
import { readEvents, type ReadEvents } from '../../support/read-events.ts';
import { sendJson, serveHttp, type HttpServer } from '../../../world/network/serve-http.ts';
import { followSigner, signFollowToken } from '../../../world/members/sign-follow-token.ts';
import { startCollector, type Collector } from '../../../world/network/start-collector.ts';
import { post, startSystem, statusWebhook, type System } from '../../../world/system/start-system.ts';
import { until } from '../../../world/processes/until.ts';

const AUDIENCE = 'https://expediter.test/follow';
const ORIGIN = 'https://order.example.com';
const key = followSigner('EdDSA', 'platform');
const next = followSigner('ES256', 'next');

let system: System;
let collector: Collector;
let platform: HttpServer;
let published = { status: 200, keys: [key.jwk] };
const used: string[] = [];
const open: ReadEvents[] = [];

beforeAll(async () => {
  [platform, collector] = await Promise.all([
    serveHttp((_request, response) => sendJson(response, published.status, { keys: published.keys })),
    startCollector(),
  ]);
  system = await startSystem({
    env: {
      FOLLOW_TOKEN_KEYS: `${platform.url}/jwks`,
      FOLLOW_TOKEN_AUDIENCE: AUDIENCE,
      MEMBER_ORIGINS: ORIGIN,
      OPERATOR_TOKEN,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      LOG_LEVEL: 'trace',
    },
  });
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterAll(async () => {
  for (const each of open) each.leave();
  await system?.stop();
  await Promise.all([platform?.stop(), collector?.stop()]);
});

function tokenFor(sub: string, { by = key, ...changes }: { by?: typeof key; aud?: string; exp?: number } = {}): string {
  const exp = Math.floor(Date.now() / 1000) + 600;
  used.push(signFollowToken(by, { sub, aud: AUDIENCE, exp, ...changes }));
  return used.at(-1) ?? '';
}

async function follow(token: string, query = '', headers: Record<string, string> = {}): Promise<ReadEvents> {
  const read = await readEvents(`${system.urls[0]}/follow?token=${token}${query}`, { origin: ORIGIN, ...headers });
  open.push(read);
  return read;
}

it('a member is answered 503 while the keys of follow tokens cannot be fetched', async () => {
  published = { ...published, status: 500 };
  const early = await follow(tokenFor('early'));
  expect([early.status, early.headers.get('access-control-allow-origin')]).toEqual([503, ORIGIN]);
  expect(Number(early.headers.get('retry-after'))).toBeGreaterThan(0);
  published = { status: 200, keys: [key.jwk, next.jwk] };
  await until(async () => (await follow(tokenFor('early'))).status === 200);
  expect((await follow(tokenFor('early', { by: next }))).status).toBe(200);
  expect((await follow(tokenFor('early', { by: followSigner('ES256', 'next') }))).status).toBe(401);
});

it('a token opens its own order only, even if the query names another order', async () => {
  const orders = ['one', 'other'];
  for (const serviceOrderId of orders) await system.seedOrder({ serviceOrderId, locationId: 'club-1' });
  const webhook = await system.webhookUrl('club-1');
  const [one, other] = await Promise.all([
    follow(tokenFor('one'), '&sub=other&orderId=other&serviceOrderId=other', { 'x-order-id': 'other' }),
    follow(tokenFor('other'), '&lastEventId=0'),
  ]);
  for (const status of ['RECEIVED', 'READY', 'CANCELLED']) {
    await Promise.all(
      orders.map((serviceOrderId) =>
        post(webhook, statusWebhook({ serviceOrderId, status, reason: `for ${serviceOrderId}` })),
      ),
    );
  }
  await Promise.all([one.ended, other.ended]);
  const reasons = ({ events }: ReadEvents): unknown[] =>
    events.flatMap(({ data }) => (data as { reason?: string }).reason ?? []);
  expect(reasons(one)).toEqual(['for one']);
  expect(reasons(other)).toEqual(['for other']);
});

it('all refusals are equal, and no part of the token is in log, metrics, traces and answers', async () => {
  const url = `${system.urls[0]}/follow`;
  const now = Math.floor(Date.now() / 1000);
  const followed = await follow(tokenFor('one'));
  await followed.ended;
  const wrong = [
    tokenFor('one', { exp: now - 60 }),
    tokenFor('one', { aud: 'another' }),
    tokenFor('one', { by: followSigner('EdDSA', 'platform') }),
    `${tokenFor('one').slice(0, -9)}AAAAAAAAA`,
    `${tokenFor('one')}%`,
  ];
  const answers = await Promise.all([
    ...wrong.flatMap((token) => [
      fetch(`${url}?token=${token}`),
      fetch(url, { headers: { authorization: `Bearer ${token}` } }),
    ]),
    ...[`${url}/?token=`, `${url}/`, `${url}%?token=`, `${url}?token=%`].map((path) => fetch(`${path}${wrong[0]}`)),
    ...['HEAD', 'POST', 'DELETE'].map((method) => fetch(`${url}?token=${wrong[0]}`, { method })),
    fetch(`${url}?token=${wrong[0]}&more=${'x'.repeat(20_000)}`),
  ]);
  const told = await Promise.all(
    answers.map(async (answer) => {
      // A connection on which somebody was let in is kept.
      const headers = [...answer.headers].filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name));
      return `${JSON.stringify(headers)} ${await answer.text()}`;
    }),
  );
  expect(new Set(told.slice(0, 2 * wrong.length)).size).toBe(1);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401, 404]));
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  const metrics = await (await fetch(`${system.operatorUrls[0]}/metrics`, { headers })).text();
  expect(metrics).toMatch(/^\w*follow_refused_total\{reason="bad_token"\} [1-9]/m);
  await system.drain(0);
  expect(collector.bytes()).toContain('webhook');
  const places = { log: system.logged.join(''), metrics, traces: collector.bytes(), answers: told.join('\n') };
  expect(places.log).toContain('follow request refused');
  const parts = new Set(used.flatMap((token) => token.split('.').slice(1)));
  for (const [place, text] of Object.entries(places)) {
    for (const part of parts) expect(text.includes(part.slice(8, 40)), `${place} has ${part}`).toBe(false);
  }
});
