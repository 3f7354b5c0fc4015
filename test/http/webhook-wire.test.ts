import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { holdOpen } from '../support/hold-open.ts';
import { startStage, type Stage } from '../support/operator-stage.ts';
import { post, statusWebhook } from '../../world/system/start-system.ts';
import { untilLocked } from '../support/until-locked.ts';
import { until } from '../../world/processes/until.ts';

let stage: Stage;
let origin: string;
let url: string;
let target: string;
const urlOf = async (locationId: string): Promise<string> => `${origin}${await stage.webhookPath(locationId)}`;

beforeAll(async () => {
  stage = await startStage({
    env: { LOG_LEVEL: 'trace', WEBHOOK_BODY_LIMIT: '262144', BODY_BUDGET: '1048576' },
  });
  origin = await stage.listen();
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await stage.addLocation('club-2', { ordersUrl: 'http://127.0.0.1:9/orders' });
  target = await stage.webhookPath('club-1');
  url = `${origin}${target}`;
});
afterAll(() => stage?.stop());

/** Writes bytes to the door, and reads as many answers, or until it closes. */
async function say(text: string | Buffer, about: { answers?: number; thenClose?: boolean } = {}): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let heard = '';
  const done = Promise.withResolvers<void>();
  socket.on('data', (chunk) => {
    heard += chunk.toString();
    if (heard.split('\r\n\r\n').length > (about.answers ?? 1)) done.resolve();
  });
  socket.on('error', () => {});
  socket.on('close', () => done.resolve());
  socket.write(text);
  if (about.thenClose) setTimeout(() => socket.destroy(), 100);
  await done.promise;
  socket.destroy();
  return heard;
}

const statusOf = (answer: string): string | undefined => /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1];
const head = (...lines: string[]): string => `${[`POST ${target} HTTP/1.1`, 'Host: x', ...lines].join('\r\n')}\r\n\r\n`;
const ping = '{"eventType":"ping"}';

describe('a webhook request on the wire', () => {
  it.each<[string, () => string, string]>([
    ['with a body and its length is answered 200', () => head(`Content-Length: ${ping.length}`) + ping, '200'],
    [
      'with a body in chunks is answered 200',
      () => `${head('Transfer-Encoding: chunked')}${ping.length.toString(16)}\r\n${ping}\r\n0\r\n\r\n`,
      '200',
    ],
    [
      'with no Host header is answered 200',
      () => head(`Content-Length: ${ping.length}`).replace('Host: x\r\n', '') + ping,
      '200',
    ],
    [
      'with an unknown Expect header is answered 200',
      () => head(`Content-Length: ${ping.length}`, 'Expect: a-miracle') + ping,
      '200',
    ],
    ['with no length and no body is answered 200', () => head(), '200'],
    ['with an invalid chunk is answered 500', () => `${head('Transfer-Encoding: chunked')}zz\r\n`, '500'],
    ['with an unknown Transfer-Encoding is answered 500', () => `${head('Transfer-Encoding: gzip')}abc`, '500'],
    [
      'with two Content-Length headers is answered 500',
      () => `${head('Content-Length: 3', 'Content-Length: 4')}abc`,
      '500',
    ],
    [
      'with a Content-Length and chunks is answered 500',
      () => `${head('Content-Length: 3', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
      '500',
    ],
    ['with an invalid Content-Length is answered 500', () => `${head('Content-Length: many')}abc`, '500'],
    ['with a NUL in a header is answered 500', () => head('X: a\0b'), '500'],
    ['with headers of 20 kB is answered 401', () => head(`X: ${'x'.repeat(20_000)}`), '401'],
  ])('%s', async (_what, text, status) => {
    expect(statusOf(await say(text()))).toBe(status);
  });

  it('two requests in one packet are both answered', async () => {
    const one = head(`Content-Length: ${ping.length}`) + ping;
    expect((await say(one + one, { answers: 2 })).match(/HTTP\/1\.1 200/g)).toHaveLength(2);
  });

  it('no text of an unreadable request is in the log, even at the level trace', () => {
    const token = new URL(url).searchParams.get('token') ?? 'none';
    const bytes = JSON.stringify([...Buffer.from(token.slice(0, 12))]).slice(1, -1);
    expect(stage.logged.join('')).not.toContain(token);
    expect(stage.logged.join('')).not.toContain(bytes);
  });
});

describe('a webhook whose body does not arrive', () => {
  it('loses its connection, and other webhooks are answered before that', async () => {
    const { server } = stage.app;
    expect([server.requestTimeout, server.headersTimeout]).toEqual([15_000, 15_000]);
    server.requestTimeout = server.headersTimeout = 500;
    const stalled = say(`${head('Content-Length: 1000')}{`);
    expect((await post(url, { eventType: 'ping' })).status).toBe(200);
    expect(statusOf(await stalled)).toBe('500');
    server.requestTimeout = server.headersTimeout = 15_000;
  });

  it('is not stored if its sender left', async () => {
    const before = (await stage.query('SELECT count(*)::int AS n FROM webhooks'))[0]?.['n'];
    for (let i = 0; i < 5; i++) {
      await say(head('Content-Length: 250000') + 'x'.repeat(200_000), { thenClose: true });
    }
    expect((await stage.query('SELECT count(*)::int AS n FROM webhooks'))[0]?.['n']).toBe(before);
    await until(async () => (await post(url, 'x'.repeat(250_000))).status === 200);
  });
});

describe('webhooks over the memory budget', () => {
  it('are answered 500 if one location takes over a quarter of the budget, and other locations are not affected', async () => {
    await stage.seedOrder({ serviceOrderId: 'other', locationId: 'club-2' });
    const otherUrl = await urlOf('club-2');
    const largest = (): Socket =>
      connect(Number(new URL(url).port), '127.0.0.1', function (this: Socket) {
        this.write(head('Content-Length: 250000') + 'x'.repeat(200_000));
      }).on('error', () => {});
    let socket = largest();
    const refused = await until(async () => {
      const answer = await post(url, 'x'.repeat(100_000));
      if (answer.status === 500) return answer;
      // It was quicker, and the other one may have been refused.
      socket.destroy();
      socket = largest();
      return undefined;
    });
    expect(refused.headers.get('retry-after')).toBe('1');
    expect((await post(otherUrl, statusWebhook({ serviceOrderId: 'other', status: 'READY' }))).status).toBe(200);
    socket.destroy();
    await until(async () => (await post(url, 'x'.repeat(100_000))).status === 200);
  });

  it('leave enough memory for a fifth location if they come from four slow locations', async () => {
    const slow: Socket[] = [];
    for (const locationId of ['slow-1', 'slow-2', 'slow-3', 'slow-4']) {
      await stage.addLocation(locationId, { ordersUrl: 'http://127.0.0.1:9/orders' });
      const { port, pathname, search } = new URL(await urlOf(locationId));
      for (let nth = 0; nth < 8; nth += 1) {
        const socket = connect(Number(port), '127.0.0.1').on('error', () => {});
        socket.write(
          `POST ${pathname}${search} HTTP/1.1\r\nHost: x\r\nContent-Length: 65536\r\n\r\n${'x'.repeat(65_500)}`,
        );
        slow.push(socket);
      }
    }
    await until(async () => (await post(await urlOf('slow-1'), 'x'.repeat(65_500))).status === 500);
    const otherUrl = await urlOf('club-2');
    for (let nth = 0; nth < 20; nth += 1) {
      expect((await post(otherUrl, { eventType: 'ping', filler: 'x'.repeat(20_000) })).status).toBe(200);
    }
    for (const socket of slow) socket.destroy();
  });
});

it('a drain answers the webhook that is being handled, and does not wait for idle connections', async () => {
  await stage.seedOrder({ serviceOrderId: 'last', locationId: 'club-1' });
  const body = JSON.stringify(statusWebhook({ serviceOrderId: 'last', status: 'READY' }));
  const locked = `SELECT FROM orders WHERE service_order_id = 'last' FOR UPDATE`;
  const holder = await holdOpen(stage.databaseUrl, locked);
  const answer = say(head(`Content-Length: ${body.length}`) + body);
  await untilLocked(stage);
  const unused = connect(Number(new URL(origin).port), '127.0.0.1');
  await once(unused, 'connect');
  const drained = stage.drain();
  await until(() => !stage.app.server.listening);
  await holder.end();
  expect(await answer).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is);
  await drained;
  unused.destroy();
  expect(stage.logged.join('')).not.toContain('running calls were abandoned');
});
