import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATOR_TOKEN, mustBeProblem, sendAsIs, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { BEHIND_US, fromElsewhere } from '../../../world/network/from-elsewhere.ts';
import { OWN_PAGE } from '../../../world/system/log-in.ts';
import { stageOfTest, startStage, type Stage } from '../../support/operator-stage.ts';

const OF_API = ['/orders', '/orders/any', '/orders/any/live', '/webhooks', '/locations', '/nowhere'].map(
  (path) => `/v1${path}`,
);
const PATHS = [...OF_API, '/metrics', '/openapi.json'];
/** A browser sends it automatically, even if another page made the request. */
const BASIC = `Basic ${Buffer.from(`anybody:${OPERATOR_TOKEN}`).toString('base64')}`;

let stage: Stage;

beforeAll(async () => {
  stage = await startStage({ env: { OPERATOR_TOKEN, ...BEHIND_US } });
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterAll(() => stage?.stop());

const ask = (path: string, authorization?: string, method = 'GET'): Promise<OperatorAnswer> =>
  sendAsIs(stage.app, path, {
    method,
    headers: { ...fromElsewhere(), ...(authorization !== undefined && { authorization }) },
  });

describe('the operator API', () => {
  it('accepts the scheme Bearer in upper and lower case', async () => {
    expect((await ask('/v1/orders', `Bearer ${OPERATOR_TOKEN}`)).status).toBe(200);
    expect((await ask('/v1/orders', `bearer  ${OPERATOR_TOKEN}`)).status).toBe(200);
  });

  it.each([
    ['no token', undefined],
    ['another token of the same length', `Bearer ${OPERATOR_TOKEN.replace(/.$/, '!')}`],
    ['only the beginning of the token', `Bearer ${OPERATOR_TOKEN.slice(0, -1)}`],
    ['the token and another letter', `Bearer ${OPERATOR_TOKEN}x`],
    ['an empty token', 'Bearer '],
    ['the token twice', `Bearer ${OPERATOR_TOKEN}, Bearer ${OPERATOR_TOKEN}`],
    ['the token without a scheme', OPERATOR_TOKEN],
    ['the token with another scheme', `Token ${OPERATOR_TOKEN}`],
    ['the token with Basic', BASIC],
    ['a token of 15,000 characters', `Bearer ${'x'.repeat(15_000)}`],
  ])('refuses %s with 401', async (_what, authorization) => {
    for (const path of PATHS) {
      const answer = await ask(path, authorization);
      expect(answer).toMatchObject({ status: 401, body: { detail: 'The operator token is missing or not valid.' } });
      mustBeProblem(answer);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="expediter"');
    }
  });

  it('answers 401 to a token in the URL, because other services log URLs', async () => {
    for (const query of [`token=${OPERATOR_TOKEN}`, `access_token=${OPERATOR_TOKEN}`]) {
      expect((await ask(`/v1/orders?${query}`)).status).toBe(401);
    }
    expect(stage.logged.join('')).not.toContain(OPERATOR_TOKEN);
  });

  it('answers 401 to a change with Basic, and changes nothing', async () => {
    expect((await ask('/v1/locations/club-1/pause', BASIC, 'POST')).status).toBe(401);
    expect((await stage.query('SELECT paused_at FROM locations'))[0]).toEqual({ paused_at: null });
  });

  it('forbids caches to store its answers', async () => {
    for (const path of PATHS.filter((each) => !each.startsWith('/v1/orders/'))) {
      expect((await ask(path, `Bearer ${OPERATOR_TOKEN}`)).headers.get('cache-control')).toBe('no-store');
    }
  });
});

it('without OPERATOR_TOKEN, the API and the console answer 404', async () => {
  const closed = await stageOfTest({ env: {}, databaseUrl: stage.databaseUrl });
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}`, ...OWN_PAGE };
  const ofConsole = ['', '/', '/orders/x', '/session', '/api/orders', '/%zz'].map((path) => `/console${path}`);
  for (const path of [...PATHS, '/v1/orders/any/retry', ...ofConsole]) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const { status } = await sendAsIs(closed.app, path, { method, headers });
      expect(status, `${method} ${path}`).toBe(path.endsWith('%zz') ? 401 : 404);
    }
  }
});
