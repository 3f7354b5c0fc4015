import { afterAll, beforeAll, expect, it } from 'vitest';
import { findTooMuch } from '../../../src/http/operator/bound-bodies.ts';
import { OPERATOR_TOKEN, askOperator, type Operator, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { nameToken } from '../../../world/system/log-in.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';

const KIB = 1024;
let stage: Stage;
let operator: Operator;
beforeAll(async () => {
  stage = await startStage({ env: { OPERATOR_TOKEN } });
  operator = await askOperator(stage.app);
});
afterAll(() => stage?.stop());

const mapOf = (bytes: number): Record<string, string> =>
  Object.fromEntries(
    Array.from({ length: Math.floor(bytes / 46) }, (_, nth) => [
      `item-${String(nth).padStart(15, '0')}`,
      `p-${String(nth).padStart(18, '0')}`,
    ]),
  );
const put = (settings: unknown, as = operator): Promise<OperatorAnswer> =>
  as.send('PUT', '/locations/mine?dryRun=true', { integration: 'deliverect', settings });
const RIGHT = {
  baseUrl: 'https://api.deliverect.example',
  channelName: 'expediter',
  channelLinkId: 'link',
  clientId: 'id',
  clientSecret: 'secret',
  hmacSecret: 'hmac',
};

it.each([
  ['no values', 'accepted', '[]'],
  ['32 levels', 'accepted', '['.repeat(32) + ']'.repeat(32)],
  ['33 levels of lists', 'refused', '['.repeat(33)],
  ['33 levels of objects', 'refused', '{"a":'.repeat(33)],
  ['brackets in a text', 'accepted', `["${'['.repeat(100)}\\"${'{,'.repeat(20_000)}"]`],
  ['40 levels after an escaped backslash', 'refused', `["\\\\",${'['.repeat(40)}`],
  ['10,001 values', 'accepted', `[${'1,'.repeat(10_000)}1]`],
  ['10,002 values', 'refused', `[${'1,'.repeat(10_001)}1]`],
])('a JSON text with %s is %s before it is parsed', (_what, result, json) => {
  expect(findTooMuch(json) === undefined ? 'accepted' : 'refused').toBe(result);
});

const MORE = { itemMap: mapOf(9 * KIB) };

it('a body over 64 KiB, or over 256 KiB with an item map, is answered 413', async () => {
  const statusOf = async (settings: object): Promise<number> => (await put({ ...RIGHT, ...settings })).status;
  expect(await statusOf({ itemMap: mapOf(240 * KIB) })).toBe(200);
  expect(await statusOf({ itemMap: mapOf(260 * KIB) })).toBe(413);
  expect(await statusOf({ itemMap: mapOf(70 * KIB), more: 'x'.repeat(64 * KIB) })).toBe(413);
  const { status, body } = await put({ ...RIGHT, more: 'x'.repeat(64 * KIB) });
  expect([status, body['detail']]).toEqual([
    413,
    expect.stringContaining('at most 64 KiB, and 256 KiB with an item map'),
  ]);
});

it('a body with a hundred thousand nested lists is answered 400 before it is parsed', async () => {
  const deep = `{"integration":"deliverect","settings":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`;
  const { status, body } = await operator.send('PUT', '/locations/mine?dryRun=true', deep);
  expect([status, body['detail']]).toEqual([400, 'The body has more than 32 levels or 10000 values.']);
});

it('large bodies are handled one at a time, and callers take turns', async () => {
  const other = await askOperator(stage.app, await nameToken(stage, 'other', ['integrator']));
  const answered: string[] = [];
  const send = async (as: Operator, name: string, settings: object): Promise<void> => {
    const { status } = await put({ ...RIGHT, ...settings }, as);
    answered.push(`${name} ${status}`);
  };
  const large = Array.from({ length: 4 }, () => send(operator, 'one', MORE));
  // It waits for none of them.
  await send(operator, 'small', {});
  expect(answered.filter((each) => each === 'one 200').length).toBeLessThan(3);
  await Promise.all([...large, send(other, 'other', MORE)]);
  expect(answered.toSorted()).toEqual([...Array.from({ length: 4 }, () => 'one 200'), 'other 200', 'small 200']);
  expect(answered.at(-1)).toBe('one 200');
});
