import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { isLoopback, kindOfAddress, parseAllowedHosts } from '../../../src/core/egress/allowed-hosts.ts';
import { AnswerTooLarge, boundedFetch } from '../../../src/core/egress/bounded-fetch.ts';
import { guardedFetch, type ResolveAll } from '../../../src/core/egress/guarded-fetch.ts';
import { sendEndless } from '../../../world/network/send-endless.ts';

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A server on 127.0.0.1, which stands for a host of the internet where it is the one that may be called. */
async function serve(listener: RequestListener) {
  const reached = { requests: 0, connections: 0 };
  const server = createServer((request, response) => {
    reached.requests += 1;
    listener(request, response);
  });
  server.on('connection', () => (reached.connections += 1)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, reached };
}

/** A resolver whose answers are these, one a time, and then the last one again. */
function resolving(...answers: string[][]): ResolveAll {
  return (_hostname, _options, callback) => {
    const [next = []] = answers.length > 1 ? answers.splice(0, 1) : answers;
    callback(
      null,
      next.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
}
const failureOf = (asked: Promise<Response>): Promise<Error> =>
  asked.then(
    () => expect.unreachable('was answered'),
    (error: unknown) => error as Error,
  );

it.each([99, 101, 600, 700])('an answer with the impossible status %i becomes 502', async (status) => {
  const odd = { body: null, headers: new Headers(), status };
  expect((await boundedFetch(9, async () => odd as Response)('http://x')).status).toBe(502);
});

describe('an address', () => {
  it.each([
    ['loopback', ['127.0.0.1', '127.255.0.9', '::1', '::ffff:127.0.0.1', '64:ff9b::127.0.0.1']],
    ['link-local', ['169.254.169.254', '::ffff:a9fe:a9fe', '64:ff9b::a9fe:a9fe', 'fe80::1', 'fe80::1%eth0']],
    ['private', ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', '::ffff:10.0.0.1']],
    ['private', ['64:ff9b::10.0.0.1', 'fd00:ec2::254', 'fc00::1', 'fec0::1']],
    ['reserved', ['0.0.0.0', '192.0.0.192', '192.0.2.1', '198.18.0.1', '203.0.113.9', '224.0.0.1', '240.0.0.1']],
    ['reserved', ['255.255.255.255', '168.63.129.16', '::', '::10.0.0.1', '::ffff:8.8.8.8', '64:ff9b:1::8.8.8.8']],
    ['reserved', ['2001::1', '2001:db8::1', '2002:808:808::1', '3fff::1', '4000::1', 'ff02::1', 'no address', '']],
    ['public', ['8.8.8.8', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2001:4860:4860::8888', '64:ff9b::8.8.8.8']],
  ])('is %s: %j', (kind, addresses) => {
    for (const address of addresses) expect(kindOfAddress(address) ?? 'public', address).toBe(kind);
  });
});

describe('the check for a host of this machine', () => {
  it.each(['localhost', 'localhost.', 'pos.localhost', '127.0.0.1', '127.8.9.10', '::1', '[::1]', '::ffff:127.0.0.1'])(
    'accepts the host %s',
    (host) => expect(isLoopback(host)).toBe(true),
  );
  it.each([
    '127.evil.example',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'notlocalhost',
    '[::1].evil.example',
    '64:ff9b::7f00:1',
    '128.0.0.1',
    '0.0.0.0',
    '',
  ])('refuses the host "%s"', (host) => expect(isLoopback(host)).toBe(false));
});

describe("a request to a location's host", () => {
  it.each([
    ['https://169.254.169.254/latest/hidden', 'link-local'],
    ['http://169.254.169.254/latest/hidden', 'link-local'],
    ['https://2130706433/hidden', 'loopback'],
    ['https://0x7f.1/hidden', 'loopback'],
    ['https://017700000001./hidden', 'loopback'],
    ['https://[::ffff:10.0.0.1]/hidden', 'private'],
    ['https://[::ffff:169.254.169.254]/hidden', 'link-local'],
    ['https://[fd00:ec2::254]/hidden', 'private'],
    ['https://100.64.0.1/hidden', 'private'],
    ['https://0/hidden', 'reserved'],
    ['http://pos.example.com/hidden', 'plain http'],
    ['http://8.8.8.8/hidden', 'plain http'],
    ['http://localhost.example.com/hidden', 'plain http'],
  ])('is refused because of its URL: %s is %s', async (url, reason) => {
    const neverAsked: ResolveAll = () => expect.unreachable('resolved');
    const error = await failureOf(guardedFetch(parseAllowedHosts(''), neverAsked)(`${url}?key=hidden`));
    expect(error).toMatchObject({ name: 'NeedsOperator', cause: { code: 'pos_host_refused', reason } });
    expect(error.message).toContain('ALLOW_PRIVATE_HOSTS');
    expect(error.message).not.toContain('hidden');
  });

  it.each([
    ['https://pos.example.com', ['10.0.0.1'], 'private'],
    ['https://pos.example.com.', ['fe80::1'], 'link-local'],
    ['https://pos.example.com', ['::ffff:127.0.0.1'], 'loopback'],
    ['http://localhost', ['127.0.0.1', '::1'], 'loopback'],
    ['http://pos.localhost', ['127.0.0.1'], 'loopback'],
    ['https://pos.example.com', [], 'reserved'],
  ])('is refused because of the addresses of its host: %s at %j', async (url, addresses, reason) => {
    const asked = guardedFetch(parseAllowedHosts(''), resolving(addresses))(`${url}/hidden`, { method: 'POST' });
    expect(await failureOf(asked)).toMatchObject({ name: 'NeedsOperator', cause: { reason } });
  });

  it('is checked at each connection, and fails once the host name leads to a forbidden address', async () => {
    const { port } = await serve((_request, response) => response.writeHead(200, { connection: 'close' }).end('meant'));
    const ask = guardedFetch(parseAllowedHosts('127.0.0.1'), resolving(['127.0.0.1'], ['127.0.0.2']));
    const url = `http://pos.localhost:${port}`;
    expect(await (await ask(url)).text()).toBe('meant');
    expect(await failureOf(ask(url))).toMatchObject({ cause: { reason: 'loopback' } });
  });

  it('uses only the allowed addresses of a host', async () => {
    const { port } = await serve((_request, response) => response.end());
    const tried: string[] = [];
    const watch = (about: unknown): void => {
      (about as { socket: Socket }).socket.on('connectionAttempt', (address) => tried.push(address));
    };
    subscribe('net.client.socket', watch);
    ends.push(() => unsubscribe('net.client.socket', watch));
    const ask = guardedFetch(parseAllowedHosts('127.0.0.1'), resolving(['127.0.0.2', '127.0.0.1', '10.0.0.1']));
    await ask(`http://pos.localhost:${port}`);
    expect(tried).toEqual(['127.0.0.1']);
  });

  it.each([
    ['127.0.0.1', 'http://127.0.0.1', '127.0.0.1'],
    ['127.0.0.0/8', 'http://pos.localhost', '127.0.0.1'],
    ['::ffff:127.0.0.1', 'http://[::ffff:127.0.0.1]', ''],
    ['pos.lan', 'http://pos.lan', '127.0.0.1'],
    ['Pos.LAN.', 'http://pos.lan', '127.0.0.1'],
    [' , fd00::/8,pos.lan', 'http://pos.lan.', '127.0.0.1'],
  ])('may go without TLS to $1 at a private address if ALLOW_PRIVATE_HOSTS is "$0"', async (allowed, url, address) => {
    const { port, reached } = await serve((_request, response) => response.end());
    await guardedFetch(parseAllowedHosts(allowed), resolving([address]))(`${url}:${port}`);
    expect(reached.requests).toBe(1);
  });

  it('arrives unchanged, and reuses the open connection', async () => {
    const { port, reached } = await serve((request, response) => {
      const { method, url, headers } = request;
      void text(request).then((body) =>
        response.end(JSON.stringify([method, url, headers['x-key'], headers['content-length'], body])),
      );
    });
    const ask = guardedFetch(parseAllowedHosts('127.0.0.1'));
    for (const body of ['é', new URLSearchParams({ a: 'ä' })]) {
      const answer = await ask(`http://127.0.0.1:${port}/a?b`, { method: 'PUT', headers: { 'x-key': '1' }, body });
      const sent = body.toString();
      expect(await answer.json()).toEqual(['PUT', '/a?b', '1', String(Buffer.byteLength(sent)), sent]);
      await nextTurn();
    }
    expect(reached).toEqual({ requests: 2, connections: 1 });
  });

  it('follows no redirect', async () => {
    const { port, reached } = await serve((_request, response) => {
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    const ask = guardedFetch(parseAllowedHosts('127.0.0.1'));
    expect((await ask(`http://127.0.0.1:${port}`, { redirect: 'follow' })).status).toBe(307);
    expect(reached.requests).toBe(1);
  });

  it('cannot fill our memory: an endless answer is cut off, and its connection closed', async () => {
    const cut = Promise.withResolvers<unknown>();
    const { port } = await serve((_request, response) => {
      response.on('close', () => cut.resolve('cut'));
      sendEndless(response);
    });
    const answer = await guardedFetch(parseAllowedHosts('127.0.0.1'))(`http://127.0.0.1:${port}`);
    await expect(answer.text()).rejects.toThrow(AnswerTooLarge);
    expect(await cut.promise).toBe('cut');
  });
});
