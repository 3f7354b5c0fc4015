/** `expediter platform`, against a platform with another schema than ours. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { buildSchema, graphql, GraphQLError, parse, validate } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { purchases } from '../../examples/platform-mapper/purchases.ts';
import { API_KEY, servePlatform } from '../../examples/platform-mapper/serve-platform.ts';
import { draftModule } from '../../src/platform/draft-module.ts';
import { loadOrderModule } from '../../src/platform/load-order-module.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { startOrderingPlatform } from '../../world/platform/start-ordering-platform.ts';
import { startRestPlatform, type RestPlatform } from '../../world/platform/start-rest-platform.ts';
import { runCli } from '../support/run-cli.ts';
import type { Ended } from '../../world/processes/run-program.ts';
import { runRefused } from '../support/run-refused.ts';

/** What tells of the members of the sample purchases. */
const PERSONAL = /Ada|Lovelace|ada@|12345678|Murasaki|Jingumae|Ring twice|terrace|cold, please/;

let feast: Awaited<ReturnType<typeof servePlatform>>;
let folder: string;
let env: Record<string, string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'platform-'));
  // Away from this project and its packages. Node has to find `expediter-platform` nevertheless.
  await cp(fileURLToPath(new URL('../../examples/platform-mapper', import.meta.url)), folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{"type": "module"}');
  feast = await servePlatform();
  env = { ORDER_API_URL: feast.url, ORDER_API_TOKEN: API_KEY, ORDER_MODULE: join(folder, 'map-order.ts') };
});
afterAll(async () => {
  await feast.stop();
  await rm(folder, { recursive: true });
});

type Change = Record<string, string>;
/** The example's module with more text. @returns the variable that names it */
async function moduleOf(name: string, text: string): Promise<Change> {
  const path = join(folder, `${name}.ts`);
  await writeFile(path, `export * from './map-order.ts';\n${text}`);
  return { ORDER_MODULE: path };
}
/** The example's module, but its mapper returns this expression of its `order`. */
const mapping = (name: string, expression: string): Promise<Change> =>
  moduleOf(
    name,
    `import { toCanonicalOrder as map } from './map-order.ts';
     export const toCanonicalOrder = (data) => { const order = map(data); return ${expression}; };`,
  );
const check = (words: string, change: Change = {}): Promise<Ended> =>
  runCli({ ...env, ...change }, ['platform', 'check', ...words.split(' ')]);

it("platform check prints the canonical order without member data, and with --shape the answer's fields", async () => {
  expect((await check('B-1001')).out).not.toContain('The shape of the platform');
  const { code, out, error } = await check('B-1001 --shape');
  expect({ code, error }).toEqual({ code: 0, error: '' });
  expect(out).toMatch(/^It can be placed, as this order:\n/);
  expect(out).toContain('"name": "(12 characters)"');
  expect(out).toContain('"total": 3660');
  expect(out).not.toMatch(/add up|would refuse/);
  expect(out).toMatch(/^purchase\.positions +list of 2$/m);
  expect(out).toMatch(/^purchase\.totals\.goods +text like 00\.00$/m);
  expect(out).toMatch(/^purchase\.handover +text in capitals$/m);
  expect(out).not.toMatch(PERSONAL);

  const json = await check('T-2001 --json');
  expect(JSON.parse(json.out)).toMatchObject({ state: 'ok', order: { locationId: 'feast-tokyo' }, leftOut: [] });
  expect(json.out).not.toMatch(PERSONAL);
});

it('platform check says of an order that the platform has emptied that it is cancelled', async () => {
  const [purchase] = purchases;
  feast.byCode.set('C-1', { ...purchase, code: 'C-1', cancelledTs: 1_795_282_300, positions: [] });
  const { code, out, error } = await check('C-1');
  expect({ code, error }).toEqual({ code: 0, error: '' });
  expect(out).toMatch(/^It is cancelled, and not sent\. Nothing else of it can be read\./);
  const json = await check('C-1 B-1001 --json');
  expect(JSON.parse(json.out)).toMatchObject([{ state: 'cancelled' }, { state: 'ok' }]);
});

it("platform check prints the member's data with --reveal", async () => {
  const { out } = await check('B-1001 --reveal');
  expect(out).toContain('"name": "Ada Lovelace"');
  expect(out).toContain('"phone": "+493012345678"');
  // The ticket.
  expect(out).toMatch(/^Ada Lovelace {17}\+493012345678\n/m);
  expect((await check('B-1001')).out).not.toMatch(/^TOTAL/m);
});

it('platform check exits 1 with a sentence for every error in the order', async () => {
  const wrong = `{
    ...order, items: undefined, money: { ...order.money, total: '36.60', tip: null }, placedAt: 'yesterday'
  }`;
  const { code, out, error } = await check('B-1001', await mapping('wrong', wrong));
  expect({ code, error }).toEqual({ code: 1, error: '' });
  expect(out).toContain(`Errors in the order that was made from the answer:

items is missing; a list is required
money.tip is missing; a number is required
money.total is a string; a number is required
placedAt is not an RFC 3339 time with an offset, such as 2027-01-31T18:00:00Z

`);
  expect(out).toMatch(/^purchase\.totals\.gratuity +text like 0$/m);
  expect(out).not.toMatch(PERSONAL);
});

it("platform check prints where a mapper threw an error, and prints the error's message only with --reveal", async () => {
  const throwing = `export function toCanonicalOrder({ purchase }) {
    throw new TypeError('not ' + purchase.customer.firstName);
  }`;
  const module = await moduleOf('throwing', throwing);
  const { code, out } = await check('B-1001', module);
  expect(code).toBe(1);
  expect(out).toMatch(/^It cannot be placed: the mapper of ORDER_MODULE threw TypeError at throwing\.ts:3\n/);
  expect(out).toContain('Add --reveal to print the whole error.');
  expect(out).not.toMatch(PERSONAL);
  const revealed = await check('B-1001 --reveal', module);
  expect(revealed.out).toContain('TypeError: not Ada');
  expect(revealed.out).not.toContain('--reveal');

  // A query's variables are the mapper's, too.
  const variables = "export const variables = (id) => { throw new RangeError('no ' + id); };";
  const early = await check('B-1001 --reveal', await moduleOf('early', variables));
  expect(early.out).toContain('RangeError: no B-1001');
});

describe('platform check of a module with fetchOrder', () => {
  const TOKEN = 'rest-token';
  let rest: RestPlatform;
  let change: Change;
  beforeAll(async () => {
    rest = await startRestPlatform(TOKEN);
    const page = await readFile(new URL('../../docs/connect-your-platform.md', import.meta.url), 'utf8');
    const [, text = ''] = /^### A platform with REST$.*?^```ts\n(.*?)^```/ms.exec(page) ?? [];
    await writeFile(join(folder, 'rest.ts'), text);
    change = { ORDER_API_URL: rest.url, ORDER_API_TOKEN: TOKEN, ORDER_MODULE: join(folder, 'rest.ts') };
    rest.orders.set('r-1', sampleOrder({ serviceOrderId: 'r-1' }));
  });
  afterAll(() => rest.stop());

  it('prints the order and the requests, but no path that may have come from an answer', async () => {
    const { code, out, error } = await check('r-1 --shape', change);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out).toMatch(/^It can be placed, as this order:\n/);
    expect(out).toMatch(/^items\.\*\.unitPrice +integer$/m);
    expect(out).toContain('The requests of fetchOrder:\n');
    expect(out).toMatch(/^GET \/v1\/orders\/r-1 +200$/m);
    expect(out).toMatch(/^GET \(by an answer: --reveal\) +200$/m);
    expect(out).not.toContain('/items');
    expect(out).not.toMatch(PERSONAL);
    expect((await check('r-1 --reveal', change)).out).toMatch(/^GET \/v1\/orders\/r-1\/items +200$/m);
  });

  it('says why an order cannot be read, with the status', async () => {
    const refused = await check('r-1', { ...change, ORDER_API_TOKEN: 'x' });
    expect(refused.code).toBe(1);
    expect(refused.out).toMatch(/^It cannot be placed: the ordering platform denies us access/);
    expect(refused.out).toMatch(/^GET \/v1\/orders\/r-1 +401$/m);
    const { requests } = JSON.parse((await check('r-1 --json', { ...change, ORDER_API_TOKEN: 'x' })).out) as {
      requests: unknown;
    };
    expect(requests).toEqual([{ request: 'GET /v1/orders/r-1', status: 401 }]);
    const missing = await check('r-2', change);
    expect(missing.code).toBe(3);
    expect(missing.error).toMatch(/has no order with this id\. GET \/v1\/orders\/r-2: 404$/m);
    const invalid = await check('r:3', change);
    expect(invalid.out).toMatch(/^It cannot be placed: the ordering platform rejects the order id as invalid/);
  });

  it('prints where fetchOrder threw, and its message only with --reveal', async () => {
    const path = join(folder, 'rest-throws.ts');
    await writeFile(
      path,
      `export { toCanonicalOrder } from './rest.ts';
       export async function fetchOrder(id, { fetch }) {
         const { member } = await (await fetch('orders/' + id)).json();
         throw new TypeError('not ' + member.name);
       }`,
    );
    const { out } = await check('r-1', { ...change, ORDER_MODULE: path });
    expect(out).toMatch(/^It cannot be placed: the mapper of ORDER_MODULE threw TypeError at rest-throws\.ts:4\n/);
    expect(out).not.toMatch(PERSONAL);
    expect((await check('r-1 --reveal', { ...change, ORDER_MODULE: path })).out).toContain('TypeError: not Ada');
  });
});

it("platform check prints the platform's error codes, and their messages only with --reveal", async () => {
  const refused = { ORDER_API_TOKEN: 'x' };
  const { code, out } = await check('B-1001', refused);
  expect(code).toBe(1);
  expect(out).toMatch(/^It cannot be placed: the ordering platform denies us access/);
  expect(out).toMatch(/^extensions\.code +judged by$/m);
  expect(out).toMatch(/^WRONG_KEY +UNAUTHENTICATED$/m);
  expect(out).not.toContain('which key?');
  expect((await check('B-1001 --reveal', refused)).out).toContain('which key?');
  const json = await check('B-1001 --json', refused);
  const { errors } = JSON.parse(json.out) as { errors: unknown };
  expect(errors).toEqual([{ code: 'WRONG_KEY', judgedBy: 'UNAUTHENTICATED' }]);

  const throwing = await moduleOf('odd-errors', `export const errorCode = () => { throw new Error('of Ada'); };`);
  const { error } = await check('B-1001', { ...refused, ...throwing });
  expect(error).toMatch(/^warning: the mapper of ORDER_MODULE threw Error at odd-errors\.ts:2: /);
});

it('platform check names the field that the token may not read, or that the platform does not have', async () => {
  const platform = await startOrderingPlatform();
  const notes = (): never => {
    throw new GraphQLError('not for Ada', { extensions: { code: 'FORBIDDEN' } });
  };
  platform.orders.set('r-1', { ...sampleOrder({ serviceOrderId: 'r-1' }), notes });
  const refused = await check('r-1', { ORDER_API_URL: platform.url, ORDER_MODULE: '' });
  await platform.stop();
  expect(refused.code).toBe(1);
  expect(refused.out).toMatch(
    /^It cannot be placed: the ordering platform denies us order\.notes: remove it from the query, or let the token read it\n/,
  );
  expect(refused.out).not.toMatch(PERSONAL);

  const query = 'export const query = `query Q($id: String!) {\n  purchase(code: $id) { number }\n}`;';
  const unfit = await check('B-1001', await moduleOf('unfit', query));
  expect(unfit.out).toMatch(/^It cannot be placed: .* the query of ORDER_MODULE: look at number \(line 2\)\n/);
  expect(unfit.out).toContain('doctor --only platform');
  expect(unfit.out).not.toContain('errorCode');
});

it('platform check prints where headers threw, and its message only with --reveal', async () => {
  const throwing = await moduleOf('headers', `export const headers = async () => { throw new RangeError('of Ada'); };`);
  const { out } = await check('B-1001', throwing);
  expect(out).toMatch(/^It cannot be placed: the mapper of ORDER_MODULE threw RangeError at headers\.ts:2\n/);
  expect(out).not.toMatch(PERSONAL);
  expect((await check('B-1001 --reveal', throwing)).out).toContain('RangeError: of Ada');
});

it('platform check lists fields that were left out, wrong sums, and POS systems that would refuse the order', async () => {
  const odd = `{
    ...order, member: { ...order.member, phone: 'by the door' },
    money: { ...order.money, subtotal: order.money.subtotal - 100 },
  }`;
  const { code, out } = await check('B-1001', await mapping('odd', odd));
  expect(code).toBe(4);
  expect(out).toMatch(/^member\.phone +phone_unusable$/m);
  expect(out).toContain(`
money.subtotal is 32.60 EUR, but the items with their modifiers add up to 33.60 EUR
money.total is 36.60 EUR, and subtotal, tip and fee add up to 35.60 EUR, 40.96 EUR with the tax. Is a fee missing (money.fee)?
`);
  expect(out).toMatch(/^toast +Toast would refuse the order: member\.phone is missing$/m);
  expect(out).not.toMatch(/^(standard|square|hubrise|lightspeed-k|deliverect) /m);
});

it('platform check exits 4 if an order is doubtful, and says which field', async () => {
  const young = `{ ...order, notes: undefined, placedAt: new Date(Date.now() + 36e5).toISOString() }`;
  const { code, out } = await check('B-1001', await mapping('young', young));
  expect(code).toBe(4);
  expect(out).toContain('\nplacedAt is in the future. Is its time zone right?\n');
  // A missing note is no text of some type.
  expect(out).not.toContain('"notes": "(a');
  const line = await check('B-1001 --no-details', await mapping('young', young));
  expect(line).toMatchObject({ code: 4, out: expect.stringContaining('CHECK: placedAt is in the future') });
  // An order that cannot be read, or is not there, counts for more.
  expect((await check('B-1001 B-9999', await mapping('young', young))).code).toBe(3);

  const unknown = await check('B-1001', await mapping('unknown', '{ ...order, remark: order.notes }'));
  expect(unknown).toMatchObject({ code: 4, out: expect.stringMatching(/^remark +field_unknown$/m) });
});

it('platform check doubts amounts a hundred times as high as those of the other orders', async () => {
  for (const nth of [1, 2, 3]) feast.byCode.set(`M-${nth}`, { ...feast.byCode.get('B-1001'), code: `M-${nth}` });
  const hundredfold = `order.serviceOrderId !== 'M-2' ? order : JSON.parse(
    JSON.stringify({ ...order, money: { ...order.money, currency: 'EUR' } }),
    (key, value) => typeof value === 'number' && key !== 'quantity' ? value * 100 : value)`;
  const { code, out } = await check('M-1 M-2 M-3', await mapping('hundredfold', hundredfold));
  expect(code).toBe(4);
  expect(out).toMatch(/^M-1 +can be placed: a pickup at feast-berlin for 36\.60 EUR$/m);
  expect(out).toMatch(/^M-2 .*money\.total is 3660\.00 EUR, some 100 times the median of the other orders$/m);
  expect(out).toMatch(/^M-2 .*money has only prices that end in 00, and an item is 1290\.00 EUR\./m);
});

it('platform check says how many minor units a yen has, if the amounts may be hundredths', async () => {
  const priced = (price: number): string => `{
    ...order, items: order.items.map((item) => ({ ...item, unitPrice: ${price} })),
    money: { ...order.money, subtotal: ${price}, total: ${price} + order.money.fee },
  }`;
  const hint = /^1 JPY is 1 minor unit\. Does the platform keep hundredths\? Use fromHundredths\.$/m;
  const round = await check('T-2001', await mapping('round', priced(1200)));
  expect(round).toMatchObject({ code: 0, out: expect.stringMatching(hint) });
  // A price decides it, or makes the order doubtful.
  expect(await check('T-2001')).toMatchObject({ code: 0, out: expect.not.stringContaining('fromHundredths') });
  const high = await check('T-2001', await mapping('high', priced(120_000)));
  expect(high).toMatchObject({
    code: 4,
    out: expect.stringContaining('is 120000 JPY. Is it a hundred times too high?'),
  });
  expect(high.out).not.toMatch(hint);
  expect((await check('B-1001')).out).not.toContain('fromHundredths');
});

it('platform check says how to complete a national telephone number', async () => {
  const national = `{
    ...order, member: { ...order.member, phone: '0171 2345678' },
    fulfillment: { ...order.fulfillment, destination: { line1: 'Road 1', country: 'Germany' } },
  }`;
  const module = await mapping('national', national);
  const { out } = await check('B-1001', module);
  expect(out).toMatch(
    /^member\.phone +phone_unusable: a national number, .* phoneInCountry.* change <id> --country DE$/m,
  );
  expect(out).not.toMatch(/would refuse|2345678/);
  const { out: line } = await check('B-1001 --no-details', module);
  expect(line).toContain('member.phone was left out: a national number');
  expect(line).toContain('country was left out: it is not an ISO 3166-1 code such as DE. Map it with mapEnum');
});

it('platform check says that a cancelled or skipped order is not sent', async () => {
  const module = await mapping(
    'cancelled',
    // Some platforms clear the amounts.
    "{ ...order, cancelledAt: '2026-11-21T18:00:00Z', money: { ...order.money, total: 0 } }",
  );
  const { code, out } = await check('B-1001', module);
  expect(code).toBe(0);
  expect(out).toMatch(/^The platform has cancelled it\. .* not sent/);
  expect(out).not.toContain('can be placed');

  feast.byCode.set('D-3001', { ...purchases[0], code: 'D-3001', handover: 'DINE_IN' });
  const skipped = await check('D-3001');
  expect(skipped).toMatchObject({ code: 0, error: '' });
  expect(skipped.out).toMatch(/^It is skipped by the mapper: dine_in\./);
});

it('platform check prints a line for each of several orders, and details only of errors', async () => {
  feast.byCode.set('P-4001', { ...purchases[0], code: 'P-4001', handover: 'DRONE' });
  const { code, out } = await check('B-1001 B-9999 P-4001');
  expect(code).toBe(1);
  expect(out).toMatch(/^B-1001 +can be placed: a pickup at feast-berlin for 36\.60 EUR$/m);
  expect(out).toMatch(/^B-9999 +The ordering platform has no order with this id\.$/m);
  expect(out).toMatch(/^P-4001: It cannot be placed: the ordering platform answered/m);
  expect(out).not.toContain('B-1001: ');
  // The lines are last, so that nobody searches for them.
  expect(out).toMatch(/^P-4001 +cannot be placed: .*\n$/m);
  expect(out.indexOf('P-4001: It cannot')).toBeLessThan(out.indexOf('B-1001 '));
  const json = await check('B-1001 B-9999 --json');
  expect(json.code).toBe(3);
  expect(JSON.parse(json.out)).toMatchObject([{ serviceOrderId: 'B-1001', state: 'ok' }, { state: 'missing' }]);
});

it('platform check --no-details prints the fields of a wrong answer only with --shape', async () => {
  const throws = `export const toCanonicalOrder = () => { throw new Error('no such venue'); };`;
  const module = await moduleOf('throws', throws);
  const { code, out } = await check('B-1001 --no-details', module);
  expect(code).toBe(1);
  expect(out).not.toContain('purchase.positions');
  expect(out).toMatch(/^Add --shape to see the fields of the answer\.$/m);
  const shown = await check('B-1001 --no-details --shape', module);
  expect(shown.out).toMatch(/^purchase\.positions +list of 2$/m);
});

it('platform check --no-details prints what to check, and the number of TODOs in the module', async () => {
  const unpriced = `{
    ...order, items: order.items.map((item) => ({ ...item, unitPrice: null })), // TODO: the price
  }`;
  const { out } = await check('B-1001 --no-details', await mapping('unpriced', unpriced));
  expect(out).toMatch(/^B-1001 +can be placed: .* for 36\.60 EUR\. CHECK: items have no unitPrice: (\d) of \1$/m);
  expect(out).toMatch(/^1 TODOs are left in \S+unpriced\.ts\.$/m);
});

it('platform check says that it sent the default query if ORDER_MODULE is unset', async () => {
  const { code, out } = await check('B-1001', { ORDER_MODULE: '' });
  expect({ code, out }).toEqual({ code: 1, out: expect.stringMatching(/^ORDER_MODULE is unset, so/m) });
});

it('platform check says how to translate an unknown error code', async () => {
  const own = await moduleOf('no-codes', 'export const errorCode = undefined;');
  const { out } = await check('B-1001', { ORDER_API_TOKEN: 'x', ...own });
  expect(out).toMatch(/^WRONG_KEY +WRONG_KEY$/m);
  expect(out).toMatch(/does not know this code, .* translate it by the function errorCode of the module\./);

  const typo = await moduleOf('typo', 'export const query = `query($id: ID!) { purchase(code: $id) { total } }`;');
  const { out: codeless } = await check('B-1001', typo);
  expect(codeless).toMatch(/^This command shows more, such as the platform's message: .*doctor --only platform$/m);
  expect(codeless).not.toContain('errorCode');
  expect(codeless).toContain("The errors in the platform's answer have no extensions.code:\n\nAdd --reveal");
});

describe('platform init', () => {
  const draft = async (name: string, ...words: string[]): Promise<{ file: string; out: string }> => {
    const file = join(folder, `${name}.ts`);
    const byNpm = { ...env, npm_lifecycle_event: 'expediter' };
    const { code, out, error } = await runCli(byNpm, ['platform', 'init', '--out', file, ...words]);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    return { file, out };
  };
  /** Writes a changed copy: a module is loaded only once. */
  const corrected = async (file: string, from: RegExp | string, to: string): Promise<string> => {
    const copy = file.replace('.ts', '-.ts');
    await writeFile(copy, (await readFile(file, 'utf8')).replace(from, to));
    return copy;
  };

  it("drafts a module that platform check can use, from the platform's schema", async () => {
    // Feast gives its schema only to those that have the key.
    const refused = await runRefused(1, env, ['platform', 'init', '--out', join(folder, 'none.ts')]);
    expect(refused).toMatch(/does not give its schema: .*--header/);

    const { file, out } = await draft('drafted', '--header', 'x-api-key');
    expect(out).toMatch(
      /by the query field purchase\.\n[^]*\n\d+ TODOs are left:\n[^]*\nnpm run expediter -- platform check --watch/,
    );
    const refusing = { ...env, ORDER_API_TOKEN: 'x', ORDER_MODULE: '', npm_lifecycle_event: 'expediter' };
    const doctored = await runCli(refusing, ['doctor', '--only', 'platform']);
    expect(doctored.out).toContain('try a real order: npm run expediter -- platform check');
    const checkBy = (module: string) => check('B-1001', { ORDER_MODULE: module });
    // Feast names no currency, and none is guessed.
    expect((await checkBy(file)).out).toContain('(currency_unreadable) about currency at ');
    const inEuro = await corrected(file, /currency: string = .*/, "currency: string = 'EUR';");
    const checked = await checkBy(inEuro);
    expect(checked.out.split('\n\n')[1]).toBe(
      'fulfillment.requestedAt is not an RFC 3339 time with an offset, such as 2027-01-31T18:00:00Z',
    );
    const local = "requestedAt: order.wantedFor && timeInZone(order.wantedFor, 'Europe/Berlin'),";
    const inZone = await corrected(inEuro, 'requestedAt: order.wantedFor,', local);
    const { out: placed } = await checkBy(await corrected(inZone, 'import {', 'import { timeInZone,'));
    expect(placed).toMatch(/^It can be placed/);
    expect(placed).toContain('"total": 3660');
    feast.byCode.set('D-3001', { ...purchases[0], code: 'D-3001', handover: 'DINE_IN' });
    const { out: skipped } = await check('D-3001', { ORDER_MODULE: file });
    expect(skipped).toContain('skipped by the mapper: dine_in');
  });

  it.each([
    ['type Query {\n  order(id: ID!: Order\n}', /schema\.graphql:2 is no schema: Syntax Error/],
    ['{"data": ', /schema\.graphql is no schema: Unexpected end of JSON/],
    ['type Query { bestellung(id: ID!): Bestellung } type Bestellung { id: ID! }', /Names are read as English words/],
  ])('says why it cannot use the schema %j', async (text, says) => {
    const file = join(folder, 'schema.graphql');
    await writeFile(file, text);
    expect(await runRefused(1, env, ['platform', 'init', '--out', join(folder, 'none.ts'), '--schema', file])).toMatch(
      says,
    );
  });

  it('refuses to overwrite a file', async () => {
    const there = join(folder, 'map-order.ts');
    const error = await runRefused(1, env, ['platform', 'init', '--without-schema', '--out', there]);
    expect(error).toContain('exists, and is not overwritten');
  });

  it('drafts a module from a schema in a file, with a TODO for each field that it does not know', async () => {
    const schema = `
      scalar Decimal scalar DateTime union Payment = Card type Card { brand: String }
      type Query { me: Me  node(id: ID!): Node  shop(slug: String!): Shop }
      interface Node { id: ID! } type Shop { id: ID! }
      type Me { id: ID!  getOrder(orderNumber: Int!): SalesOrder  oldOrder(id: ID!): SalesOrder @deprecated }
      type SalesOrder implements Node {
        tipCents: Int  vouchers: [Voucher!]!  id: ID!  orderNumber: Int!  createdAt: DateTime!  status: Status!  totalCents: Int!  payment: Payment
        cart: Cart!  venueId: Int!  customer: Person  previous: SalesOrder  history(year: Int!): String
      }
      type Voucher { name: String!  cents: Int }
      enum Status { OPEN CANCELLED }
      type Person { alias: String  orders: [SalesOrder!]! }
      type Cart { lineItems(first: Int): Lines! }
      type Lines { pageInfo: Page!  edges: [Edge!]! } type Page { end: String } type Edge { node: Line! }
      type Line { sku: String  title: String!  qty: Int!  unitPrice: Decimal  previous: [Line!]  extras: [Extra!]!  reductions: [Cut!]  tags: [String!] }
      type Extra { id: ID!  name: String!  quantity: Int!  price: Decimal!  extras: [Extra!]! } type Cut { cents: Int }`;
    await writeFile(join(folder, 'odd.graphql'), schema);
    const { file } = await draft('odd-schema', '--schema', join(folder, 'odd.graphql'));
    const text = await readFile(file, 'utf8');
    expect(text).toMatch(/ type: undefined, /);
    expect(text).not.toMatch(/TYPES|'EUR';/);
    expect(text).not.toMatch(/(: undefined|: null),(?!.* TODO)/);
    const inEuro = await corrected(file, /currency: string = .*/, "currency: string = 'EUR';");
    const module = await loadOrderModule({ ORDER_MODULE: inEuro });
    expect(validate(buildSchema(schema), parse(module.query ?? ''))).toEqual([]);
    expect(module.query).toContain('lineItems(first: 100) {');
    expect(module.query).not.toMatch(/payment|previous|history|pageInfo/);
    expect(module.variables?.('7')).toEqual({ id: 7 });
    const order = {
      id: 'a',
      orderNumber: 7,
      createdAt: '2026-11-21T18:00:00Z',
      status: 'CANCELLED',
      tipCents: null,
      vouchers: [{ name: 'Friday', cents: 50 }],
      totalCents: 900,
      venueId: 3,
      cart: { lineItems: { edges: [{ node: { sku: 'soup', title: 'Soup', qty: 1, unitPrice: '9.00', extras: [] } }] } },
      customer: null,
    };
    expect(module.toCanonicalOrder({ me: { getOrder: order } })).toMatchObject({
      serviceOrderId: '7',
      locationId: '3',
      items: [{ serviceItemId: 'soup', name: 'Soup', quantity: 1, unitPrice: 900 }],
      money: { subtotal: undefined, tip: 0, total: 900 },
      discounts: [{ name: 'Friday', amount: 50 }],
      cancelledAt: '2026-11-21T18:00:00Z',
    });
    expect(module.toCanonicalOrder({ me: null })).toBeNull();
    expect(() => module.toCanonicalOrder({ me: { getOrder: { ...order, totalCents: null } } })).toThrow('total');
    const line = { sku: 'soup', title: 'Soup', qty: 1, unitPrice: null, extras: [] };
    const unpriced = { ...order, cart: { lineItems: { edges: [{ node: line }] } } };
    expect(() => module.toCanonicalOrder({ me: { getOrder: unpriced } })).toThrow('items.0.unitPrice: is missing');
  });

  it('guesses the meaning of fields by their names', async () => {
    const schema = `
      type Query { order(id: ID!): Order }
      type Order { uid: ID!  shop: Shop!  customer: Customer!  billing: Address  drop: Address  lines: [Line!]!  sums: Sums!  handover: String! }
      type Shop { uid: ID!  place: Address }
      type Customer { uid: ID!  name: String!  club: Boolean }
      type Address { street: String!  zip: String!  town: String }
      type Line { uid: ID!  name: String!  quantity: Int!  amount: String! }
      type Sums { goods: String!  vat: String  gratuity: String  delivery: String  discount: String  total: String!  money: Money! }
      type Money { currency: Currency! } enum Currency { GBP JPY }`;
    const byIso = buildSchema(schema.replace('{ currency: Currency! }', '{ iso: Currency! }'));
    expect(draftModule(byIso).text).toContain('const currency: string = order.sums.money.iso;');
    await writeFile(join(folder, 'names.graphql'), schema);
    const { file } = await draft('names', '--schema', join(folder, 'names.graphql'));
    const text = await readFile(file, 'utf8');
    expect(text).toMatch(/TYPES: .* = \{ *\}; \/\/ TODO: each value of handover$/m);
    const enumerated = buildSchema(schema.replace('handover: String', 'kind: Kind').concat(' enum Kind { RIDER }'));
    expect(draftModule(enumerated).text).toContain("= { RIDER: 'delivery' };\n");
    const unknown = buildSchema(schema.replace('handover: String', 'kind: Kind').concat(' enum Kind { PICKUP DRONE }'));
    expect(draftModule(unknown).text).toContain(
      "= { PICKUP: 'pickup' }; // TODO: 'delivery', 'pickup' or skip: DRONE\n",
    );
    expect(text).not.toMatch(/billing|club|place\b/);
    const known = await corrected(file, /\{ *\}; \/\/ TODO: each value.*/, "{ COURIER: 'delivery' };");
    const order = {
      uid: 'a',
      shop: { uid: 's', place: { street: 'Ours 1', zip: '1' } },
      customer: { uid: 'c', name: 'Ada', club: true },
      billing: { street: 'Bank 1', zip: '3' },
      drop: { street: 'Road 2', zip: '2', town: 'Ely' },
      lines: [{ uid: 'soup', name: 'Soup', quantity: 2, amount: '4.50' }],
      sums: {
        goods: '9.00',
        vat: '1.00',
        gratuity: '2.00',
        delivery: '3.00',
        discount: '4.00',
        total: '10.00',
        money: { currency: 'GBP' },
      },
      handover: 'COURIER',
    };
    expect((await loadOrderModule({ ORDER_MODULE: known })).toCanonicalOrder({ order })).toMatchObject({
      locationId: 's',
      member: { id: 'c' },
      fulfillment: { type: 'delivery', destination: { line1: 'Road 2', postalCode: '2', city: 'Ely' } },
      items: [{ serviceItemId: 'soup', unitPrice: 450 }],
      money: { subtotal: 900, discount: 400, tax: 100, tip: 200, fee: 300, total: 1000, currency: 'GBP' },
    });
  });
});

describe('platform init --order', () => {
  const PAID = {
    id: 'c-7',
    createdAt: '2026-11-20T10:00:00Z',
    placedAt: '2026-11-20T10:05:00Z',
    state: 'Paid',
    currencyCode: 'EUR',
    customer: { id: '1', firstName: 'Ada', lastName: 'Lovelace', emailAddress: 'ada@example.com' },
    shippingAddress: {
      streetLine1: 'Ring twice 1',
      countryCode: 'DE',
      country: 'Germany',
      phoneNumber: '030 12345678',
    },
    outlet: { id: 'o-3' },
    customFields: { handover: 'DELIVERY' },
    lines: [{ quantity: 2, unitPrice: 1050, unitPriceWithTax: 1249, variant: { id: '9', sku: 'soup', name: 'Soup' } }],
    discounts: [],
    subTotal: 2100,
    subTotalWithTax: 2498,
    shipping: 250,
    shippingWithTax: 297,
    total: 2350,
    totalWithTax: 2795,
    totalTax: 445,
  };
  let cafe: Server;
  let at: Change;
  beforeAll(async () => {
    const file = new URL('../platform/drafts/cafe.graphql', import.meta.url);
    const schema = buildSchema((await readFile(file, 'utf8')).replace('"A whole number of minor units."', ''));
    const coded = (code: string) => new GraphQLError('of Ada Lovelace', { extensions: { code } });
    const rootValue = {
      order: ({ id }: { id: string }, { token }: { token: string }) => {
        if (!/^Bearer (all|some)$/.test(token)) throw coded('FORBIDDEN');
        if (id === 'c-9') throw coded('NOT_FOUND');
        const emailAddress = () => {
          if (token !== 'Bearer some') return PAID.customer.emailAddress;
          throw coded('FORBIDDEN');
        };
        return id === PAID.id ? { ...PAID, customer: { ...PAID.customer, emailAddress } } : null;
      },
    };
    cafe = createServer((request, response) => {
      void (async () => {
        const { query, variables } = (await json(request)) as { query: string; variables?: Record<string, unknown> };
        const contextValue = { token: request.headers.authorization };
        const answer = await graphql({ schema, source: query, variableValues: variables, rootValue, contextValue });
        response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
      })();
    });
    await new Promise<void>((listening) => cafe.listen(0, '127.0.0.1', listening));
    at = { ORDER_API_URL: `http://127.0.0.1:${(cafe.address() as AddressInfo).port}/graphql` };
  });
  afterAll(() => {
    cafe.closeAllConnections();
    cafe.close();
  });
  const init = (name: string, token: string, ...words: string[]) => {
    const file = join(folder, `${name}.ts`);
    const change = { ...env, ...at, ORDER_API_TOKEN: token };
    return { file, ended: runCli(change, ['platform', 'init', '--out', file, ...words]) };
  };

  it('drafts by the values of an order a mapper with which it can be placed, and prints none of them', async () => {
    const { file, ended } = init('paid', 'all', '--order', PAID.id);
    const { code, out, error } = await ended;
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out).toMatch(/^The amounts of this order add up to its total as drafted/m);
    expect(out).toMatch(/^\d+ +is this the id in the POS's menu\? or variant\.id\?$/m);
    expect(`${out}${await readFile(file, 'utf8')}`).not.toMatch(PERSONAL);
    const checked = await check(`${PAID.id} --no-details`, { ...at, ORDER_API_TOKEN: 'all', ORDER_MODULE: file });
    expect(checked.out).toMatch(/^c-7 +can be placed: a delivery at o-3 for 27\.95 EUR$/m);
    expect(checked.out).toMatch(/^\d+ TODOs are left in /m);
  });

  it('drafts errorCode for a platform that answers a wrong token as if it might read other orders', async () => {
    const { file, ended } = init('expired', 'all', '--order', PAID.id);
    await ended;
    const asked = (token: string) => check(PAID.id, { ...at, ORDER_API_TOKEN: token, ORDER_MODULE: file });
    expect((await asked('wrong')).out).toMatch(/denies us access: check ORDER_API_TOKEN/);
    expect((await asked('some')).out).toMatch(/denies us order\.customer\.emailAddress/);
    const doctor = await runCli({ ...env, ...at, ORDER_API_TOKEN: 'wrong', ORDER_MODULE: file }, [
      'doctor',
      '--only',
      'platform',
    ]);
    expect(doctor).toMatchObject({ code: 1, out: expect.stringMatching(/refuses us \(200\)/) });
  });

  it('leaves out a field that the token may not read, and names it', async () => {
    const { file, ended } = init('some', 'some', '--order', PAID.id);
    expect((await ended).out).toMatch(
      /refuses these fields of the order, so they are left out: customer\.emailAddress$/m,
    );
    expect(await readFile(file, 'utf8')).not.toContain('emailAddress');
  });

  it.each([
    ['the platform has no such order', 'none', 'all', 'c-8', 3, /has no order with this id/],
    ['the platform says so by an error', 'none', 'all', 'c-9', 3, /has no order with this id/],
    ['the token is wrong', 'no-token', 'wrong', 'c-7', 1, /The order cannot be fetched\. \S+ answers 200, FORBIDDEN\./],
  ])('writes nothing if %s, and says so', async (_what, name, token, orderId, code, says) => {
    const { file, ended } = init(name, token, '--order', orderId);
    const { code: exit, error } = await ended;
    expect({ exit, error }).toEqual({ exit: code, error: expect.stringMatching(says) });
    expect(error).not.toMatch(PERSONAL);
    await expect(readFile(file)).rejects.toThrow('ENOENT');
  });
});

it.each<[string, Change, string, number, RegExp]>([
  ['the order does not exist', {}, 'B-9999', 3, /^error: The ordering platform has no order with this id/],
  ['the module does not exist', { ORDER_MODULE: './none.ts' }, 'B-1001', 1, /\.\/none\.ts cannot be loaded/],
])('platform check fails with an explanation if %s', async (_what, change, orderId, code, says) => {
  expect(await runRefused(code, { ...env, ...change }, ['platform', 'check', orderId])).toMatch(says);
});

it("platform schema prints the JSON Schema of a mapper's result", async () => {
  const { code, out } = await runCli({}, ['platform', 'schema', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    required: expect.arrayContaining(['serviceOrderId', 'items', 'money']),
    properties: {
      // `taxes` and `fees` may be listed instead of their sums.
      money: { required: ['subtotal', 'tip', 'total', 'currency'], properties: { total: { type: 'integer' } } },
    },
  });
});
