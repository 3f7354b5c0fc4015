import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATOR_TOKEN, mustBeProblem, sendAsIs, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { BEHIND_US, fromElsewhere } from '../../../world/network/from-elsewhere.ts';
import { OWN_PAGE } from '../../../world/system/log-in.ts';
import { stageOfTest, startStage, type Stage } from '../../support/operator-stage.ts';

const OF_API = ['/orders', '/orders/any', '/orders/any/live', '/webhooks', '/locations', '/nowhere'].map(
  (path) => `/v1${path}`,
);
const PATHS = [...OF_API, '/metrics', '/openapi.json'];
/** A browser sends it by itself, whoever made the request up. */
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
  it('opens to the token, however the scheme is written', async () => {
    expect((await ask('/v1/orders', `Bearer ${OPERATOR_TOKEN}`)).status).toBe(200);
    expect((await ask('/v1/orders', `bearer  ${OPERATOR_TOKEN}`)).status).toBe(200);
  });

  it.each([
    ['no token', undefined],
    ['another of the same length', `Bearer ${OPERATOR_TOKEN.replace(/.$/, '!')}`],
    ['its beginning', `Bearer ${OPERATOR_TOKEN.slice(0, -1)}`],
    ['more than it', `Bearer ${OPERATOR_TOKEN}x`],
    ['an empty one', 'Bearer '],
    ['twice', `Bearer ${OPERATOR_TOKEN}, Bearer ${OPERATOR_TOKEN}`],
    ['without a scheme', OPERATOR_TOKEN],
    ['under another scheme', `Token ${OPERATOR_TOKEN}`],
    ['as Basic', BASIC],
    ['a megabyte less a bit', `Bearer ${'x'.repeat(15_000)}`],
  ])('is shut to %s: the same 401 for all', async (_what, authorization) => {
    for (const path of PATHS) {
      const answer = await ask(path, authorization);
      expect(answer).toMatchObject({ status: 401, body: { detail: 'The operator token is missing or not valid.' } });
      mustBeProblem(answer);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="expediter"');
    }
  });

  it('does not take the token from the URL, where logs of others would have it', async () => {
    for (const query of [`token=${OPERATOR_TOKEN}`, `access_token=${OPERATOR_TOKEN}`]) {
      expect((await ask(`/v1/orders?${query}`)).status).toBe(401);
    }
    expect(stage.logged.join('')).not.toContain(OPERATOR_TOKEN);
  });

  it('does nothing for Basic', async () => {
    expect((await ask('/v1/locations/club-1/pause', BASIC, 'POST')).status).toBe(401);
    expect((await stage.query('SELECT paused_at FROM locations'))[0]).toEqual({ paused_at: null });
  });

  it('is not kept by a cache between', async () => {
    for (const path of PATHS.filter((each) => !each.startsWith('/v1/orders/'))) {
      expect((await ask(path, `Bearer ${OPERATOR_TOKEN}`)).headers.get('cache-control')).toBe('no-store');
    }
  });
});

it('without OPERATOR_TOKEN there is neither API nor console, whatever is sent there', async () => {
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
