/** What holds for every operation, through the API and the command line. What each does is claimed where that is tested. */
import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { uuidV7 } from '../../src/core/domain/uuid-v7.ts';
import { ROLES, type Role } from '../../src/core/operators/operator.ts';
import { perform, type Caller, type Operation, type Options } from '../../src/operators/operation.ts';
import { OPERATIONS } from '../../src/operators/registry.ts';
import {
  OPERATOR_TOKEN,
  askOperator,
  mustBeProblem,
  sendAsIs,
  type Operator,
  type OperatorAnswer,
} from '../../world/system/ask-operator.ts';
import { OWN_PAGE, logIn, nameToken } from '../../world/system/log-in.ts';
import { startStage, type Stage } from '../support/operator-stage.ts';
import { runCli } from '../support/run-cli.ts';
import type { Ended } from '../../world/processes/run-program.ts';

const IDS = [
  'serviceOrderId',
  'webhookId',
  'locationId',
  'tokenId',
  'sessionId',
  'grantId',
  'integration',
  'name',
] as const;
type Ids = Record<(typeof IDS)[number], string>;
type Args = (ids: Ids) => string[];
/** A right input, without the ids in the path; and what is typed for it behind the command's name. */
/** `refused`: the location's POS does not offer it. `code`: its exit code. */
type Row = { input?: Options; args?: Args; stdin?: string; refused?: true; code?: 1 };

const LOCATION = 'club-1';
const GIVEN = { roles: ['viewer'], locations: [LOCATION] };
const RIGHT = ['--role', 'viewer', '--locations', LOCATION];
const SETTINGS = { ordersUrl: 'http://127.0.0.1:9/orders', unsigned: true };
const APPLICATION = { baseUrl: 'https://toast.example.com', clientId: 'an id', clientSecret: 'a secret' };
const ofOrder =
  (...more: string[]): Args =>
  (ids) => [ids.serviceOrderId, ...more];
const ofLocation: Args = (ids) => [ids.locationId];

const ROWS: Record<string, Row> = {
  listOrders: { args: () => [] },
  search: { input: { q: 'order-1' }, args: () => ['order-1'] },
  searchByBody: { input: { q: 'order-1' } },
  searchMember: { input: { text: 'member-9' } },
  showOrder: { args: ofOrder() },
  retryOrder: { args: ofOrder() },
  resolveOrder: { input: { there: true, providerOrderId: '8F2K' }, args: ofOrder('--there', '--pos-id', '8F2K') },
  cancelOrder: { args: ofOrder() },
  concludeCancel: { input: { cancelled: false } },
  answerChange: { input: { answer: 'done' }, args: ofOrder('--change', 'done') },
  showLive: { args: () => [] },
  resumeLive: { args: () => [] },
  resendLive: { input: { since: '2027-01-31T18:00:00Z' }, args: () => ['--since', '2027-01-31T18:00:00Z'] },
  takeOrderCase: { input: { to: 'not admin' }, args: ofOrder('--to', 'Not admin') },
  listOrderPeople: {},
  closeOrderCase: { input: { note: 'printed again' }, args: ofOrder('--note', 'printed again') },
  noteOrder: { input: { text: 'calls back' }, args: ofOrder('--text', 'calls back') },
  snoozeOrder: { input: { minutes: 30 }, args: ofOrder('--for', '30m') },
  takeLocationCase: { args: ofLocation },
  listLocationPeople: {},
  closeLocationCase: { args: ofLocation },
  noteLocation: { input: { text: 'calls back' }, args: ({ locationId }) => [locationId, '--text', 'calls back'] },
  snoozeLocation: { input: { minutes: 0 }, args: ({ locationId }) => [locationId, '--end'] },
  listWebhooks: { args: () => [] },
  showWebhook: { args: (ids) => [ids.webhookId] },
  replayWebhook: { input: { dryRun: false }, args: (ids) => [ids.webhookId] },
  replayWebhooks: { input: { outcome: 'dropped', dryRun: false } },
  listLocations: { args: () => [] },
  showLocation: { args: ofLocation },
  putLocation: {
    input: { integration: 'standard', settings: SETTINGS, dryRun: false },
    args: () => ['--location', LOCATION, '--integration', 'standard', '--settings', '-'],
    stdin: JSON.stringify(SETTINGS),
  },
  changeLocation: { input: { name: 'Club', dryRun: false }, args: ({ locationId }) => [locationId, '--name', 'Club'] },
  checkLocation: { args: ofLocation },
  connectLocation: { args: ofLocation },
  makeConnectLink: { args: ofLocation, refused: true, code: 1 },
  disconnectLocation: { args: ofLocation, refused: true, code: 1 },
  testOrder: { input: { itemId: 'pizza' }, args: ofLocation, code: 1 },
  pauseLocation: { input: { minutes: 30 }, args: ({ locationId }) => [locationId, '--for', '30m'] },
  resumeLocation: { args: ofLocation },
  listAvailability: { args: () => [] },
  showAvailability: {},
  makeBusy: {
    input: { extraMinutes: 20, minutes: 60 },
    args: ({ locationId }) => [locationId, '--extra-minutes', '20', '--for', '1h'],
  },
  endBusy: { args: ofLocation },
  testContacts: { args: ofLocation },
  removeLocation: {
    input: { locationId: 'empty', dryRun: false },
    args: ({ locationId }) => [locationId === LOCATION ? 'empty' : locationId],
  },
  listApplications: { args: () => [] },
  putApplication: {
    input: { integration: 'toast', settings: APPLICATION },
    args: ({ name }) => [name, '--integration', 'toast', '--settings', '-'],
    stdin: JSON.stringify(APPLICATION),
  },
  removeApplication: { args: (ids) => [ids.name] },
  adoptApplications: { input: { dryRun: false }, args: () => [] },
  issueSignalToken: { input: { kind: 'plain', label: 'app' }, args: () => ['--label', 'app'] },
  listSignalTokens: { args: () => [] },
  revokeSignalToken: { args: (ids) => [ids.tokenId] },
  issueToken: { input: { label: 'till' }, args: ({ locationId }) => ['--location', locationId] },
  listTokens: { args: () => [] },
  revokeToken: { args: (ids) => [ids.tokenId] },
  listProviders: { args: () => [] },
  showProvider: { args: (ids) => [ids.integration] },
  eraseMember: { input: { memberId: 'member-9', dryRun: false }, args: () => ['member-9'] },
  listSessions: { args: () => [] },
  revokeSession: { args: (ids) => [ids.sessionId] },
  listOperatorTokens: { args: () => [] },
  issueOperatorToken: { input: { ...GIVEN, name: 'new' }, args: () => ['--name', 'new', ...RIGHT] },
  revokeOperatorToken: { args: (ids) => [ids.tokenId] },
  listOperatorGrants: { args: () => [] },
  addOperatorGrant: { input: { ...GIVEN, group: 'new' }, args: () => ['--group', 'new', ...RIGHT] },
  removeOperatorGrant: { args: (ids) => [ids.grantId] },
  listAuthors: {},
  readAudit: { args: () => [] },
  readTraffic: {},
  readScorecards: {},
  readSpill: {},
  certifyLocation: { args: () => ['--location', LOCATION], code: 1 },
  examineDeployment: { input: { only: ['environment'] } },
};
const NEEDS_NO_BODY =
  /^(replayWebhook|issueToken|issueSignalToken|testOrder|certifyLocation|examineDeployment|pauseLocation|(take|close)\w+Case|adoptApplications)$/;
/** What is given and taken is written down at each of its locations as well. */
const isOfRights = ({ access: { does = '' } }: Operation): boolean => /^(issue|revoke) token$| roles$/.test(does);
/** The person who types it may have meant the secret that belongs to it. */
const SECRET = 'exo_hunter2-hunter2-hunter2';

let stage: Stage;
let admin: Operator;
/** Has every role, where nothing of what is asked about is. */
let elsewhere: Operator;
let ids: Ids;
/** The cookie of an admin at the console. */
let session: string;
const without = new Map<Role | 'both', Operator>();

beforeAll(async () => {
  stage = await startStage({ env: { OPERATOR_TOKEN, PUBLIC_URL: 'http://127.0.0.1:9' } });
  for (const id of [LOCATION, 'club-2']) await stage.addLocation(id, { ordersUrl: 'http://127.0.0.1:9/orders' });
  await stage.seedOrder({ serviceOrderId: 'order-1', locationId: LOCATION });
  admin = await askOperator(stage.app);
  session = await logIn(stage.app);
  elsewhere = await askOperator(stage.app, await nameToken(stage, 'elsewhere', [...ROLES], ['club-2']));
  for (const role of [...ROLES, 'both'] as const) {
    const others = ROLES.filter((each) => (role === 'both' ? !/operator|integrator/.test(each) : each !== role));
    without.set(role, await askOperator(stage.app, await nameToken(stage, `not ${role}`, others, null)));
  }
  const { body } = await stage.post(await stage.webhookPath(LOCATION), 'no status');
  const [token] = await stage.query('SELECT token_id FROM webhook_tokens');
  ids = {
    serviceOrderId: 'order-1',
    webhookId: String(body['webhookId']),
    locationId: LOCATION,
    tokenId: String(token?.['token_id']),
    sessionId: randomUUID(),
    grantId: randomUUID(),
    integration: 'standard',
    name: 'toast-us',
  };
});
afterAll(() => stage?.stop());

/** Everything is there, as each operation needs it. */
async function prepare({ id }: Operation): Promise<void> {
  const state = id === 'resolveOrder' ? 'in_doubt' : id === 'concludeCancel' ? 'sent' : 'waiting';
  await stage.query(
    `WITH o AS (UPDATE orders SET ended_at = NULL, change = 'not_applied', changed_at = now()), l AS (UPDATE locations SET paused_at = NULL),
          c AS (DELETE FROM cancellations), a AS (UPDATE audit SET at = at - interval '1 h' WHERE action = 'test contacts'), g AS (DELETE FROM operator_grants),
          t AS (DELETE FROM operator_tokens WHERE name IN ('new', 'old'))
     UPDATE placements SET state = $1, deadline_at = now() + interval '1 h',
                           finished_at = CASE $1 WHEN 'sent' THEN now() END,
                           next_attempt_at = CASE $1 WHEN 'waiting' THEN now() ELSE 'infinity' END`,
    [state],
  );
  if (id === 'concludeCancel') {
    await stage.query(
      `INSERT INTO cancellations (service_order_id, location_id, requested_by, state, deadline_at, next_attempt_at)
       VALUES ('order-1', $1, 'platform', 'by_phone', now(), 'infinity')`,
      [LOCATION],
    );
  }
  await stage.query(
    `WITH t AS (INSERT INTO operator_tokens (token_id, sha256, name, roles, locations) VALUES ($1, '\\x00', 'old', '{viewer}', $4)),
          g AS (INSERT INTO operator_grants (grant_id, group_name, roles, locations) VALUES ($2, 'old', '{viewer}', $4))
     INSERT INTO operator_sessions (session_id, sha256, kind, actor_id, name, expires_at)
     VALUES ($3, '\\x00', 'person', 'anna', 'Anna', now() + interval '1 h') ON CONFLICT DO NOTHING`,
    [ids.tokenId, ids.grantId, ids.sessionId, [LOCATION]],
  );
  await stage.query(
    `INSERT INTO signal_tokens (token_id, sha256, kind) VALUES ($1, '\\x00', 'plain') ON CONFLICT DO NOTHING`,
    [ids.tokenId],
  );
  await stage.query(`INSERT INTO applications VALUES ('toast-us', 'toast', '') ON CONFLICT DO NOTHING`);
  await stage.addLocation('empty', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await stage.query(`UPDATE locations SET paused_at = now() WHERE location_id = 'empty'`);
}

const rowOf = ({ id }: Operation): Row => ROWS[id] ?? expect.fail(`say of ${id} what it is asked with`);
const shapeOf = (shape: z.ZodType | undefined): z.ZodRawShape => (shape as z.ZodObject | undefined)?.shape ?? {};

/** Asks a route with an input. The schemas say where each field goes. What is in none of them goes into the body. */
function ask(by: Operator, { api, params, query, body }: Operation, input: Options): Promise<OperatorAnswer> {
  const [method = '', path = ''] = api?.route.split(' ') ?? [];
  const inPath = path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(input[name])));
  const asked = Object.entries(input).filter(([name]) => !(name in shapeOf(params)));
  const inQuery = asked.filter(([name]) => body === undefined || name in shapeOf(query));
  const search = new URLSearchParams(
    inQuery.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  const inBody = Object.fromEntries(asked.filter((each) => !inQuery.includes(each)));
  return by.send(method, search === '' ? inPath : `${inPath}?${search}`, body && inBody);
}
function type({ command }: Operation, args: readonly string[], stdin = ''): Promise<Ended> {
  return runCli(stage.env, [...(command?.name.split(' ') ?? []), ...args], stdin);
}

type Written = { action: string; by: string; outcome: string; subject: string | null; request: string | null };
/** What a piece of work writes into the audit, and how often it wakes the workers. */
async function effectOf(work: () => Promise<unknown>): Promise<{ written: Written[]; woken: number }> {
  const [before] = await stage.query('SELECT coalesce(max(audit_id), 0) AS id FROM audit');
  const woken = stage.woken();
  await work();
  const written = await stage.query(
    `SELECT action, actor_name AS by, outcome, subject, request_id AS request FROM audit LEFT JOIN audit_outcomes USING (audit_id)
     WHERE audit_id > $1 ORDER BY audit_id`,
    [before?.['id']],
  );
  return { written: written as Written[], woken: stage.woken() - woken };
}

const missing: Ids = {
  serviceOrderId: 'nobody',
  webhookId: uuidV7(),
  locationId: 'nowhere',
  tokenId: randomUUID(),
  sessionId: randomUUID(),
  grantId: randomUUID(),
  integration: 'nobody',
  name: 'nobody',
};
const idNames = ({ params }: Operation): (keyof Ids)[] => IDS.filter((name) => name in shapeOf(params));
const pathOf = (operation: Operation, from: Ids): Options =>
  Object.fromEntries(idNames(operation).map((name) => [name, from[name]]));
const withApi = OPERATIONS.filter(({ api }) => api !== undefined);
const withCommand = OPERATIONS.filter(({ id, command }) => command !== undefined && ROWS[id]?.args !== undefined);

/** A claim about some operations only. */
const when = (holds: boolean): ((name: string, work: () => Promise<void>) => void) => (holds ? it : () => {});

it('the tests cover the route and the command of every operation', () => {
  expect(Object.keys(ROWS)).toEqual(expect.arrayContaining(OPERATIONS.map(({ id }) => id)));
  expect(OPERATIONS.filter((each) => each.command !== undefined && !withCommand.includes(each))).toEqual([]);
  // A command of another one, by its options; its own route says the rest.
  expect(OPERATIONS.filter(({ api, command }) => api === undefined && command === undefined)).toEqual([]);
});

it.each(OPERATIONS.filter(({ wakes }) => wakes !== undefined))(
  '$id is seen on the board at once, but not a dry run of it',
  async (operation) => {
    let looks = 0;
    const caller = { wake() {}, wakeBoard: () => void (looks += 1) } as unknown as Caller;
    for (const input of [{}, { dryRun: true }]) {
      await perform({ ...operation, run: () => Promise.resolve({}) }, caller, input);
    }
    expect(looks).toBe(1);
  },
);

describe.each(withApi)('$id over HTTP', (operation) => {
  const { api, access, wakes } = operation;
  const { role, of, does, reveals } = access;
  const revealed = reveals?.when({}) === false && { contents: true };
  const right = (): Options => ({ ...pathOf(operation, ids), ...rowOf(operation).input, ...revealed });
  beforeEach(() => prepare(operation));

  it('works for an operator with the role, and is in the audit once if it is an action', async () => {
    let answer: OperatorAnswer | undefined;
    const { written, woken } = await effectOf(async () => (answer = await ask(admin, operation, right())));
    const { refused } = rowOf(operation);
    expect(answer).toMatchObject({ status: refused ? 409 : 200 });
    const action = does ?? reveals?.action;
    const rows = written.filter((each) => each.action === action);
    expect(rows).toHaveLength(action === undefined ? 0 : isOfRights(operation) ? 2 : 1);
    for (const row of rows) {
      expect(row).toMatchObject({
        by: 'OPERATOR_TOKEN',
        outcome: refused ? 'refused' : 'done',
        request: expect.any(String),
      });
      const lines = stage.logged.filter((line) => line.includes(`"reqId":"${row.request}"`));
      expect(lines.join('\n')).toMatch(/"message":"operator"/);
    }
    // A run writes each of its replays down.
    expect(written.filter((each) => each.action !== action && each.action !== 'replay')).toEqual([]);
    expect(woken).toBe(wakes === true ? 1 : 0);
  });

  // What `ask` is answered is held to be a problem there, and to be described.
  it('answers an invalid request with a problem, at the API and at the console', async () => {
    const [method = '', path = ''] = api?.route.split(' ') ?? [];
    const at = path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(ids[name as keyof Ids]));
    const json = { 'content-type': 'application/json' };
    const tooLarge = JSON.stringify('x'.repeat(api?.bodyLimit ?? 65_536));
    const refused = [
      { status: 401, headers: { authorization: 'Bearer ', cookie: '' } },
      ...(operation.query === undefined ? [] : [{ status: 400, search: '?nobody-knows=1' }]),
      ...(method === 'GET'
        ? []
        : [
            { status: 400, headers: json, body: '{' },
            { status: 413, headers: json, body: tooLarge },
            { status: 415, headers: { 'content-type': 'text/plain' }, body: 'x' },
          ]),
    ] as { status: number; headers?: Record<string, string>; body?: string; search?: string }[];
    const doors = [
      { prefix: '/v1', door: { authorization: `Bearer ${OPERATOR_TOKEN}` } },
      { prefix: '/console/api', door: { cookie: session, ...OWN_PAGE } },
    ];
    for (const { prefix, door } of doors) {
      for (const { status, headers, body, search = '' } of refused) {
        const about = { method, headers: { ...door, ...headers }, body };
        const answer = await sendAsIs(stage.app, prefix + at + search, about);
        expect([prefix, answer.status, body?.slice(0, 9)]).toEqual([prefix, status, body?.slice(0, 9)]);
        mustBeProblem(answer);
      }
    }
  });

  when('dryRun' in (rowOf(operation).input ?? {}))(
    'has in the audit of a dry run only the data that it shows',
    async () => {
      const { written, woken } = await effectOf(() => ask(admin, operation, { ...right(), dryRun: true }));
      expect(written.map(({ action }) => action)).toEqual(reveals === undefined ? [] : [reveals.action]);
      expect(woken).toBe(0);
    },
  );

  when(!['viewer', 'any'].includes(role) || reveals !== undefined)(
    'is answered 403 without its role, and the refusal is in the audit',
    async () => {
      const [lacking, also] = (reveals === undefined ? role : 'member-data').split(' or ') as [Role, Role?];
      let answer: OperatorAnswer | undefined;
      const { written, woken } = await effectOf(async () => {
        answer = await ask(without.get(also === undefined ? lacking : 'both') ?? admin, operation, right());
      });
      expect(answer).toMatchObject({ status: 403, body: { cause: { code: 'role_missing' } } });
      expect(answer?.body['cause']).toHaveProperty('roles', expect.arrayContaining([lacking]));
      expect(written).toMatchObject([
        {
          action: 'be refused',
          by: `not ${also === undefined ? lacking : 'both'}`,
          outcome: 'refused',
          subject: api?.route,
        },
      ]);
      expect(woken).toBe(0);
    },
  );

  it('is answered to an operator of another location as if the id were unknown', async () => {
    const answer = await ask(elsewhere, operation, right());
    if (idNames(operation).length > 0 && of !== 'all' && of !== 'none') {
      const none = await ask(elsewhere, operation, { ...right(), ...pathOf(operation, missing) });
      expect([answer.status, answer.text]).toEqual([of === 'new' ? 403 : 404, none.text]);
    } else if (of === 'all' || of === 'given') expect(answer.status).toBe(403);
    else {
      expect(answer.status).toBe(200);
      expect(answer.text).not.toContain(LOCATION);
      expect(answer.text).not.toContain('order-1');
    }
  });

  when(idNames(operation).length > 0 && of !== 'new' && api.creates !== true)(
    'is answered 404 for an unknown id, without an action in the audit',
    async () => {
      const { written, woken } = await effectOf(async () => {
        const answer = await ask(admin, operation, { ...right(), ...pathOf(operation, missing) });
        expect(answer).toMatchObject({ status: 404, body: { type: 'urn:expediter:problem:not-found' } });
        expect(answer.body).not.toHaveProperty('cause');
      });
      // By the id that was tried: it is one.
      expect(written.filter(({ outcome }) => outcome !== 'refused' || (of !== 'all' && of !== 'list'))).toEqual([]);
      expect(woken).toBe(0);
    },
  );

  const wrong = [
    ...idNames(operation).map((name) => ({ name, value: `\0${SECRET}` })),
    ...Object.keys(shapeOf(operation.query)).map((name) => ({ name, value: `\0${SECRET}` })),
    ...Object.keys({ ...shapeOf(operation.body), ...rowOf(operation).input })
      .filter((name) => !(name in shapeOf(operation.params)) && !(name in shapeOf(operation.query)))
      .map((name) => ({ name, value: [{ SECRET }] })),
    ...['nobody-knows'].map((name) => ({ name, value: SECRET })),
  ].filter(({ name }) => name !== 'nobody-knows' || operation.query !== undefined || operation.body !== undefined);

  it.each(wrong)(
    'is answered 400 for a wrong $name: the answer has the name and not the value',
    async ({ name, value }) => {
      const logged = stage.logged.length;
      const { written, woken } = await effectOf(async () => {
        const input = { ...right(), [name]: value };
        const { status, text } = await ask(admin, operation, input);
        expect(status).toBe(400);
        expect(text).toContain(name);
        expect(text).not.toContain('hunter2');
      });
      expect({ written, woken }).toEqual({ written: [], woken: 0 });
      expect(
        stage.logged
          .slice(logged)
          .join('\n')
          .replaceAll(/"url":"[^"]*"/g, ''),
      ).not.toContain('hunter2');
    },
  );

  when(operation.body !== undefined && !NEEDS_NO_BODY.test(operation.id))(
    'is answered 400 for an empty or missing body',
    async () => {
      const effect = await effectOf(async () => {
        for (const sent of [{}, undefined]) {
          const [method = '', path = ''] = api?.route.split(' ') ?? [];
          const answer = await admin.send(method, path.replace(/:\w+/, 'x'), sent);
          expect(answer).toMatchObject({ status: 400, body: { issues: expect.any(Array) } });
        }
      });
      expect(effect).toEqual({ written: [], woken: 0 });
    },
  );
});

describe.each(withCommand)('$id at the command line', (operation) => {
  const { api, access, command } = operation;
  const { does, reveals } = access;
  const { args = () => [], stdin, refused, code: exit = 0 } = rowOf(operation);
  const isDryable = command?.options?.some(({ flags }) => flags === '--dry-run') === true;
  beforeEach(() => prepare(operation));

  it('works, and is in the audit once if it is an action', async () => {
    const { written } = await effectOf(async () => {
      const { code, error } = await type(operation, [...args(ids), '--as', 'grace'], stdin);
      const isSilent = refused !== true && command?.tell === undefined;
      expect({ code, error }).toEqual({ code: exit, error: isSilent ? '' : expect.any(String) });
    });
    // A command shows no member data but of a webhook.
    const action = does ?? (reveals?.when({}) === true ? reveals.action : undefined);
    const row = { action, by: `${userInfo().username} as grace`, outcome: refused ? 'refused' : 'done', request: null };
    expect(written).toEqual(
      action === undefined
        ? []
        : [row, ...(isOfRights(operation) ? [row] : [])].map((each) => expect.objectContaining(each)),
    );
  });

  when(isDryable)('has in the audit of a dry run only the data that it shows', async () => {
    const { written } = await effectOf(async () => {
      expect(await type(operation, [...args(ids), '--dry-run'], stdin)).toMatchObject({ code: 0, error: '' });
    });
    expect(written.map(({ action }) => action)).toEqual(reveals === undefined ? [] : [reveals.action]);
  });

  const isAbout =
    args(missing).join() !== args({ ...missing, ...Object.fromEntries(IDS.map((id) => [id, 'x'])) }).join();
  when(isAbout && api.creates !== true)('exits 3 with one line for an unknown id', async () => {
    const { written } = await effectOf(async () => {
      const { code, out, error } = await type(operation, args(missing), stdin);
      expect({ code, out }).toEqual({ code: 3, out: '' });
      expect(error).toMatch(/^error: [^\n]+\n$/);
    });
    expect(written.filter(({ outcome }) => outcome !== 'refused')).toEqual([]);
  });

  const isOfSecret = idNames(operation).some((name) => ['tokenId', 'sessionId', 'grantId'].includes(name));
  when(isOfSecret)('does not print a secret that is given in place of an id', async () => {
    const { written } = await effectOf(async () => {
      const typed = Object.fromEntries(IDS.map((id) => [id, SECRET])) as Ids;
      const { code, out, error } = await type(operation, args(typed));
      expect({ code, out }).toEqual({ code: 3, out: '' });
      expect(error).not.toContain('hunter2');
    });
    expect(written).toEqual([]);
  });
});
