/** SECURITY.md says what each role reaches at worst. Here each row is tried with a token of this role at one group. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ROLES, type Role } from '../../../src/core/operators/operator.ts';
import { OPERATOR_TOKEN, askOperator, sendAsIs, type Operator } from '../../../world/system/ask-operator.ts';
import { nameToken } from '../../../world/system/log-in.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { read } from '../../support/read-project.ts';

const LED_ELSEWHERE = { baseUrl: 'https://evil.example' };
const RESTAURANT = '00000000-0000-4000-8000-000000000001';
const CONTACT = { name: 'Me', email: 'me@evil.example', via: 'email' };
const toast = (restaurantGuid: string): object => ({
  baseUrl: 'https://toast.example.com',
  clientId: 'an id',
  clientSecret: 'hunter2-hunter2',
  restaurantGuid,
  webhookSecret: 'hunter3-hunter3',
  diningOptionGuids: { pickup: RESTAURANT, delivery: RESTAURANT },
});

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({ env: { OPERATOR_TOKEN, PUBLIC_URL: 'https://expediter.example' } });
  const all = await askOperator(stage.app);
  for (const [id, groups] of [
    ['ours:1', ['ours']],
    ['theirs:1', ['theirs']],
  ] as const) {
    const settings = toast(id === 'ours:1' ? RESTAURANT.replace('1', '2') : RESTAURANT);
    expect((await all.send('PUT', `/locations/${id}`, { integration: 'toast', settings, groups })).status).toBe(201);
    const contents = sampleOrder({ serviceOrderId: `order of ${id}`, locationId: id });
    await stage.seedOrder({ serviceOrderId: contents.serviceOrderId, locationId: id, contents });
  }
});
afterAll(() => stage?.stop());

type Try = readonly [method: string, path: string, body?: unknown];
const [GET, POST, PUT, PATCH] = ['GET', 'POST', 'PUT', 'PATCH'] as const;
const ORDER = '/orders/order%20of%20ours%3A1';
const MEMBER: Try = [GET, `${ORDER}?contents=true`];
const AUDIT: Try = [GET, '/audit'];
const PAUSE: Try = [POST, '/locations/ours:1/pause'];
const TOKEN: Try = [POST, '/locations/ours:1/tokens', { label: 'mine' }];
const change = (body: object): Try => [PATCH, '/locations/ours:1', body];
const grant = (at: string): Try => [
  POST,
  '/operators/grants',
  { email: 'me@evil.example', roles: ['member-data'], locationGroups: [at] },
];
const ERASE: Try = [POST, '/members/erase', { memberId: 'member-1', dryRun: true }];

/** What a row of the table says, as requests: those that are answered, and those that are refused. */
const ROWS: Record<Exclude<Role, 'metrics'>, { can: readonly Try[]; cannot: readonly Try[] }> = {
  viewer: {
    can: [
      [GET, ORDER],
      [GET, '/webhooks'],
      [GET, '/locations/ours:1'],
    ],
    cannot: [PAUSE, MEMBER, AUDIT],
  },
  operator: {
    can: [PAUSE, [POST, '/locations/ours:1/resume']],
    cannot: [MEMBER, change({ settings: LED_ELSEWHERE }), change({ contacts: [CONTACT] }), TOKEN],
  },
  'member-data': { can: [MEMBER], cannot: [PAUSE, ERASE, AUDIT] },
  integrator: {
    can: [change({ settings: { ...LED_ELSEWHERE, clientId: 'x', clientSecret: 'x', webhookSecret: 'x' } }), TOKEN],
    cannot: [
      [GET, ORDER],
      change({ settings: LED_ELSEWHERE }),
      change({ settings: { restaurantGuid: RESTAURANT, clientId: 'x', clientSecret: 'x', webhookSecret: 'x' } }),
      [PUT, '/locations/ours:2', { integration: 'toast', settings: toast(RESTAURANT), groups: ['ours'] }],
      change({ contacts: [CONTACT] }),
      [GET, '/applications'],
    ],
  },
  admin: { can: [grant('ours'), AUDIT], cannot: [grant('theirs'), [POST, '/doctor', {}]] },
};

it('the table of SECURITY.md has a row for each role', () => {
  const rows = [...read('SECURITY.md').matchAll(/^\| `([a-z-]+)` +\|/gm)];
  expect(rows.map(([, role]) => role)).toEqual(ROLES);
});

it.each(Object.entries(ROWS))(
  '%s at a group can do exactly what its row in SECURITY.md says',
  async (role, { can, cannot }) => {
    const token = await nameToken(stage, `a ${role}`, [role], [], ['ours']);
    const operator: Operator = await askOperator(stage.app, token);
    for (const [method, path, body] of cannot) {
      const { status, text } = await operator.send(method, path, body);
      expect([400, 403, 404], `${method} ${path}: ${status} ${text}`).toContain(status);
      expect(text).not.toMatch(/hunter|lovelace/i);
    }
    for (const [method, path, body] of can) {
      const { status, text } = await operator.send(method, path, body);
      expect([200, 201], `${method} ${path}: ${status} ${text}`).toContain(status);
      expect(text).not.toContain('hunter');
    }
    const elsewhere = async (path: string): Promise<unknown> => {
      const { status, body } = await operator.get(path);
      return [status, body['detail']];
    };
    expect(await elsewhere('/locations/theirs:1')).toEqual(await elsewhere('/locations/nowhere'));
    expect(await elsewhere('/orders/order%20of%20theirs%3A1')).toEqual(await elsewhere('/orders/nowhere'));
  },
);

it('an operator with the role `metrics` can read only /metrics', async () => {
  const headers = { authorization: `Bearer ${await nameToken(stage, 'prometheus', ['metrics'])}` };
  const answers = ['/metrics', '/openapi.json', '/v1/locations', `/v1${ORDER}`].map(async (path) => {
    const { status, text } = await sendAsIs(stage.app, path, { headers });
    expect(text).not.toMatch(/ours|theirs/);
    return status;
  });
  expect(await Promise.all(answers)).toEqual([200, 403, 403, 404]);
});
