/** What is refused before any route is asked: each answer is a problem, wherever it is refused. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PROBLEMS } from '../../../src/http/problem.ts';
import { OPERATOR_TOKEN, mustBeProblem, sendAsIs } from '../../../world/system/ask-operator.ts';
import { BEHIND_US, fromElsewhere } from '../../../world/network/from-elsewhere.ts';
import { OWN_PAGE, logIn } from '../../../world/system/log-in.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { until } from '../../../world/processes/until.ts';

let stage: Stage;
let url: string;
/** Both doors: where the API is, and what it opens to. */
let doors: { at: string; headers: Record<string, string> }[];

beforeAll(async () => {
  stage = await startStage({ env: { OPERATOR_TOKEN, ...BEHIND_US } });
  url = await stage.listen();
  doors = [
    { at: '/v1', headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } },
    { at: '/console/api', headers: { cookie: await logIn(stage.app), ...OWN_PAGE } },
  ];
});
afterAll(() => stage?.stop());

type Sent = { path?: string; method?: string; headers?: Record<string, string>; body?: string };
const JSON_TYPE = { 'content-type': 'application/json' };
const LARGE = `"${'x'.repeat(64 * 1024)}"`;

it.each([
  ['a path of no route', 404, { path: '/nowhere' }, 'Nothing has this path.'],
  ['the root of the API', 404, { path: '/' }, 'Nothing has this path.'],
  ['a method that the route does not have', 404, { method: 'DELETE', path: '/orders/any' }, 'Nothing has this path.'],
  ['a body to no route', 404, { method: 'POST', path: '/nowhere', headers: JSON_TYPE, body: '{}' }, /path/],
  ['a path that cannot be decoded', 400, { path: '/orders/%zz' }, /Percent-encode/],
  ['a path that ends within a letter', 400, { path: '/orders/%E0%A4%A' }, /Percent-encode/],
  ['no JSON', 400, { method: 'POST', headers: JSON_TYPE, body: '{"outcome":hunter2' }, 'The body is not valid JSON.'],
  ['a prototype in JSON', 400, { method: 'POST', headers: JSON_TYPE, body: '{"__proto__":{"hunter2":1}}' }, /JSON/],
  ['no body', 400, { method: 'POST' }, /The request is not valid/],
  ['an unknown field', 400, { path: '/orders?nobody-knows=hunter2' }, /nobody-knows/],
  ['too large a body', 413, { method: 'POST', headers: JSON_TYPE, body: LARGE }, /at most 64 KiB/],
  ['another type', 415, { method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'hunter2' }, /not JSON/],
  ['an invalid type', 415, { method: 'POST', headers: { 'content-type': 'hunter2' }, body: '{}' }, /not JSON/],
] as const)('%s is answered %i at the API and at the console', async (_what, status, about, detail) => {
  for (const { at, headers } of doors) {
    const { path = '/webhooks/replay', headers: more = {}, ...rest } = about as Sent;
    const answer = await sendAsIs(url, at + path, { ...rest, headers: { ...headers, ...more } });
    mustBeProblem(answer);
    expect(answer.status, at).toBe(status);
    expect(answer.body['detail']).toMatch(detail);
    expect(answer.text).not.toContain('hunter2');
  }
});

it('every path is answered 401 without a token, and 429 after many wrong tokens', async () => {
  for (const path of ['/v1/orders', '/v1/nowhere', '/v1/', '/console/api/orders', '/console/api/nowhere']) {
    const answer = await sendAsIs(stage.app, path, { headers: { ...fromElsewhere(), ...OWN_PAGE } });
    mustBeProblem(answer);
    expect([path, answer.status]).toEqual([path, 401]);
  }
  const headers = { ...fromElsewhere(), authorization: 'Bearer hunter2' };
  await until(async () => {
    const answers = await Promise.all(Array.from({ length: 30 }, () => sendAsIs(stage.app, '/v1/orders', { headers })));
    for (const answer of answers) mustBeProblem(answer);
    return answers.some(({ status }) => status === 429);
  });
});

it('the API is only under /v1, and metrics and the OpenAPI document are outside it', async () => {
  const [{ headers } = { headers: {} }] = doors;
  const statusOf = async (path: string): Promise<number> => (await sendAsIs(stage.app, path, { headers })).status;
  for (const path of ['/orders', '/locations', '/live', '/v1/metrics', '/v1/openapi.json', '/v2/orders']) {
    expect([path, await statusOf(path)]).toEqual([path, 404]);
  }
  for (const path of ['/v1/orders', '/v1/locations', '/metrics', '/openapi.json', '/healthz', '/readyz']) {
    expect([path, await statusOf(path)]).toEqual([path, 200]);
  }
});

it('every problem has a different type', () => {
  const types = Object.values(PROBLEMS).map(({ type }) => type);
  expect(new Set(types).size).toBe(types.length);
});
