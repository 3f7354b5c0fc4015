/** Orders of a platform with another schema than ours, through a module of ORDER_MODULE. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import type { z } from 'zod';
import type { CanonicalOrder, Fulfillment } from '../../src/core/domain/order.ts';
import type { OrderInput, OrderModule } from '../../src/core/domain/order-module.ts';
import { orderRefetcher } from '../../src/core/placements/refetch-order.ts';
import { loadOrderModule } from '../../src/platform/load-order-module.ts';
import { purchases } from '../../examples/platform-mapper/purchases.ts';
import { API_KEY, servePlatform } from '../../examples/platform-mapper/serve-platform.ts';
import { sendJson, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/platform-mapper', import.meta.url));

let folder: string;
const servers: HttpServer[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'order-module-'));
  await writeFile(join(folder, 'package.json'), '{"type": "module"}');
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});
afterAll(() => rm(folder, { recursive: true }));

/** A platform that answers each request with this. */
async function serve(answer: unknown): Promise<string> {
  const server = await serveHttp((_request, response) => sendJson(response, 200, answer));
  servers.push(server);
  return server.url;
}

async function moduleOf(name: string, text: string): Promise<string> {
  const path = join(folder, `${name.replaceAll(/\W+/g, '-')}.ts`);
  await writeFile(path, text);
  return path;
}

const QUERY = "export const query = 'query Q($id: ID!) { shop { purchase(id: $id) { id } } }';";

describe('the example of an order module', () => {
  let feast: Awaited<ReturnType<typeof servePlatform>>;
  let pos: Pos;
  let system: System;

  beforeAll(async () => {
    // Away from this project, so that none of our packages is found.
    await cp(EXAMPLE, join(folder, 'feast'), { recursive: true });
    [feast, pos] = await Promise.all([servePlatform(), startPos()]);
    system = await startSystem({
      stepped: ['placements', 'refreshes', 'cancellations', 'relay'],
      env: { ORDER_API_URL: feast.url, ORDER_API_TOKEN: API_KEY, ORDER_MODULE: join(folder, 'feast/map-order.ts') },
    });
    for (const location of ['feast-berlin', 'feast-tokyo']) {
      await system.addLocation(location, { ordersUrl: pos.ordersUrl, cancelUrl: pos.cancelUrl });
    }
  });
  afterAll(() => Promise.all([system?.stop(), pos?.stop(), feast?.stop()]));

  it.each([
    [
      'B-1001',
      { type: 'pickup', requestedAt: expect.stringMatching(/T18:30:00\+0[12]:00$/) },
      { total: 3660, currency: 'EUR' },
    ],
    ['T-2001', { type: 'delivery', destination: { line1: '1-8-5 Jingumae' } }, { total: 1640, currency: 'JPY' }],
  ])('sends the order %s to its POS', async (orderId, fulfillment, money) => {
    expect(await system.signal(orderId)).toBe(204);
    await system.round('placements');
    expect(pos.tickets.map(({ serviceOrderId }) => serviceOrderId)).toContain(orderId);
    const [row] = await system.query('SELECT contents FROM order_contents WHERE service_order_id = $1', [orderId]);
    expect(row?.['contents']).toMatchObject({ serviceOrderId: orderId, fulfillment, money });
  });

  it('withdraws an order that the mapper skips, and sends it when a signal finds it changed', async () => {
    const [table] = purchases;
    feast.byCode.set('D-3001', { ...table, code: 'D-3001', handover: 'DINE_IN' });
    const over = async (): Promise<unknown> => {
      await system.signal('D-3001');
      await system.round('placements');
      return system.placement('D-3001');
    };
    const skipped = { state: 'withdrawn', cause: { code: 'order_skipped', reason: 'dine_in' } };
    expect(await over()).toMatchObject({ ...skipped, last_notified_sequence: expect.toBeOneOf([0, '0']) });
    expect(await over()).toMatchObject(skipped);
    expect(await system.query('SELECT FROM outbox WHERE service_order_id = $1', ['D-3001'])).toEqual([]);
    expect(pos.tickets.filter(({ serviceOrderId }) => serviceOrderId === 'D-3001')).toEqual([]);

    feast.byCode.set('D-3001', { ...table, code: 'D-3001', handover: 'TAKEAWAY' });
    expect(await over()).toMatchObject({ state: 'sent' });
    expect(pos.tickets.filter(({ serviceOrderId }) => serviceOrderId === 'D-3001')).toHaveLength(1);
  });

  it("cancels an order that Feast has emptied, by the module's `cancelled`: at its POS, or before it was read", async () => {
    const [purchase] = purchases;
    const change = async (code: string, about: object): Promise<void> => {
      feast.byCode.set(code, { ...purchase, code, ...about });
      await system.signal(code);
      for (const worker of ['placements', 'refreshes', 'cancellations', 'relay'] as const) await system.finish(worker);
    };
    const told = (code: string): unknown[] => system.live(code).map(({ memberState }) => memberState);
    const emptied = { cancelledTs: 1_795_282_300, positions: [] };
    await change('D-3002', {});
    await change('D-3002', emptied);
    await change('D-3003', emptied);
    await change('D-3004', { ...emptied, handover: 'DINE_IN' });
    const ticketOf = (code: string) => pos.tickets.find(({ serviceOrderId }) => serviceOrderId === code);
    expect(ticketOf('D-3002')?.cancelled).toBeDefined();
    expect([ticketOf('D-3003'), ticketOf('D-3004')]).toEqual([undefined, undefined]);
    expect(await system.placement('D-3003')).toMatchObject({ state: 'withdrawn', cause: { code: 'order_cancelled' } });
    expect(await system.placement('D-3004')).toMatchObject({
      state: 'withdrawn',
      cause: { code: 'order_skipped', reason: 'dine_in' },
    });
    expect([told('D-3002').at(-1), told('D-3003'), told('D-3004')]).toEqual(['cancelled', ['cancelled'], []]);
  });

  it('lets an order that Feast does not have wait as missing', async () => {
    await system.signal('B-9999');
    await system.round('placements');
    expect(await system.placement('B-9999')).toMatchObject({ state: 'waiting', cause: { code: 'order_missing_yet' } });
  });
});

/** Reads an order from there as often as it is called. @returns the order or the error */
function refetching(url: string, module: OrderModule, warn = (_problem: string): void => {}): () => Promise<unknown> {
  const refetch = orderRefetcher({ url, token: undefined, module, countryOf: async () => null, warn });
  return () => refetch('x').catch((error: unknown) => error);
}

it('the error about an unusable answer of the platform names the cause, without quoting the answer', async () => {
  const url = await serve('Ada');
  const module = await loadOrderModule({});
  const refused = /no usable answer\. 127\.0\.0\.1:2: no service listens there \(ECONNREFUSED\)$/;
  expect(String(await refetching('http://127.0.0.1:2/', module)())).toMatch(refused);
  expect(await refetching(url, module)()).toMatchObject({
    message: 'the ordering platform answered 200, but not in GraphQL',
    cause: { code: 'platform_failing', httpStatus: 200 },
  });
});

describe('an error that a module throws', () => {
  it("holds the order, with the error's class, code, field and place, and without its message", async () => {
    const url = await serve({ data: { name: 'Ada' } });
    const refetch = async (body: string): Promise<unknown> => {
      const imports = "import { toMinorUnits } from 'expediter-platform';";
      const name = `throws-${body.length}-${body.charCodeAt(0)}`;
      const text = `${imports}\n${QUERY}\nexport function toCanonicalOrder(data: { name: string }) {\n${body}\n}`;
      const module = await loadOrderModule({ ORDER_MODULE: await moduleOf(name, text) });
      return refetching(url, module)();
    };
    const own = await refetch("throw Object.assign(new RangeError('of ' + data.name), { code: 'NO_TABLE' });");
    expect(own).toMatchObject({
      name: 'NeedsOperator',
      message: expect.stringMatching(
        /^the mapper of ORDER_MODULE threw RangeError \(NO_TABLE\) at throws-[\d-]+\.ts:4$/,
      ),
      cause: { code: 'order_mapper_threw', error: 'RangeError', errorCode: 'NO_TABLE', at: expect.any(String) },
    });
    expect(await refetch("return toMinorUnits(data.name, 'EUR', 'grand');")).toMatchObject({
      cause: {
        code: 'order_mapper_threw',
        error: 'MappingError',
        errorCode: 'amount_unreadable',
        field: 'grand',
        at: expect.stringMatching(/^throws-[\d-]+\.ts:4$/),
      },
    });
    const body = '\n\nconst join = () => joinName(7 as never);\nreturn join();';
    const text = `import { joinName } from 'expediter-platform';\n${QUERY}\nexport const toCanonicalOrder = () => {${body}\n}`;
    const module = await loadOrderModule({ ORDER_MODULE: await moduleOf('helper', text) });
    // The mapper's line, and not the line of our function that it calls.
    expect(await refetching(url, module)()).toMatchObject({
      cause: { error: 'TypeError', at: 'helper.ts:5 (called at line 6)' },
    });
    const odd =
      "const e = new Error(`${data.name}\\n    at f (/tmp/${data.name}.ts:1:1)`); e.name = data.name + ' Lovelace'; throw e;";
    const hostile = await refetch(odd);
    expect(hostile).toMatchObject({ cause: { code: 'order_mapper_threw', error: 'object' } });
    expect(JSON.stringify([String(hostile), (hostile as Error).cause])).not.toContain('Ada');
    expect(await refetch('throw data.name')).toMatchObject({ cause: { error: 'string' } });
    expect(await refetch('return undefined')).toMatchObject({ cause: { code: 'order_unreadable' } });
    expect(await refetch('return null')).toBeUndefined();
  });
});

/** A field of the schema that may be missing may also be null. */
type Loose<Value> = Value extends readonly (infer Each)[]
  ? readonly Loose<Each>[]
  : Value extends object
    ? { [Key in keyof Value]: undefined extends Value[Key] ? Loose<Value[Key]> | null : Loose<Value[Key]> }
    : Value;
type Wanted = Loose<Omit<z.input<typeof CanonicalOrder>, 'fulfillment'>>;
/** A mapper may leave out the sums of its fees and taxes. They are added up before the schema is applied. */
type Given = Omit<OrderInput, 'fulfillment' | 'money'> & {
  money: Omit<OrderInput['money'], 'fee' | 'tax'> & Record<'fee' | 'tax', number>;
};

it('the type of a mapper’s order agrees with the schema in every field', () => {
  expectTypeOf<Given>().toExtend<Wanted>();
  expectTypeOf<Wanted>().toExtend<Given>();
  expectTypeOf<Given>().toExtend<Pick<OrderInput, keyof Given>>();
  expectTypeOf<Loose<z.input<typeof Fulfillment>>>().toExtend<OrderInput['fulfillment']>();
  expectTypeOf<keyof OrderInput>().toEqualTypeOf<keyof CanonicalOrder>();
});

describe('an answer of the platform', () => {
  const asking = async (answer: object, errorCode = '', warn = (_problem: string): void => {}) => {
    const text = `${QUERY}\nexport function toCanonicalOrder() { throw new TypeError('it was asked') }\n${errorCode}`;
    const module = await loadOrderModule({ ORDER_MODULE: await moduleOf(`asked-${errorCode}`.slice(0, 100), text) });
    return refetching(await serve(answer), module, warn);
  };
  const ask = async (...about: Parameters<typeof asking>): Promise<unknown> => (await asking(...about))();

  it.each([
    ['of nulls', { data: { shop: null } }],
    ['of nested nulls', { data: { shop: { __typename: 'Shop', purchase: null } } }],
    ['of an empty list', { data: { purchases: { edges: [] } } }],
    [
      "of NOT_FOUND at the order's path",
      {
        data: { shop: { purchase: null } },
        errors: [{ message: 'none', path: ['shop', 'purchase'], extensions: { code: 'NOT_FOUND' } }],
      },
    ],
  ])('%s means that the order does not exist', async (_what, answer) => {
    expect(await ask(answer)).toBeUndefined();
  });

  it('with an error at a nested path means to try again, not that the order is missing', async () => {
    const errors = [{ message: 'sold', path: ['shop', 'purchase', 'item'], extensions: { code: 'NOT_FOUND' } }];
    expect(await ask({ data: { shop: null }, errors })).toMatchObject({ name: 'TryAgain' });
    expect(await ask({ data: { shop: { purchase: { id: 'x' } } }, errors })).toMatchObject({ name: 'TryAgain' });
  });

  it('with a refusal anywhere holds the order, and says whether it may concern this order alone', async () => {
    const refusal = (code: string, path?: string[]) => ({ message: 'no', path, extensions: { code } });
    const judge = (...errors: object[]): Promise<unknown> =>
      ask({ data: { shop: { purchase: { id: 'x', name: null } } }, errors });
    const field = refusal('FORBIDDEN', ['shop', 'purchase', 'id']);
    expect(await judge(field)).toMatchObject({ cause: { code: 'platform_refuses_field' } });
    expect(await judge(refusal('FORBIDDEN', ['shop', 'purchase']))).toMatchObject({
      cause: { code: 'platform_refuses_order' },
    });
    expect(await judge(refusal('FORBIDDEN', ['shop']))).toMatchObject({ cause: { code: 'platform_refuses_order' } });
    expect(await judge(field, refusal('FORBIDDEN'))).toMatchObject({ cause: { code: 'platform_refuses_us' } });
    const unknown = refusal('UNAUTHENTICATED', ['shop']);
    expect(await judge(unknown)).toMatchObject({ cause: { code: 'platform_refuses_us' } });
  });

  it("with codes of the platform is read by the module's errorCode", async () => {
    const errorCode = `export const errorCode = ({ message, path, extensions }) => {
      if (message === 'wait') return 'INTERNAL_SERVER_ERROR';
      return { PermissionDenied: 'FORBIDDEN', GONE: 'NOT_FOUND', BAD_ID: 'BAD_USER_INPUT' }[extensions?.exception.code];
    };`;
    const judge = (code: string, about: object = {}): Promise<unknown> =>
      ask(
        { data: { shop: null }, errors: [{ message: 'no', extensions: { exception: { code } }, ...about }] },
        errorCode,
      );
    expect(await judge('PermissionDenied')).toMatchObject({
      name: 'NeedsOperator',
      cause: { code: 'platform_refuses_us', httpStatus: 200 },
    });
    expect(await judge('GONE')).toBeUndefined();
    expect(await judge('BAD_ID')).toMatchObject({ name: 'GiveUp', cause: { code: 'order_id_invalid' } });
    expect(await judge('GONE', { message: 'wait' })).toMatchObject({ name: 'TryAgain' });
    const own = { exception: {}, code: 'FORBIDDEN' };
    expect(await judge('', { extensions: own })).toMatchObject({ cause: { code: 'platform_refuses_us' } });
    expect(await judge('', { extensions: { ...own, code: 4 } })).toMatchObject({ name: 'TryAgain' });
  });

  it('for which errorCode throws is read by its own codes, with one warning', async () => {
    const warned: string[] = [];
    const throwing = `export const errorCode = ({ message }) => {
      throw new TypeError(message);
    };`;
    const errors = [{ message: 'not for Ada', extensions: { code: 'UNAUTHENTICATED' } }];
    const refetch = await asking({ errors: [...errors, null, ...errors] }, throwing, (problem) => warned.push(problem));
    expect(await refetch()).toMatchObject({ cause: { code: 'platform_refuses_us' } });
    expect(await refetch()).toMatchObject({ cause: { code: 'platform_refuses_us' } });
    expect(warned).toEqual([
      expect.stringMatching(/^the mapper of ORDER_MODULE threw TypeError at asked[\w-]+\.ts:4: /),
    ]);
  });

  it('with a value is passed to the mapper', async () => {
    expect(await ask({ data: { purchases: { total: 0 } } })).toMatchObject({ cause: { code: 'order_mapper_threw' } });
  });
});

describe("a module's `cancelled`", () => {
  const cancelledAt = '2027-01-31T18:00:00Z';
  const cancels = (data: { state?: string | null }) => (data.state === 'Cancelled' ? { cancelledAt } : null);
  const none = { serviceOrderId: 'x', cancelledAt };
  const reading = async (module: object, answer: object = { data: { state: 'Cancelled' } }): Promise<unknown> => {
    const url = await serve(answer);
    const whole = { query: '{ state }', cancelled: cancels, toCanonicalOrder: broken, ...module };
    return refetching(url, whole)();
  };
  const broken = (): never => {
    throw new TypeError('it has no lines');
  };
  const order = sampleOrder({ serviceOrderId: 'x' });

  it.each<[string, () => unknown, object?]>([
    ['throws', broken],
    ['finds no order', () => null],
    ['makes an order that cannot be read', () => ({ ...order, items: [] })],
    ['skips it', () => ({ skipped: 'dine_in' }), { skipped: 'dine_in' }],
  ])('cancels an order of which the mapper %s', async (_what, toCanonicalOrder, more = {}) => {
    expect(await reading({ toCanonicalOrder })).toEqual({ ...none, ...more });
  });

  it('cancels an order that can be read, which is then known in full', async () => {
    expect(await reading({ toCanonicalOrder: () => order })).toMatchObject({
      order: { cancelledAt, items: order.items },
    });
  });

  it('keeps the reason that the mapper read, unless it has its own', async () => {
    const toCanonicalOrder = (): object => ({ ...order, cancelledAt, cancelReason: 'sold out' });
    expect(await reading({ toCanonicalOrder })).toMatchObject({ order: { cancelReason: 'sold out' } });
    const cancelled = (): object => ({ cancelledAt, cancelReason: 'changed my mind' });
    expect(await reading({ toCanonicalOrder, cancelled })).toMatchObject({
      order: { cancelReason: 'changed my mind' },
    });
  });

  it('changes nothing if it returns null', async () => {
    const placed = { data: { state: 'Placed' } };
    expect(await reading({ toCanonicalOrder: () => order }, placed)).toMatchObject({ order: { serviceOrderId: 'x' } });
    expect(await reading({}, placed)).toMatchObject({ cause: { code: 'order_mapper_threw' } });
  });

  it.each([
    ['true', () => true],
    ['no time', () => ({ cancelledAt: null })],
    ['a time without an offset', () => ({ cancelledAt: '2027-01-31T18:00:00' })],
    ['a promise', () => Promise.resolve({ cancelledAt })],
  ])('holds the order if it returns %s, and names the field', async (_what, cancelled) => {
    expect(await reading({ cancelled, toCanonicalOrder: () => order })).toMatchObject({
      cause: { code: 'order_unreadable', issues: [{ path: 'cancelledAt' }] },
    });
  });

  it('holds the order if it throws', async () => {
    expect(await reading({ cancelled: broken })).toMatchObject({ cause: { code: 'order_mapper_threw' } });
  });

  it('does not cancel another order', async () => {
    const another = { ...order, serviceOrderId: 'y' };
    expect(await reading({ toCanonicalOrder: () => another })).toMatchObject({
      cause: { code: 'order_unreadable', issues: [{ path: 'serviceOrderId' }] },
    });
  });

  it('is asked of what `fetchOrder` returned too', async () => {
    const module = { query: undefined, fetchOrder: async () => ({ state: 'Cancelled' }) };
    expect(await reading(module)).toEqual(none);
  });

  describe('of an answer with errors', () => {
    const failing = (path: unknown, data: object) => ({ data, errors: [{ message: 'no', ...(path ? { path } : {}) }] });

    it('counts if it reads no field that the errors are about', async () => {
      const twice = [
        ['lines', 0, 'name'],
        ['lines', 0, 'name', 'text'],
        ['lines', 1],
      ].map((path) => ({ path }));
      const data = { state: 'Cancelled', lines: [{ name: null }, null] };
      expect(await reading({}, { data, errors: twice })).toEqual(none);
      const refusal = { path: ['name'], extensions: { code: 'FORBIDDEN' } };
      const refused = { data: { state: 'Cancelled', name: null }, errors: [refusal] };
      expect(await reading({}, refused)).toEqual(none);
    });

    it.each([
      ['it reads a field that an error is about', ['active'], { active: null, id: 'x' }],
      ['an error names no field', undefined, { active: false }],
      ['an error names a field that has a value', ['active'], { active: false }],
      ['there is no order', ['active'], { active: null }],
    ])('does not count if %s', async (_what, path, data) => {
      const cancelled = ({ active }: { active: boolean | null }) => (active ? null : { cancelledAt });
      expect(await reading({ cancelled }, failing(path, data))).toMatchObject({ name: 'TryAgain' });
    });

    it('does not count if the status alone says that the platform fails', async () => {
      const server = await serveHttp((_request, response) => sendJson(response, 500, { data: { state: 'Cancelled' } }));
      servers.push(server);
      const module = { query: '{ state }', cancelled: cancels, toCanonicalOrder: broken } as unknown as OrderModule;
      expect(await refetching(server.url, module)()).toMatchObject({ name: 'TryAgain' });
    });

    it('does not make an order that is not cancelled readable', async () => {
      const answer = failing(['notes'], { state: 'Placed', notes: null });
      expect(await reading({ toCanonicalOrder: () => order }, answer)).toMatchObject({ name: 'TryAgain' });
    });
  });
});

describe('the service does not start with an order module', () => {
  const mapper = 'export function toCanonicalOrder() { return null }';
  it.each([
    ['without a query', mapper, 'must export a text "query"'],
    [
      'with a query and fetchOrder',
      `${QUERY} ${mapper} export const fetchOrder = () => null`,
      'exports "query" and "fetchOrder": keep one of them',
    ],
    [
      'whose fetchOrder is not a function',
      `${mapper} export const fetchOrder = {}`,
      'a "fetchOrder" that is not a function',
    ],
    ['with fetchOrder without a mapper', 'export const fetchOrder = () => null', 'a function "toCanonicalOrder"'],
    [
      'with fetchOrder and errorCode',
      `${mapper} export const fetchOrder = () => null; export const errorCode = () => undefined`,
      'exports "errorCode", which needs "query"',
    ],
    ['without a mapper', QUERY, 'must export a function "toCanonicalOrder"'],
    [
      'whose mapper is async',
      `${QUERY} export async function toCanonicalOrder() {}`,
      '"toCanonicalOrder" that is async',
    ],
    [
      'whose variables are not a function',
      `${QUERY} ${mapper} export const variables = 1`,
      'a "variables" that is not a function',
    ],
    [
      'whose errorCode is not a function',
      `${QUERY} ${mapper} export const errorCode = {}`,
      'a "errorCode" that is not a function',
    ],
    [
      'whose headers are not a function',
      `${QUERY} ${mapper} export const headers = {}`,
      'a "headers" that is not a function',
    ],
    [
      'whose cancelled is async',
      `${QUERY} ${mapper} export async function cancelled() {}`,
      'a "cancelled" that is async: make it synchronous',
    ],
    ['whose query is not GraphQL', `export const query = 'order of id'; ${mapper}`, 'is not a GraphQL document'],
    [
      'whose query is a mutation',
      `export const query = 'mutation { order { id } }'; ${mapper}`,
      'must be exactly one query',
    ],
    [
      'whose query needs an unknown variable',
      `export const query = 'query($code: ID!, $lang: String = "de") { order(code: $code) { id } }'; ${mapper}`,
      'needs the variable $code',
    ],
    ['that is not valid TypeScript', 'not {', 'cannot be loaded'],
  ])('%s', async (name, text, message) => {
    const path = await moduleOf(name, text);
    const error = await loadOrderModule({ ORDER_MODULE: path }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(Error);
    for (const words of [`ORDER_MODULE: ${path}`, message]) expect(String(error)).toContain(words);
  });

  it('that does not exist', async () => {
    await expect(loadOrderModule({ ORDER_MODULE: '@nobody/no-module' })).rejects.toThrow(
      /^ORDER_MODULE: @nobody\/no-module cannot be loaded: .*\. A path begins with \. or \//,
    );
  });
});

it('the default query equals the one in the documentation', async () => {
  const { query } = await loadOrderModule({});
  const page = await readFile(new URL('../../docs/connect-your-platform.md', import.meta.url), 'utf8');
  expect(page.replaceAll(/\s+/g, ' ')).toContain(query?.replaceAll(/\s+/g, ' '));
});
