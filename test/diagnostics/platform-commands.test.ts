/** `expediter platform`, against a platform with another schema than ours. */
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { API_KEY, servePlatform } from '../../examples/platform-mapper/serve-platform.ts';
import { runCli } from '../support/run-cli.ts';

/** What tells of the members of the sample purchases. */
const PERSONAL = /Ada|Lovelace|ada@|12345678|Murasaki|Jingumae|Ring twice|terrace|cold, please/;

let feast: Awaited<ReturnType<typeof servePlatform>>;
let folder: string;
let env: Record<string, string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'platform-'));
  // Away from this project: nothing of ours is beside it, and Node has to find `expediter-platform` all the same.
  await cp(fileURLToPath(new URL('../../examples/platform-mapper', import.meta.url)), folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{"type": "module"}');
  feast = await servePlatform();
  env = { ORDER_API_URL: feast.url, ORDER_API_TOKEN: API_KEY, ORDER_MODULE: join(folder, 'map-order.ts') };
});
afterAll(async () => {
  await feast.stop();
  await rm(folder, { recursive: true });
});

async function moduleOf(name: string, text: string): Promise<string> {
  const path = join(folder, `${name}.ts`);
  await writeFile(path, `export * from './map-order.ts';\n${text}`);
  return path;
}

it('prints the canonical order of one of the platform, masked, and the shape of the answer', async () => {
  const { code, out, error } = await runCli(env, ['platform', 'check', 'B-1001']);
  expect({ code, error }).toEqual({ code: 0, error: '' });
  expect(out).toMatch(/^It can be placed, as this order:\n/);
  expect(out).toContain('"name": "(12 characters)"');
  expect(out).toContain('"total": 3660');
  expect(out).not.toMatch(/add up|would refuse/);
  expect(out).toMatch(/^purchase\.positions +list of 2$/m);
  expect(out).toMatch(/^purchase\.totals\.goods +text like 00\.00$/m);
  expect(out).toMatch(/^purchase\.handover +text in capitals$/m);
  expect(out).not.toMatch(PERSONAL);

  const json = await runCli(env, ['platform', 'check', 'T-2001', '--json']);
  expect(JSON.parse(json.out)).toMatchObject({ state: 'ok', order: { locationId: 'feast-tokyo' }, leftOut: [] });
  expect(json.out).not.toMatch(PERSONAL);
});

it('tells of the member where that is asked for', async () => {
  const { out } = await runCli(env, ['platform', 'check', 'B-1001', '--reveal']);
  expect(out).toContain('"name": "Ada Lovelace"');
  expect(out).toContain('"phone": "+493012345678"');
});

it('tells every fault in a sentence, and exits 1', async () => {
  const wrong = `import { toCanonicalOrder as map } from './map-order.ts';
    export function toCanonicalOrder(data) {
      const { items, ...order } = map(data);
      return { ...order, money: { ...order.money, total: '36.60', tip: null }, placedAt: 'yesterday' };
    }`;
  const module = { ...env, ORDER_MODULE: await moduleOf('wrong', wrong) };
  const { code, out, error } = await runCli(module, ['platform', 'check', 'B-1001']);
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

it('tells where a mapper threw, and what it said only where that is asked for', async () => {
  const throwing = `export function toCanonicalOrder({ purchase }) {
    throw new TypeError('not ' + purchase.customer.firstName);
  }`;
  const module = { ...env, ORDER_MODULE: await moduleOf('throwing', throwing) };
  const { code, out } = await runCli(module, ['platform', 'check', 'B-1001']);
  expect({ code, out }).toEqual({
    code: 1,
    out: expect.stringMatching(/^It cannot be placed: the mapper of ORDER_MODULE threw TypeError at throwing\.ts:3\n/),
  });
  expect(out).toContain('Add --reveal to print the whole error.');
  expect(out).not.toMatch(PERSONAL);
  const revealed = await runCli(module, ['platform', 'check', 'B-1001', '--reveal']);
  expect(revealed.out).toContain('TypeError: not Ada');
  expect(revealed.out).not.toContain('--reveal');

  // A query's variables are the mapper's, too.
  const variables = "export const variables = (id) => { throw new RangeError('no ' + id); };";
  const early = { ...env, ORDER_MODULE: await moduleOf('early', variables) };
  expect((await runCli(early, ['platform', 'check', 'B-1001', '--reveal'])).out).toContain('RangeError: no B-1001');
});

it("tells the platform's errors by their codes, and what they say only where that is asked for", async () => {
  const refused = { ...env, ORDER_API_TOKEN: 'x' };
  const { code, out } = await runCli(refused, ['platform', 'check', 'B-1001']);
  expect(code).toBe(1);
  expect(out).toMatch(/^It cannot be placed: the ordering platform denies us access/);
  expect(out).toMatch(/^extensions\.code +judged by$/m);
  expect(out).toMatch(/^WRONG_KEY +UNAUTHENTICATED$/m);
  expect(out).not.toContain('which key?');
  expect((await runCli(refused, ['platform', 'check', 'B-1001', '--reveal'])).out).toContain('which key?');
  const json = await runCli(refused, ['platform', 'check', 'B-1001', '--json']);
  const { errors } = JSON.parse(json.out) as { errors: unknown };
  expect(errors).toEqual([{ code: 'WRONG_KEY', judgedBy: 'UNAUTHENTICATED' }]);

  const throwing = await moduleOf('odd-errors', `export const errorCode = () => { throw new Error('of Ada'); };`);
  const { error } = await runCli({ ...refused, ORDER_MODULE: throwing }, ['platform', 'check', 'B-1001']);
  expect(error).toMatch(/^warning: the mapper of ORDER_MODULE threw Error at odd-errors\.ts:2: /);
});

it('tells what was left out, which sums do not add up and which POS systems would refuse it', async () => {
  const odd = `import { toCanonicalOrder as map } from './map-order.ts';
    export const toCanonicalOrder = (data) => {
      const order = map(data);
      const money = { ...order.money, subtotal: order.money.subtotal - 100 };
      return { ...order, member: { ...order.member, phone: 'by the door' }, money };
    };`;
  const module = { ...env, ORDER_MODULE: await moduleOf('odd', odd) };
  const { code, out } = await runCli(module, ['platform', 'check', 'B-1001']);
  expect(code).toBe(0);
  expect(out).toMatch(/^member\.phone +phone_unusable$/m);
  expect(out).toContain(`
money.subtotal is 32.60 EUR, but the items with their modifiers add up to 33.60 EUR
money.total is 36.60 EUR, and subtotal, tip and fee add up to 35.60 EUR, 40.96 EUR with the tax
`);
  expect(out).toMatch(/^toast +Toast would refuse the order: member\.phone is missing$/m);
  expect(out).not.toMatch(/^(standard|square|hubrise|lightspeed-k|deliverect) /m);
});

it.each<[string, Record<string, string>, string, object]>([
  [
    'there is no such order',
    {},
    'B-9999',
    { code: 3, error: 'error: The ordering platform has no order with this id.\n' },
  ],
  ['nobody is there', { ORDER_API_URL: 'http://127.0.0.1:9/' }, 'B-1001', { code: 1, out: /gave no usable answer/ }],
  [
    'both are set',
    { ORDER_QUERY_FILE: '/q' },
    'B-1001',
    { code: 1, error: /ORDER_MODULE: is set, and so is ORDER_QUERY_/ },
  ],
  [
    'the module is not there',
    { ORDER_MODULE: './none.ts' },
    'B-1001',
    { code: 1, error: /\.\/none\.ts cannot be loaded/ },
  ],
])('says so where %s', async (_what, change, orderId, ended) => {
  const expected = Object.fromEntries(
    Object.entries(ended).map(([key, each]) => [key, each instanceof RegExp ? expect.stringMatching(each) : each]),
  );
  expect(await runCli({ ...env, ...change }, ['platform', 'check', orderId])).toMatchObject(expected);
});

it('prints the JSON Schema of what a mapper makes', async () => {
  const { code, out } = await runCli({}, ['platform', 'schema', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    required: expect.arrayContaining(['serviceOrderId', 'items', 'money']),
    properties: { money: { properties: { total: { type: 'integer' } } } },
  });
});
