/** The headers of a module: asked once, kept, and asked again when the platform does not accept them. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { OrderError, type OrderModule } from 'expediter-platform';
import { orderRefetcher } from '../../src/core/placements/refetch-order.ts';
import { readBody, sendJson, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';

const order = sampleOrder({ serviceOrderId: 'x' });
const toCanonicalOrder = (data: unknown): never => (data as { order: never }).order;
const MODULES = {
  query: { query: 'query Order($id: ID!) { order(id: $id) { id } }', toCanonicalOrder },
  fetchOrder: { fetchOrder: async (_id, { fetch }) => (await fetch('/')).json(), toCanonicalOrder },
} satisfies Record<string, OrderModule>;

let platform: HttpServer;
/** The tokens of the requests, and the token that the platform accepts. */
let tokens: string[];
let accepted: string;
/** How the platform refuses a token. */
let refusal: { status: number; body: object };
const UNAUTHENTICATED = { extensions: { code: 'UNAUTHENTICATED' } };

beforeAll(async () => {
  platform = await serveHttp(({ headers }, response) => {
    const token = (headers.authorization ?? 'none').replace('Bearer ', '');
    tokens.push(token);
    if (token === accepted) sendJson(response, 200, { data: { order }, order });
    else sendJson(response, refusal.status, refusal.body);
  });
});
beforeEach(() => {
  tokens = [];
  accepted = 'second';
  refusal = { status: 401, body: { errors: [UNAUTHENTICATED] } };
});
afterEach(() => vi.useRealTimers());
afterAll(() => platform.stop());

type Given = { headers?: OrderModule['headers']; token?: string; readToken?: () => string | undefined };

/** Makes a function that fetches the order and returns its id, or the error with its cause. */
function fetching(module: OrderModule, { headers, token = 'first', readToken }: Given) {
  const about = { url: platform.url, countryOf: async () => null, warn: () => {} };
  const refetch = orderRefetcher({ ...about, token, readToken, module: { ...module, ...(headers && { headers }) } });
  return () =>
    refetch('x').then(
      (read) => read?.order?.serviceOrderId,
      (error: Error) => {
        expect(`${error.message} ${JSON.stringify(error.cause)}`).not.toMatch(/Ada|first|second/);
        return { name: error.name, message: error.message, ...(error.cause as object) };
      },
    );
}

/** Headers with one token after another. */
function tokensInTurn(...all: string[]) {
  const asked: (string | undefined)[] = [];
  const headers = async (token: string | undefined) => {
    asked.push(token);
    return { authorization: `Bearer ${all[asked.length - 1] ?? 'none'}` };
  };
  return { headers, asked };
}

const isOk = 'x';

describe.each(Object.entries(MODULES))('with %s, headers', (kind, module) => {
  it('may be asynchronous, and are kept while the platform accepts them', async () => {
    const { headers, asked } = tokensInTurn('second', 'third');
    const fetch = fetching(module, { headers });
    expect([await fetch(), await fetch()]).toEqual([isOk, isOk]);
    expect(asked).toEqual(['first']);
  });

  it.each<[string, typeof refusal]>([
    ['401', { status: 401, body: {} }],
    ['401 with a code', { status: 401, body: { errors: [UNAUTHENTICATED] } }],
    ...(kind === 'query'
      ? ([
          ['200 and UNAUTHENTICATED', { status: 200, body: { data: { order: null }, errors: [UNAUTHENTICATED] } }],
          [
            '200 and UNAUTHENTICATED at a field',
            { status: 200, body: { data: null, errors: [{ ...UNAUTHENTICATED, path: ['order', 'id'] }] } },
          ],
        ] satisfies [string, typeof refusal][])
      : []),
  ])('are asked again after %s, and the order is fetched with the new ones', async (_what, given) => {
    refusal = given;
    const { headers, asked } = tokensInTurn('old', 'second');
    expect(await fetching(module, { headers })()).toBe(isOk);
    expect(tokens).toEqual(['old', 'second']);
    expect(asked).toHaveLength(2);
  });

  it('are asked again once for an answer, and then the refusal counts', async () => {
    const { headers, asked } = tokensInTurn('old', 'also old', 'very old');
    const fetch = fetching(module, { headers });
    expect(await fetch()).toMatchObject({ name: 'NeedsOperator', code: 'platform_refuses_us' });
    expect(tokens).toEqual(['old', 'also old']);
    expect(await fetch()).toMatchObject({ code: 'platform_refuses_us' });
    expect(asked).toHaveLength(3);
  });

  it('are asked for once by many orders that are refused together', async () => {
    const { headers, asked } = tokensInTurn('old', 'second', 'third');
    const fetch = fetching(module, { headers });
    expect(await Promise.all(Array.from({ length: 5 }, fetch))).toEqual(Array.from({ length: 5 }, () => isOk));
    expect(asked).toHaveLength(2);
    expect(await fetch()).toBe(isOk);
    expect(asked).toHaveLength(2);
  });

  it('that stay the same cause no second request', async () => {
    expect(await fetching(module, {})()).toMatchObject({ code: 'platform_refuses_us' });
    expect(await fetching(module, { headers: (token) => ({ authorization: `Bearer ${token}` }) })()).toMatchObject({
      code: 'platform_refuses_us',
    });
    expect(tokens).toEqual(['first', 'first']);
  });

  it('have the token of the file as it is when the platform refused the one before', async () => {
    let inFile = 'first';
    const fetch = fetching(module, { readToken: () => inFile });
    expect(await fetch()).toMatchObject({ code: 'platform_refuses_us' });
    inFile = 'second';
    expect(await fetch()).toBe(isOk);
    expect(tokens).toEqual(['first', 'first', 'second']);
  });

  it('have the token as before while its file is replaced', async () => {
    const readToken = (): never => {
      throw new Error('empty');
    };
    expect(await fetching(module, { readToken })()).toMatchObject({ code: 'platform_refuses_us' });
    expect(tokens).toEqual(['first']);
  });

  it.each<[string, () => unknown, object]>([
    [
      'a fault of the module',
      () => Promise.reject(new RangeError('Ada')),
      { name: 'NeedsOperator', code: 'order_mapper_threw', error: 'RangeError' },
    ],
    [
      'a header that cannot be sent',
      () => ({ 'x-key': 'Ada\u{1F600}' }),
      { code: 'order_mapper_threw', error: 'TypeError' },
    ],
    [
      'no connection',
      () => fetch('http://127.0.0.1:2/'),
      {
        name: 'TryAgain',
        code: 'platform_unreachable',
        message: expect.stringMatching(/headers of ORDER_MODULE: no service/),
      },
    ],
    [
      'a time-out',
      () => Promise.reject(new DOMException('Ada', 'TimeoutError')),
      { name: 'TryAgain', code: 'platform_unreachable' },
    ],
    [
      'INTERNAL_SERVER_ERROR',
      () => Promise.reject(new OrderError('INTERNAL_SERVER_ERROR')),
      { name: 'TryAgain', code: 'platform_failing' },
    ],
    [
      'UNAUTHENTICATED',
      () => Promise.reject(new OrderError('UNAUTHENTICATED')),
      { name: 'NeedsOperator', code: 'platform_refuses_us' },
    ],
  ])('are asked for again at the next order after %s, which is judged', async (_what, failing, judged) => {
    let asked = 0;
    const headers = (): never => {
      asked += 1;
      return (asked === 1 ? failing() : { authorization: 'Bearer second' }) as never;
    };
    const fetch = fetching(module, { headers });
    expect(await fetch()).toMatchObject(judged);
    expect(tokens).toEqual([]);
    expect(await fetch()).toBe(isOk);
  });

  it('that never come end the try after 8 s, and are asked for again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let asked = 0;
    const headers = (): Promise<Record<string, string>> => {
      asked += 1;
      return asked === 1 ? new Promise(() => {}) : Promise.resolve({ authorization: 'Bearer second' });
    };
    const fetch = fetching(module, { headers });
    const first = fetch();
    vi.advanceTimersByTime(8_000);
    expect(await first).toMatchObject({
      code: 'platform_unreachable',
      message: expect.stringMatching(/no answer in 8 s$/),
    });
    expect(await fetch()).toBe(isOk);
  });
});

it('OrderError("UNAUTHENTICATED") of fetchOrder asks for the headers again, too', async () => {
  refusal = { status: 200, body: { order: null, session: 'over' } };
  const { headers } = tokensInTurn('old', 'second');
  const fetchOrder: OrderModule['fetchOrder'] = async (_id, { fetch }) => {
    const found = (await (await fetch('/')).json()) as { session?: string };
    if (found.session === 'over') throw new OrderError('UNAUTHENTICATED');
    return found;
  };
  expect(await fetching({ fetchOrder, toCanonicalOrder }, { headers })()).toBe(isOk);
  expect(tokens).toEqual(['old', 'second']);
});

describe('through the service', () => {
  let folder: string;
  let pos: Pos;
  let login: HttpServer;
  /** The valid token of the login. The next request for one changes it. */
  let issued: string[];
  let asked: IncomingMessage[];
  let systems: System[];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'headers-'));
    [issued, asked, systems] = [[], [], []];
    pos = await startPos();
    login = await serveHttp(async (request, response) => {
      asked.push(request);
      const body = (await readBody(request)).toString();
      const isOurs = request.headers.authorization === `Basic ${btoa('expediter:hunter2')}`;
      if (!isOurs || body !== 'grant_type=client_credentials')
        return sendJson(response, 401, { error: 'invalid_client' });
      issued.push(issued.length === 0 ? 'expired' : 'platform-token');
      sendJson(response, 200, { access_token: issued.at(-1), token_type: 'Bearer', expires_in: 3600 });
    });
  });
  afterAll(async () => {
    await Promise.all([...(systems ?? []).map((each) => each.stop()), pos?.stop(), login?.stop()]);
    await rm(folder, { recursive: true });
  });

  async function start(env: Record<string, string>): Promise<System> {
    const system = await startSystem({ stepped: ['placements'], env: { ORDER_API_TOKEN: '', ...env } });
    systems.push(system);
    await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
    return system;
  }
  async function place(system: System) {
    const { serviceOrderId } = await system.placeOrder();
    await system.round('placements');
    return system.placement(serviceOrderId);
  }

  it('the module for client credentials in the documentation gets a new token when the last has expired', async () => {
    const page = await readFile(new URL('../../docs/connect-your-platform.md', import.meta.url), 'utf8');
    const [, text = ''] = /^### Tokens that expire$.*?^```ts\n(.*?)^```/ms.exec(page) ?? [];
    expect(text.trim().split('\n').length).toBeLessThanOrEqual(20);
    const { query } = await import('../../src/platform/load-order-module.ts').then((all) => all.loadOrderModule({}));
    const rest = `export const query = ${JSON.stringify(query)}; export const toCanonicalOrder = ({ order }) => order;`;
    const file = join(folder, 'client-credentials.mts');
    await writeFile(file, `${text.replace('https://login.example.com/oauth/token', login.url)}\n${rest}`);
    const system = await start({ ORDER_MODULE: file, ORDER_API_TOKEN: 'hunter2' });
    expect(await place(system)).toMatchObject({ state: 'sent' });
    expect(await place(system)).toMatchObject({ state: 'sent' });
    expect(issued).toEqual(['expired', 'platform-token']);
    expect(system.logged.join('')).not.toMatch(/hunter2|platform-token/);
  });

  it('a token in a file is rotated without a restart', async () => {
    const file = join(folder, 'token');
    await writeFile(file, 'old-token\n');
    const system = await start({ ORDER_API_TOKEN_FILE: file });
    const held = await place(system);
    expect(held).toMatchObject({ state: 'held', cause: { code: 'platform_refuses_us' } });
    await writeFile(file, 'platform-token\n');
    await system.query('UPDATE placements SET next_attempt_at = now()');
    await system.round('placements');
    expect(await system.placement(String(held?.['service_order_id']))).toMatchObject({ state: 'sent' });
  });
});
