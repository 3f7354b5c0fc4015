/** Orders of a platform without GraphQL, through `fetchOrder` of ORDER_MODULE. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, expectTypeOf, it, vi } from 'vitest';
import { OrderError, type FetchContext, type OrderModule } from 'expediter-platform';
import { orderRefetcher } from '../../src/core/placements/refetch-order.ts';
import { loadOrderModule } from '../../src/platform/load-order-module.ts';
import { sendEndless } from '../../world/network/send-endless.ts';
import { sendJson, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { startRestPlatform, type RestPlatform } from '../../world/platform/start-rest-platform.ts';
import { runProgram } from '../../world/processes/run-program.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';

const TOKEN = 'rest-token';
type FetchOrder = (orderId: string, context: FetchContext) => unknown;

let folder: string;
let platform: HttpServer;
let requests: IncomingMessage[];
let answer: (request: IncomingMessage, response: ServerResponse) => void;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fetch-order-'));
  await writeFile(join(folder, 'package.json'), '{"type": "module"}');
  requests = [];
  platform = await serveHttp((request, response) => {
    requests.push(request);
    answer(request, response);
  });
});
afterEach(() => {
  vi.useRealTimers();
  requests.length = 0;
});
afterAll(async () => {
  await platform.stop();
  await rm(folder, { recursive: true });
});

/** Orders as the platform has them: canonical. */
const order = sampleOrder({ serviceOrderId: 'x' });
const ok = (_: IncomingMessage, response: ServerResponse): void => sendJson(response, 200, order);
const status = (code: number, headers = {}, body: unknown = { error: 'not for Ada' }) => {
  return (_: IncomingMessage, response: ServerResponse): void => sendJson(response, code, body, headers);
};

/** What a module with this function makes of the order `x`: the decision, or the id of the order. */
async function decide(fetchOrder: FetchOrder, module: Partial<OrderModule> = {}, url = platform.url) {
  const toCanonicalOrder = (data: unknown) => data as never;
  const refetch = orderRefetcher({
    url,
    token: TOKEN,
    module: { toCanonicalOrder, ...module, fetchOrder } as OrderModule,
    countryOf: async () => null,
    warn: () => {},
  });
  try {
    const read = await refetch('x');
    return read === undefined ? 'missing' : (read.order?.serviceOrderId ?? read);
  } catch (error) {
    const { name, message, cause, retryAfterMs } = error as Error & { retryAfterMs?: number; cause: object };
    expect(`${message} ${JSON.stringify(cause)}`).not.toMatch(/Ada|rest-token/);
    return { name, message, retryAfterMs, ...cause };
  }
}

/** The simplest module, which looks at no status. */
const simple: FetchOrder = async (id, { fetch }) => (await fetch(`/orders/${id}`)).json();
/** A module that knows 404. */
const careful: FetchOrder = async (id, { fetch }) => {
  const found = await fetch(`/orders/${id}`);
  return found.status === 404 ? null : found.json();
};
/** A module that catches every error and returns nothing. */
const careless: FetchOrder = async (id, context) => {
  try {
    return await careful(id, context);
  } catch {
    return null;
  }
};
/** A module that catches every error and throws its own. */
const throwing: FetchOrder = async (id, context) => {
  try {
    return await careful(id, context);
  } catch {
    throw new Error('Ada cannot be read');
  }
};
/** A module that takes every error for a missing order. */
const denying: FetchOrder = async (id, context) => {
  try {
    return await careful(id, context);
  } catch {
    throw new OrderError('NOT_FOUND');
  }
};

describe('an answer of the platform decides what happens to the order, whatever the module does with the error', () => {
  const redirect = status(302, { location: 'https://evil.example/orders/x' });
  const refused = { name: 'NeedsOperator', code: 'platform_refuses_us' };
  const failing = { name: 'TryAgain', code: 'platform_failing' };
  const html = (_: IncomingMessage, response: ServerResponse): void => void response.end('<h1>Ada</h1>');
  it.each<[string, typeof ok, object]>([
    ['401', status(401), { ...refused, httpStatus: 401 }],
    ['403', status(403), { ...refused, httpStatus: 403 }],
    ['302', redirect, { name: 'NeedsOperator', code: 'platform_redirects', httpStatus: 302 }],
    ['400', status(400), { ...failing, httpStatus: 400 }],
    ['422', status(422), { ...failing, httpStatus: 422 }],
    ['429 with Retry-After', status(429, { 'retry-after': '7' }), { ...failing, retryAfterMs: 7_000 }],
    ['500', status(500), { ...failing, httpStatus: 500 }],
    ['503 with Retry-After', status(503, { 'retry-after': '9' }), { ...failing, retryAfterMs: 9_000 }],
    ['200 that is a page', html, { ...failing, message: 'the ordering platform answered 200, but not in JSON' }],
    ['204', (_, response) => void response.writeHead(204).end(), { ...failing, httpStatus: 204 }],
    ['no end', (_, response) => sendEndless(response), { code: 'platform_answer_too_large' }],
    ['no bytes', (request) => request.destroy(), { name: 'TryAgain', code: 'platform_unreachable' }],
  ])('%s', async (_what, given, decision) => {
    answer = given;
    for (const module of [simple, careful, careless, throwing, denying]) {
      expect(await decide(module), String(module)).toMatchObject(decision);
    }
    expect(requests.every(({ method }) => method === 'GET')).toBe(true);
  });

  it('no connection', async () => {
    expect(await decide(careless, {}, 'http://127.0.0.1:2/')).toMatchObject({
      name: 'TryAgain',
      message: 'the ordering platform gave no usable answer. 127.0.0.1:2: no service listens there (ECONNREFUSED)',
    });
  });

  it('a refusal that the mapper takes for no order, or for one that is not for us', async () => {
    answer = status(401);
    const partial: FetchOrder = async (id, context) => ({ id, order: await careless(id, context) });
    for (const mapped of [null, { skipped: 'not_ours' }]) {
      const decision = await decide(partial, { toCanonicalOrder: () => mapped });
      expect(decision).toMatchObject({ code: 'platform_refuses_us' });
    }
  });
});

describe('an order', () => {
  it('is requested with the token, or with the headers of the module, and read from the answer', async () => {
    answer = ok;
    expect(await decide(careful)).toBe('x');
    expect(await decide(careful, { headers: (token) => ({ 'X-Api-Key': token ?? '' }) })).toBe('x');
    expect(requests.map(({ url, headers }) => [url, headers.authorization, headers['x-api-key']])).toEqual([
      ['/orders/x', `Bearer ${TOKEN}`, undefined],
      ['/orders/x', undefined, TOKEN],
    ]);
  });

  it('is read although a further request failed, if the module can do without its answer', async () => {
    answer = (request, response) => (request.url === '/orders/x' ? ok : status(503))(request, response);
    expect(
      await decide(async (id, context) => {
        await context.fetch('/points').catch(() => {});
        return careful(id, context);
      }),
    ).toBe('x');
  });

  it('is asked for by any method, body and headers', async () => {
    let body = '';
    answer = (request, response) => {
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => ok(request, response));
    };
    const headers = { 'content-type': 'application/json', authorization: 'none' };
    const search: FetchOrder = async (id, { fetch }) =>
      (await fetch('search', { method: 'POST', body: JSON.stringify({ id }), headers })).json();
    expect(await decide(search, {}, `${platform.url}/v1/`)).toBe('x');
    expect(requests[0]).toMatchObject({ method: 'POST', url: '/v1/search' });
    expect(requests[0]?.headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, accept: 'application/json' });
    expect(body).toBe('{"id":"x"}');
  });

  it.each([null, [], { results: [] }, { order: null }])('is missing if the module returns %j', async (none) => {
    answer = status(404);
    expect(await decide(async (_id, { fetch }) => ((await fetch('/orders')).ok ? order : none))).toBe('missing');
  });
});

it.each(['.', '..'])('fetches no order with the id %s, which would lead to another resource', async (id) => {
  const about = { url: platform.url, token: TOKEN, countryOf: async () => null, warn: () => {} };
  const fetchOrder: FetchOrder = async (orderId, { fetch }) =>
    (await fetch(new URL(`/orders/${encodeURIComponent(orderId)}`, platform.url))).json();
  const module = { fetchOrder, toCanonicalOrder: (data: unknown) => data as never } as OrderModule;
  const before = requests.length;
  await expect(orderRefetcher({ ...about, module })(id)).rejects.toMatchObject({ name: 'GiveUp' });
  expect(requests).toHaveLength(before);
});

describe('a module that forgot a word', () => {
  it.each<[string, FetchOrder, string]>([
    ['return', async (_id, { fetch }) => void (await fetch('/orders/x')), 'returned_undefined'],
    ['await answer.json()', async (_id, { fetch }) => fetch('/orders/x'), 'returned_answer'],
  ])('holds the order, and does not take it for missing: %s', async (_word, fetchOrder, errorCode) => {
    answer = status(200, '{}');
    expect(await decide(fetchOrder)).toMatchObject({ name: 'NeedsOperator', code: 'order_mapper_threw', errorCode });
  });
});

describe('OrderError', () => {
  const saying = (code: string, expected: number): FetchOrder => {
    return async (_id, { fetch }) => {
      await fetch('/orders/x', { expect: [expected] });
      throw new OrderError(code as never);
    };
  };
  it.each<[string, number, unknown]>([
    ['NOT_FOUND', 403, 'missing'],
    ['NOT_FOUND', 404, 'missing'],
    ['BAD_USER_INPUT', 422, { name: 'GiveUp', code: 'order_id_invalid', httpStatus: 422 }],
    ['FORBIDDEN', 403, { name: 'NeedsOperator', code: 'platform_refuses_order', httpStatus: 403 }],
    ['UNAUTHENTICATED', 200, { name: 'NeedsOperator', code: 'platform_refuses_us', httpStatus: 200 }],
    ['INTERNAL_SERVER_ERROR', 409, { name: 'TryAgain', code: 'platform_failing', httpStatus: 409 }],
    ['KITCHEN_BURNS', 200, { name: 'TryAgain', code: 'platform_failing', httpStatus: 200 }],
  ])('%s after %i says what the order is', async (code, given, decision) => {
    answer = status(given);
    const decided = await decide(saying(code, given));
    if (typeof decision === 'string') expect(decided).toBe(decision);
    else expect(decided).toMatchObject(decision as object);
  });

  it.each([401, 429, 500, 302])('cannot speak about %i, also if the module expects it', async (given) => {
    answer = status(given, { location: '/' });
    expect(await decide(saying('NOT_FOUND', given))).toMatchObject({ httpStatus: given });
  });

  it('of a copy of the package counts too', async () => {
    const copy = Object.assign(new Error('no'), { name: 'OrderError', code: 'BAD_USER_INPUT' });
    expect(await decide(() => Promise.reject(copy))).toMatchObject({ code: 'order_id_invalid' });
  });
});

describe('context.fetch', () => {
  it.each([
    'https://evil.example/orders/x',
    '//evil.example/orders/x',
    String.raw`\\evil.example\orders`,
    String.raw`/\evil.example/orders`,
    '\t//evil.example',
    '/\n/evil.example',
    String.raw`http:/\evil.example/`,
    'http://127.0.0.1:1/orders/x',
    'http://localhost:PORT/orders/x',
    'https://127.0.0.1:PORT/orders/x',
    'http://127.0.0.1.evil.example:PORT/',
    'http://127.0.0.1:PORT@evil.example/',
    'http://user@127.0.0.1:PORT/orders/x',
    'http://:secret@127.0.0.1:PORT/orders/x',
    'blob:http://127.0.0.1:PORT/orders/x',
    'data:application/json,{}',
    'file:///etc/passwd',
    'ftp://127.0.0.1:PORT/',
    'javascript:alert(1)',
    'ws://127.0.0.1:PORT/orders/x',
  ])('sends nothing to another origin: %s', async (target) => {
    const evil = target.replace('PORT', String(platform.port));
    for (const given of [evil, URL.parse(evil, platform.url) ?? evil]) {
      const decided = await decide(async (_id, { fetch }) => (await fetch(given)).json());
      expect(decided).toMatchObject({ name: 'NeedsOperator', code: 'order_mapper_threw', errorCode: 'other_origin' });
      // Caught, it still holds the order.
      expect(await decide((_id, { fetch }) => fetch(given).catch(() => null))).toMatchObject({
        errorCode: 'other_origin',
      });
    }
    expect(requests).toEqual([]);
  });

  it.each([
    '/orders/..',
    '/orders/../admin',
    '../admin',
    './x',
    '/orders/%2e%2E/admin',
    '/orders/.\t.',
    '/a\\..\\b',
    '..',
    '/orders/..\x01',
    '/orders/..\0 ',
    '\x1f../admin',
    '\t\x01../admin',
    '/orders/..\x01\t',
    '/orders/.\n.\n\x01',
  ])('sends nothing to the path %j, because an order id may be ".."', async (path) => {
    expect(await decide(async (_id, { fetch }) => (await fetch(path)).json())).toMatchObject({
      errorCode: 'dots_in_path',
    });
    expect(requests).toEqual([]);
  });

  it.each([undefined, null, 7, {}])('sends nothing to %j', async (target) => {
    expect(await decide(async (_id, { fetch }) => (await fetch(target as never)).json())).toMatchObject({
      errorCode: 'not_a_url',
      message: expect.stringContaining('not for a path or a URL'),
    });
    expect(requests).toEqual([]);
  });

  it.each(['/orders/x', 'orders/x', '?id=x', '', '/orders/x..y?next=../z#..', '/orders/...'])(
    'sends a request to %j',
    async (target) => {
      answer = ok;
      expect(await decide(async (_id, { fetch }) => (await fetch(target)).json())).toBe('x');
    },
  );

  it('sends a request to a whole URL of the same origin, as text or URL', async () => {
    answer = ok;
    const whole = `${platform.url.replace('http', 'HTTP')}/orders/x`;
    for (const target of [whole, new URL(whole)]) {
      expect(await decide(async (_id, { fetch }) => (await fetch(target)).json())).toBe('x');
    }
  });

  it('sends at most 20 requests for one order, and then holds it', async () => {
    answer = ok;
    const times = (count: number): FetchOrder => {
      return async (id, context) => {
        for (let nth = 1; nth < count; nth += 1) await context.fetch('/').catch(() => {});
        return careless(id, context);
      };
    };
    expect(await decide(times(20))).toBe('x');
    expect(await decide(times(21))).toMatchObject({ name: 'NeedsOperator', errorCode: 'too_many_requests' });
    expect(requests).toHaveLength(40);
  });

  it('does not end the process by a promise that the module left, while any other one still does', async () => {
    answer = status(503);
    const fetcher = new URL('../../src/core/placements/fetch-order.ts', import.meta.url).href;
    const code = `
      import { setTimeout as sleep } from 'node:timers/promises';
      const { orderFetcher } = await import(${JSON.stringify(fetcher)});
      process.on('uncaughtException', (error) => console.log('ends by', error.message));
      const fetchOrder = async (id, { fetch }) => {
        const member = fetch('/member').then((found) => found.json());
        await sleep(200);
        return { order: await fetch('/order'), member: await member };
      };
      const module = { fetchOrder, toCanonicalOrder: (data) => data };
      await orderFetcher({ url: ${JSON.stringify(platform.url)}, module, warn() {} })('x').catch((error) =>
        console.log('decides', error.message));
      Promise.reject(new Error('a fault of ours'));`;
    const { out, code: exit } = await runProgram(process.execPath, ['--input-type=module', '-e', code], {});
    expect(exit).toBe(0);
    expect(out).toBe('decides the ordering platform answered 503\nends by a fault of ours\n');
  });

  it.each(['cancelled', 'headers'])('does not end the process by a promise that %s left', async (name) => {
    answer = status(200, {}, { data: { order: {} } });
    const fetcher = new URL('../../src/core/placements/fetch-order.ts', import.meta.url).href;
    const code = `
        const { orderFetcher } = await import(${JSON.stringify(fetcher)});
        const fails = async () => { throw new Error('Ada'); };
        const left = { cancelled: fails, headers: async () => (fails(), {}) };
        const module = { query: '{ order }', toCanonicalOrder: () => ({}), ${name}: left.${name} };
        await orderFetcher({ url: ${JSON.stringify(platform.url)}, module, warn() {} })('x').catch(() => {});
        await new Promise(setImmediate);
        console.log('goes on');`;
    const { out, code: exit } = await runProgram(process.execPath, ['--input-type=module', '-e', code], {});
    expect([exit, out]).toEqual([0, 'goes on\n']);
  });

  it('leaves no rejection behind for a module that does not wait', async () => {
    answer = status(500);
    const failed: unknown[] = [];
    const note = (reason: unknown): void => void failed.push(reason);
    process.on('unhandledRejection', note);
    expect(
      await decide(async (_id, { fetch }) => {
        void fetch('/orders/x');
        void fetch('//evil.example');
        return order;
      }),
    ).toBe('x');
    await new Promise((passed) => setImmediate(passed));
    process.off('unhandledRejection', note);
    expect(failed).toEqual([]);
  });
});

describe('the time of fetchOrder', () => {
  it('ends a function that never returns, and its requests, after 8 s', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const closed = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    answer = (request) => {
      request.once('close', () => closed.resolve());
      asked.resolve();
    };
    let signal: AbortSignal | undefined;
    const decided = decide(async (_id, context) => {
      ({ signal } = context);
      await context.fetch('/orders/x').catch(() => {});
      return new Promise(() => {});
    });
    await asked.promise;
    expect(signal?.aborted).toBe(false);
    vi.advanceTimersByTime(8_000);
    expect(await decided).toMatchObject({
      name: 'TryAgain',
      code: 'platform_unreachable',
      message: expect.stringMatching(/: no answer in 8 s$/),
    });
    expect(signal?.aborted).toBe(true);
    await closed.promise;
  });

  it('keeps an earlier refusal as the decision', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    answer = status(401);
    const refused = Promise.withResolvers<void>();
    const decided = decide(async (_id, { fetch }) => {
      await fetch('/orders/x').catch(() => {});
      refused.resolve();
      return new Promise(() => {});
    });
    await refused.promise;
    vi.advanceTimersByTime(8_000);
    expect(await decided).toMatchObject({ code: 'platform_refuses_us' });
  });

  it('is over when it has returned, so that nothing is sent afterwards', async () => {
    let kept: FetchContext | undefined;
    expect(
      await decide(async (_id, context) => {
        kept = context;
        return order;
      }),
    ).toBe('x');
    await expect(kept?.fetch('/orders/x')).rejects.toThrow('no usable answer');
    expect(requests).toEqual([]);
  });
});

/** @returns the order's decision by a module in a file */
async function byFile(name: string, text: string) {
  const path = join(folder, `${name}.ts`);
  await writeFile(path, text);
  const module = await loadOrderModule({ ORDER_MODULE: path });
  return decide(module.fetchOrder as FetchOrder, module);
}
const TO_ORDER = 'export const toCanonicalOrder = (order) => order;';

it('an error of the module holds the order, with its class, code and line, but without its message', async () => {
  answer = ok;
  const text = `${TO_ORDER}
export async function fetchOrder(id, { fetch }) {
  const { member } = await (await fetch('/orders/' + id)).json();
  throw Object.assign(new RangeError('of ' + member.name), { code: 'NO_TABLE' });
}`;
  expect(await byFile('throws', text)).toMatchObject({
    message: 'the mapper of ORDER_MODULE threw RangeError (NO_TABLE) at throws.ts:4',
    code: 'order_mapper_threw',
  });
  const sync = `${TO_ORDER}\nexport function fetchOrder() { throw new TypeError('Ada'); }`;
  expect(await byFile('sync', sync)).toMatchObject({ at: 'sync.ts:2', error: 'TypeError' });
});

it('the error about a refused target names the line of the module', async () => {
  const text = `${TO_ORDER}
export async function fetchOrder(id, { fetch }) {
  await null;
  return (await fetch('https://evil.example/' + id)).json();
}`;
  expect(await byFile('evil', text)).toMatchObject({
    message:
      'fetchOrder of ORDER_MODULE asks for a URL of another origin than ORDER_API_URL, so nothing was sent, at evil.ts:4',
    at: 'evil.ts:4',
  });
});

it('TypeScript accepts a module with a query or with fetchOrder, but not with both', () => {
  type Common = Pick<OrderModule, 'toCanonicalOrder'>;
  type Fetching = Common & { fetchOrder(id: string, context: FetchContext): Promise<unknown> };
  expectTypeOf<Common & { query: string }>().toExtend<OrderModule>();
  expectTypeOf<Fetching>().toExtend<OrderModule>();
  expectTypeOf<Fetching & { query: string }>().not.toExtend<OrderModule>();
  expectTypeOf<Fetching & { errorCode(): undefined }>().not.toExtend<OrderModule>();
  expectTypeOf<Common>().not.toExtend<OrderModule>();
});

describe('the module for REST in the documentation', () => {
  let rest: RestPlatform;
  let pos: Pos;
  let system: System;

  beforeAll(async () => {
    const page = await readFile(new URL('../../docs/connect-your-platform.md', import.meta.url), 'utf8');
    const [, text = ''] = /^### A platform with REST$.*?^```ts\n(.*?)^```/ms.exec(page) ?? [];
    expect(text.trim().split('\n').length).toBeLessThanOrEqual(25);
    await writeFile(join(folder, 'rest.ts'), text);
    [rest, pos] = await Promise.all([startRestPlatform(TOKEN), startPos()]);
    system = await startSystem({
      stepped: ['placements'],
      env: { ORDER_API_URL: rest.url, ORDER_API_TOKEN: TOKEN, ORDER_MODULE: join(folder, 'rest.ts') },
    });
    await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  });
  afterEach(() => {
    rest.answer = undefined;
  });
  afterAll(() => Promise.all([system?.stop(), pos?.stop(), rest?.stop()]));

  /** Signals the order, and lets the workers try it once. The orders of other tests wait: this test's answers are not theirs. */
  async function placed(id: string) {
    await system.pool.query(`UPDATE placements SET next_attempt_at = 'infinity' WHERE finished_at IS NULL`);
    expect(await system.signal(id)).toBe(204);
    await system.round('placements');
    return system.placement(id);
  }

  it('sends an order with the items of all pages to its POS', async () => {
    const given = sampleOrder({ serviceOrderId: 'rest-1' });
    rest.orders.set('rest-1', given);
    expect(await placed('rest-1')).toMatchObject({ state: 'sent' });
    const ticket = pos.tickets.find(({ serviceOrderId }) => serviceOrderId === 'rest-1');
    expect(ticket?.order.items).toHaveLength(given.items.length);
    expect(rest.requests).toEqual(['/v1/orders/rest-1', '/v1/orders/rest-1/items', '/v1/orders/rest-1/items?page=2']);
  });

  it.each<[string, string, RestPlatform['answer'], object]>([
    [
      'waits while the platform does not have the order',
      'rest-2',
      undefined,
      { state: 'waiting', cause: { code: 'order_missing_yet' } },
    ],
    [
      'fails for an id that no order can have',
      'rest 3',
      undefined,
      { state: 'failed', cause: { code: 'order_id_invalid', httpStatus: 400 } },
    ],
    [
      'waits while the platform fails',
      'rest-4',
      refusing(503),
      { state: 'waiting', cause: { code: 'platform_failing', httpStatus: 503 } },
    ],
    [
      'is held while the platform refuses us',
      'rest-5',
      refusing(401),
      { state: 'held', cause: { code: 'platform_refuses_us', httpStatus: 401 } },
    ],
  ])('%s', async (_what, id, answering, row) => {
    rest.answer = answering;
    expect(await placed(id)).toMatchObject(row);
  });

  it('sends the token nowhere else, if an answer links to another server', async () => {
    const stolen: unknown[] = [];
    const evil = await serveHttp((request, response) => {
      stolen.push(request.headers.authorization);
      sendJson(response, 200, { items: [], next: null });
    });
    rest.orders.set('rest-6', sampleOrder({ serviceOrderId: 'rest-6' }));
    rest.answer = ({ url }, response) => {
      if (url?.endsWith('/items') !== true) return false;
      sendJson(response, 200, { items: [], next: `${evil.url}/v1/orders/rest-6/items` });
      return true;
    };
    const row = await placed('rest-6');
    await evil.stop();
    expect(row).toMatchObject({ state: 'held', cause: { code: 'order_mapper_threw', errorCode: 'other_origin' } });
    expect(stolen).toEqual([]);
  });
});

function refusing(code: number): NonNullable<RestPlatform['answer']> {
  return (_request, response) => {
    sendJson(response, code, {});
    return true;
  };
}
