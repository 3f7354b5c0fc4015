import { userInfo } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { askOperator, type Operator, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { holdOpen } from '../../support/hold-open.ts';
import { nameToken } from '../../../world/system/log-in.ts';
import { runCli } from '../../support/run-cli.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { statusWebhook } from '../../../world/pos/status-webhook.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { untilLocked } from '../../support/until-locked.ts';

type Action = Record<string, unknown>;

let stage: Stage;
let operator: Operator;

beforeAll(async () => {
  stage = await startStage();
  operator = await askOperator(stage.app);
  for (const id of ['club-1', 'club-2']) await stage.addLocation(id, { ordersUrl: 'http://127.0.0.1:9/orders' });
  for (const id of ['club-1', 'club-2']) await stage.seedOrder({ serviceOrderId: `order-${id}`, locationId: id });
});
afterAll(() => stage?.stop());

const audit = async (query: string): Promise<Action[]> => {
  const { status, body } = await operator.get(`/audit?${query}`);
  expect(status).toBe(200);
  return body['actions'] as Action[];
};

/** A named token with roles at locations. */
async function named(
  name: string,
  roles: string[],
  locations: string[] | null,
): Promise<(path: string, method?: string, body?: object) => Promise<OperatorAnswer>> {
  const as = await askOperator(stage.app, await nameToken(stage, name, roles, locations));
  return (path, method = 'GET', body?: object) => as.send(method, path, body);
}

describe('the audit', () => {
  it('shows actor, source, location and outcome of an action', async () => {
    const manager = await named('a manager', ['operator'], ['club-1']);
    const before = new Date();
    expect((await manager('/locations/club-1/pause', 'POST', { minutes: 5, reason: 'Oven' })).status).toBe(200);
    const about = {
      action: 'pause',
      locationId: 'club-1',
      by: { kind: 'token', id: expect.any(String), name: 'a manager' },
    };
    const [action] = await audit(
      `actor=a%20manager&action=pause&location=club-1&outcome=done&since=${before.toISOString()}`,
    );
    expect(action).toEqual({
      ...about,
      auditId: expect.stringMatching(/^\d+$/),
      at: expect.any(String),
      source: '127.0.0.1',
      requestId: expect.any(String),
      serviceOrderId: null,
      callOutCode: null,
      webhookId: null,
      subject: null,
      before: 'open',
      outcome: 'done',
      after: 'paused for 5 minutes: Oven',
      endedAt: expect.any(String),
    });
    const { source: _source, requestId, ...told } = action ?? {};
    expect(((await operator.get('/locations/club-1')).body['actions'] as Action[])[0]).toEqual(told);
    // For an installation that ships its log to another machine, where nobody with the database's password changes it.
    const lines = stage.logged.map((line) => JSON.parse(line) as object);
    const [auditId, source] = [action?.['auditId'], action?.['source']];
    const line = {
      ...about,
      auditId,
      source,
      outcome: 'done',
      after: 'paused for 5 minutes: Oven',
      reqId: requestId,
      message: 'operator',
    };
    expect(lines).toContainEqual(expect.objectContaining(line));
    for (const query of ['actor=nobody', 'outcome=failed', 'location=club-2', `until=${before.toISOString()}`]) {
      expect((await audit(`action=pause&${query}`)).map((each) => each['auditId'])).not.toContain(auditId);
    }
  });

  it('continues after the last action of the previous page', async () => {
    for (let i = 0; i < 5; i += 1) await operator.post('/locations/club-2/check');
    const all = await audit('action=check&location=club-2');
    const found: unknown[] = [];
    let next: string | null = null;
    do {
      const cursor: string = next === null ? '' : `&cursor=${next}`;
      const { body } = await operator.get(`/audit?action=check&location=club-2&limit=2${cursor}`);
      found.push(...(body['actions'] as Action[]));
      next = body['next'] as string | null;
    } while (next !== null);
    expect(found).toEqual(all);
    expect(all).toHaveLength(5);
  });

  it('includes refused actions, and shows them at their order or location', async () => {
    const viewer = await named('a viewer', ['viewer'], ['club-1']);
    for (const [path, method, about] of [
      ['/orders/order-club-1/retry', 'POST', { serviceOrderId: 'order-club-1', locationId: 'club-1' }],
      ['/orders/order-club-1?contents=true', 'GET', { serviceOrderId: 'order-club-1', locationId: 'club-1' }],
      ['/locations/club-1/pause', 'POST', { locationId: 'club-1' }],
    ] as const) {
      expect((await viewer(path, method)).status, path).toBe(403);
      const refused = {
        ...about,
        action: 'be refused',
        outcome: 'refused',
        by: expect.objectContaining({ name: 'a viewer' }),
      };
      expect((await audit('actor=a%20viewer'))[0], path).toMatchObject(refused);
      const story = 'serviceOrderId' in about ? '/orders/order-club-1' : '/locations/club-1';
      expect((await viewer(story)).body['actions']).toContainEqual(expect.objectContaining(refused));
    }
    expect((await viewer('/locations/club-1')).body['actions']).toContainEqual(
      expect.objectContaining({ serviceOrderId: 'order-club-1', callOutCode: 'K472' }),
    );
    // What is elsewhere is not there, and nothing of it is in the audit.
    expect((await viewer('/orders/order-club-2/retry', 'POST')).status).toBe(404);
    expect(await audit('actor=a%20viewer&order=order-club-2')).toEqual([]);
  });

  it('shows an admin of some locations only the actions there', async () => {
    await operator.post('/webhooks/replay', { outcome: 'dropped' });
    await operator.post('/locations/club-1/resume');
    await operator.post('/locations/club-2/resume');
    const some = await named('an admin of one', ['admin'], ['club-1']);
    const all = (await some('/audit?limit=200')).body['actions'] as Action[];
    expect(new Set(all.map(({ locationId }) => locationId))).toEqual(new Set(['club-1']));
    expect((await some('/audit?location=club-2')).status).toBe(403);
    expect((await some('/audit?order=order-club-2')).body['actions']).toEqual([]);
    const two = await named('an admin of two', ['admin'], ['club-1', 'club-2']);
    const both = (await two('/audit?limit=200')).body['actions'] as Action[];
    expect(new Set(both.map(({ locationId }) => locationId))).toEqual(new Set(['club-1', 'club-2']));
    expect((await audit('action=replay%20many'))[0]).toMatchObject({ locationId: null, subject: 'dropped' });
  });

  it('names who acted, to an admin of a location only those who acted there', async () => {
    for (const at of ['club-1', 'club-2'])
      await (
        await named(`of ${at}`, ['operator'], [at])
      )(`/locations/${at}/pause`, 'POST');
    expect((await operator.get('/audit/people')).body['people']).toEqual(
      expect.arrayContaining(['of club-1', 'of club-2']),
    );
    const admin = await named('admin of club-1', ['admin'], ['club-1']);
    const there = (await admin('/audit/people')).body['people'];
    expect(there).toContain('of club-1');
    expect(there).not.toContain('of club-2');
  });
});

describe('orders that are searched by their member', () => {
  const member = { id: 'member-of-both', name: 'Grace Hopper' };

  it('need the role member-data to be erased, even in a dry run', async () => {
    const admin = await askOperator(stage.app, await nameToken(stage, 'an admin', ['admin'], null));
    for (const dryRun of [true, false]) {
      const answer = await admin.post('/members/erase', { memberId: member.id, dryRun });
      expect(answer).toMatchObject({ status: 403, body: { cause: { roles: ['admin', 'member-data'] } } });
    }
  });

  it('are in the audit of each of their locations, without the member', async () => {
    for (const [locationId, nth] of [
      ['club-1', 1],
      ['club-2', 1],
      ['club-2', 2],
    ] as const) {
      const serviceOrderId = `found-${locationId}-${nth}`;
      const contents = sampleOrder({ serviceOrderId, locationId, member });
      await stage.seedOrder({ serviceOrderId, locationId, contents });
    }
    const ofClub1 = await askOperator(stage.app, await nameToken(stage, 'a reader', ['member-data'], ['club-1']));
    await ofClub1.post('/search/member', { text: member.name });
    await operator.post('/search/member', { text: 'nobody' });
    for (const dryRun of [true, false]) {
      const { body } = await operator.post('/members/erase', { memberId: member.id, dryRun });
      expect(body['erased']).toHaveLength(3);
    }
    const rows = await stage.query(
      `SELECT action, location_id AS at, after FROM audit JOIN audit_outcomes USING (audit_id)
       WHERE action LIKE '% member' AND location_id IS NOT NULL ORDER BY audit_id`,
    );
    expect(rows.map(({ action, at, after }) => [action, at, after])).toEqual([
      ['search member', 'club-1', 'orders 1'],
      ['look up member', 'club-1', 'orders 1'],
      ['look up member', 'club-2', 'orders 2'],
      ['erase member', 'club-1', 'orders 1'],
      ['erase member', 'club-2', 'orders 2'],
    ]);
  });
});

describe('an action that fails half-way', () => {
  /** What there is of a pause by command line while it waits for a lock: if its process died now, nothing would follow. */
  const pauseByCli = async (lock: string): Promise<{ action: Action | undefined; paused: unknown }> => {
    await operator.post('/locations/club-1/resume');
    const owner = await holdOpen(stage.databaseUrl, lock);
    const ended = runCli(stage.env, ['location', 'pause', 'club-1']);
    await untilLocked(stage);
    const [action] = await audit(`actor=${userInfo().username}&location=club-1&outcome=unknown`);
    const [paused] = await stage.query(
      `SELECT paused_at IS NOT NULL AS is FROM locations WHERE location_id = 'club-1'`,
    );
    await owner.end();
    expect((await ended).code).toBe(0);
    return { action, paused };
  };
  const begun = {
    by: { kind: 'command_line', id: userInfo().username, name: userInfo().username },
    action: 'pause',
    outcome: null,
    after: null,
  };

  it('names its actor if the process dies before the action is done', async () => {
    const { action, paused } = await pauseByCli(`SELECT FROM locations WHERE location_id = 'club-1' FOR UPDATE`);
    expect([action, paused]).toEqual([expect.objectContaining({ ...begun, source: null }), { is: false }]);
  });

  it('names its actor if the process dies before the outcome is stored', async () => {
    const { action, paused } = await pauseByCli('LOCK TABLE audit_outcomes IN EXCLUSIVE MODE');
    expect([action, paused]).toEqual([expect.objectContaining(begun), { is: true }]);
  });

  it('is in the audit with an unknown outcome if the outcome cannot be stored', async () => {
    await failing('audit_outcomes', async () => {
      expect((await operator.post('/locations/club-1/resume')).status).toBe(200);
    });
    expect((await audit('action=resume&location=club-1'))[0]).toMatchObject({ outcome: null });
    expect(stage.logged.some((line) => line.includes('the outcome of an action was not recorded in the audit'))).toBe(
      true,
    );
  });

  it('is not done and answers 503 if it cannot be stored in the audit', async () => {
    const id = 'order-club-1';
    await failing('audit', async () => {
      expect((await operator.post('/locations/club-1/pause')).status).toBe(503);
      expect((await operator.get(`/orders/${id}?contents=true`)).status).toBe(503);
      expect((await operator.post('/webhooks/replay', { outcome: 'dropped' })).status).toBe(503);
    });
    expect((await operator.get('/locations/club-1')).body).toMatchObject({ pausedAt: null });
  });

  /** Has Postgres refuse rows of a table, as where its disk is full. */
  async function failing(table: 'audit' | 'audit_outcomes', work: () => Promise<void>): Promise<void> {
    await stage.query(`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$`);
    await stage.query(`CREATE TRIGGER refuse BEFORE INSERT ON ${table} EXECUTE FUNCTION refuse()`);
    try {
      await work();
    } finally {
      await stage.query(`DROP TRIGGER refuse ON ${table}`);
    }
  }
});

it('no member data is in the audit after reading, changing and refused requests', async () => {
  const planted = ['Ada Lovelace', 'ada@example.com', '+4930901820', 'no nuts, Ada'];
  const id = 'order-with-contents';
  await stage.seedOrder({
    serviceOrderId: id,
    locationId: 'club-1',
    contents: { ...sampleOrder({ serviceOrderId: id, locationId: 'club-1' }), notes: planted.join() },
  });
  const url = await stage.webhookPath('club-1');
  await stage.post(url, statusWebhook({ serviceOrderId: id, status: 'READY', reason: planted.join() }));
  const { body } = await stage.post(url, { note: planted });
  const viewer = await named('a second viewer', ['viewer'], null);
  for (const typed of [id, planted.join(' ')]) {
    const order = `/orders/${encodeURIComponent(typed)}`;
    await operator.get(`${order}?contents=true`);
    await viewer(`${order}?contents=true`);
    for (const [verb, given] of [
      ['retry', undefined],
      ['resolve', { there: true, providerOrderId: planted[0] }],
      ['resolve', { there: false }],
      ['cancel', undefined],
      ['cancel/conclude', { cancelled: true }],
    ] as const) {
      await operator.post(`${order}/${verb}`, given);
      await viewer(`${order}/${verb}`, 'POST');
    }
    const location = `/locations/${encodeURIComponent(typed)}`;
    await operator.post(`${location}/pause`);
    await viewer(`${location}/pause`, 'POST');
    await operator.post('/webhooks/replay', { outcome: 'dropped', location: typed, integration: typed });
    for (const line of [
      ['order', 'retry', typed],
      ['order', 'resolve', typed, '--there', '--pos-id', 'Ada Lovelace'],
      ['location', 'pause', typed],
      ['token', 'revoke', typed],
      ['webhook', 'replay', typed],
      ['webhook', 'replay', '--outcome', 'dropped', '--location', typed],
      ['member', 'erase', typed],
    ]) {
      await runCli(stage.env, line);
    }
  }
  expect((await operator.get(`/webhooks/${String(body['webhookId'])}`)).status).toBe(200);
  const rows = JSON.stringify(await stage.query('SELECT * FROM audit LEFT JOIN audit_outcomes o USING (audit_id)'));
  expect(rows).toContain('"read contents"');
  // Random ids may have four such digits in a row.
  for (const part of ['Ada ', 'ada@', '493090', 'nuts']) expect(rows).not.toContain(part);
});
