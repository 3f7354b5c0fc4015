import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pauseLocation } from '../../../src/core/kitchens/pause-location.ts';
import { removeLocation } from '../../../src/core/locations/remove-location.ts';
import { mayPlace, type Role } from '../../../src/core/operators/operator.ts';
import { startSession } from '../../../src/core/operators/operator-sessions.ts';
import { LOCK_CREATE_LOCATION } from '../../../src/core/postgres/transactions.ts';
import { askOperator, sendAsIs, type Operator, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { holdOpen } from '../../support/hold-open.ts';
import { dropPast, makePast } from '../../support/make-past.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { until } from '../../../world/processes/until.ts';
import { untilLocked } from '../../support/until-locked.ts';

type Issued = { tokenId: string; token: string };
type Named = Record<string, unknown> & { tokenId: string; name: string };
type Grant = Record<string, unknown> & { grantId: string };

const ordersUrl = 'http://127.0.0.1:9/orders';

let stage: Stage;
/** Another process, which did not change who may what. */
let other: Stage;
let admin: Operator;
/** Of an admin of club-1 alone. */
let ofClub1: Operator;

beforeAll(async () => {
  stage = await startStage();
  other = await startStage({ databaseUrl: stage.databaseUrl });
  for (const id of ['club-1', 'club-2']) await stage.addLocation(id, { ordersUrl });
  admin = await askOperator(stage.app);
  const { token } = await issue({ name: 'admin of club-1', roles: ['admin'], locations: ['club-1'] });
  ofClub1 = await askOperator(stage.app, token);
});
afterAll(() => Promise.all([other?.stop(), stage?.stop()]));

async function issue(body: object, by = admin): Promise<Issued> {
  const answer = await by.post('/operators/tokens', body);
  expect(answer).toMatchObject({
    status: 200,
    body: { state: 'valid', token: expect.stringMatching(/^exo_[\w-]{49}$/) },
  });
  expect(answer.headers.get('cache-control')).toBe('no-store');
  return answer.body as unknown as Issued;
}
/** At the other process, which has forgotten who it was. */
const statusOf = async (token: string, path = '/v1/locations'): Promise<number> => {
  other.invalidateCache();
  return (await sendAsIs(other.app, path, { headers: { authorization: `Bearer ${token}` } })).status;
};
const tokensSeenBy = async (by: Operator): Promise<Named[]> =>
  (await by.get('/operators/tokens')).body['tokens'] as Named[];
const grantsSeenBy = async (by: Operator): Promise<Grant[]> =>
  (await by.get('/operators/grants')).body['grants'] as Grant[];
const actions = (action: string, name: string): Promise<Record<string, unknown>[]> =>
  stage.query(
    `SELECT actor_kind, actor_name, subject, outcome, after FROM audit LEFT JOIN audit_outcomes USING (audit_id)
     WHERE action = $1 AND after LIKE $2 AND location_id IS NULL ORDER BY audit_id`,
    [action, `%${name}: %`],
  );

describe('a named token', () => {
  it('is shown only in the answer to its creation', async () => {
    const { token, tokenId } = await issue({ name: 'report', roles: ['viewer'] });
    expect(await statusOf(token)).toBe(200);
    const stored = await stage.query(
      `SELECT (SELECT jsonb_agg(t) FROM operator_tokens t)::text || (SELECT jsonb_agg(a) FROM audit a)::text
           || (SELECT jsonb_agg(o) FROM audit_outcomes o)::text AS all`,
    );
    const shown = JSON.stringify([stored, await tokensSeenBy(admin), stage.logged]);
    expect(shown).toContain(tokenId);
    expect(shown).not.toContain(token.slice(4, -6));
    expect(await actions('issue token', 'report')).toEqual([
      {
        actor_kind: 'operator_token',
        actor_name: 'OPERATOR_TOKEN',
        subject: null,
        outcome: 'done',
        after: expect.stringMatching(/^[0-9a-f-]{36} report: viewer at all locations$/) as string,
      },
    ]);
  });

  it('is refused at every process after its revocation', async () => {
    const { token, tokenId } = await issue({ name: 'laptop', roles: ['operator', 'viewer'], locations: ['club-1'] });
    const here = await askOperator(stage.app, token);
    expect(await statusOf(token)).toBe(200);
    for (const _time of [1, 2]) {
      expect(await admin.post(`/operators/tokens/${tokenId}/revoke`)).toMatchObject({
        status: 200,
        body: { state: 'revoked' },
      });
    }
    expect(await statusOf(token)).toBe(401);
    // The process that did it has not to wait for that.
    expect((await here.get('/locations')).status).toBe(401);
    expect(await actions('revoke token', 'laptop')).toMatchObject([
      { subject: tokenId, outcome: 'done', after: `${tokenId} laptop: viewer,operator at club-1` },
      { subject: tokenId, outcome: 'done' },
    ]);
  });

  it('can read only /metrics if its role is `metrics`', async () => {
    const { token } = await issue({ name: 'prometheus', roles: ['metrics'] });
    const paths = ['/metrics', '/v1/locations', '/v1/orders', '/v1/providers', '/openapi.json', '/v1/operators/tokens'];
    const statuses = [];
    for (const path of paths) statuses.push(await statusOf(token, path));
    expect(statuses).toEqual([200, 403, 403, 403, 403, 403]);
    const { token: ofViewer } = await issue({ name: 'dashboard', roles: ['viewer'] });
    expect(await statusOf(ofViewer, '/metrics')).toBe(200);
  });

  it('is refused after its expiry', async () => {
    const expiresAt = new Date(Date.now() + 60_000);
    const { token, tokenId } = await issue({ name: 'short', roles: ['viewer'], expiresAt });
    expect(await statusOf(token)).toBe(200);
    await stage.query('UPDATE operator_tokens SET expires_at = now() WHERE token_id = $1', [tokenId]);
    expect(await statusOf(token)).toBe(401);
    expect((await tokensSeenBy(admin)).find(({ name }) => name === 'short')).toMatchObject({ state: 'expired' });
    // Its name is free then, and it stays one that expired.
    await issue({ name: 'short', roles: ['viewer'] });
    expect((await tokensSeenBy(admin)).filter(({ name }) => name === 'short')).toMatchObject([
      { state: 'expired' },
      { state: 'valid' },
    ]);
  });

  it('cannot have the name of another valid token, but may have the name of a revoked token', async () => {
    const { tokenId } = await issue({ name: 'Zoë 1', roles: ['viewer'] });
    expect(await admin.post('/operators/tokens', { name: ' Zoë 1 ', roles: ['admin'] })).toMatchObject({
      status: 409,
      body: { detail: 'a valid token is called "Zoë 1": revoke it, or choose another name' },
    });
    expect(await actions('issue token', 'Zoë 1')).toMatchObject([{ outcome: 'done' }, { outcome: 'refused' }]);
    await admin.post(`/operators/tokens/${tokenId}/revoke`);
    const statuses = await Promise.all(
      [1, 2].map(async () => (await admin.post('/operators/tokens', { name: 'Zoë 1', roles: ['viewer'] })).status),
    );
    expect(new Set(statuses)).toEqual(new Set([200, 409]));
  });

  it.each([
    ['with a zero width space', 'pay\u{200B}roll', 400],
    ['with a filler, which counts as a letter', 'pay\u{3164}roll', 400],
    ['with a blank of Braille', 'pay\u{2800}roll', 400],
    ['that equals another in compatible letters', 'ｐａｙｒｏｌｌ', 409],
    ['that equals another in capital letters', 'PAYROLL', 409],
    ['with a Cyrillic letter that looks like a Latin one', 'p\u{430}yroll', 409],
    ['that is OPERATOR_TOKEN with a Greek letter', '\u{39F}PERATOR_TOKEN', 400],
    ['that becomes an address when it is folded', 'ada＠example.com', 400],
  ])('is not issued with a name %s', async (_what, name, status) => {
    if (status === 409) await admin.post('/operators/tokens', { name: 'payroll', roles: ['viewer'] });
    expect((await admin.post('/operators/tokens', { name, roles: ['viewer'] })).status).toBe(status);
  });

  it('stores its last use once a minute', async () => {
    const { token, tokenId } = await issue({ name: 'used', roles: ['viewer'] });
    const lastUsed = async (): Promise<unknown> =>
      (await tokensSeenBy(admin)).find((each) => each.tokenId === tokenId)?.['lastUsedAt'];
    const ago = (interval: string): Promise<unknown> =>
      stage.query('UPDATE operator_tokens SET last_used_at = now() - $2::interval WHERE token_id = $1', [
        tokenId,
        interval,
      ]);
    expect(await lastUsed()).toBeNull();
    await statusOf(token);
    await until(async () => (await lastUsed()) !== null);
    await ago('50 seconds');
    const before = await lastUsed();
    expect(await statusOf(token)).toBe(200);
    expect(await lastUsed()).toBe(before);
    await ago('61 seconds');
    const older = await lastUsed();
    await statusOf(token);
    await until(async () => (await lastUsed()) !== older);
  });

  it.each([
    ['no name', { name: ' ' }, 'name'],
    ['a name of 101 characters', { name: 'x'.repeat(101) }, 'name'],
    ['a name of two lines', { name: 'a\nb' }, 'name'],
    ['no role', { roles: [] }, 'roles'],
    ['no location', { locations: [] }, 'locations'],
    ['an end in the past', { expiresAt: '2020-01-31T18:00:00Z' }, 'expiresAt'],
    ['the address of a person for a name', { name: 'ada@bank.example' }, 'name'],
    ['the name of OPERATOR_TOKEN', { name: 'OPERATOR_TOKEN' }, 'name'],
  ])('is not issued with %s: the answer is 400 with the path of the field', async (_what, wrong, field) => {
    const answer = await admin.post('/operators/tokens', { name: 'wrong', roles: ['viewer'], ...wrong });
    expect(answer).toMatchObject({ status: 400, body: { issues: [{ path: field }] } });
  });

  it('is not issued for unknown locations: the answer is 409 with their names', async () => {
    const locations = ['club-1', 'club-8', 'club-9'];
    expect(await admin.post('/operators/tokens', { name: 'wrong', roles: ['viewer'], locations })).toMatchObject({
      status: 409,
      body: { detail: 'no location is called "club-8", "club-9"' },
    });
  });
});

describe('an admin of one location', () => {
  it('sees only the tokens that are for this location alone', async () => {
    await issue({ name: 'everywhere', roles: ['viewer'] });
    await issue({ name: 'of both', roles: ['viewer'], locations: ['club-1', 'club-2'] });
    await issue({ name: 'of club-2', roles: ['viewer'], locations: ['club-2'] });
    const own = await issue({ name: 'till', roles: ['member-data', 'operator'], locations: ['club-1'] }, ofClub1);
    const all = await tokensSeenBy(ofClub1);
    expect(all.map(({ name }) => name)).toContain('till');
    for (const each of all) expect(each).toMatchObject({ locations: ['club-1'] });
    expect((await ofClub1.post(`/operators/tokens/${own.tokenId}/revoke`)).status).toBe(200);
  });

  it("does not get the name of another location's token from the refusal of a similar name", async () => {
    await issue({ name: 'nightly-totals', roles: ['viewer'] });
    await issue({ name: 'till-totals', roles: ['viewer'], locations: ['club-1'] });
    const wanted = { roles: ['viewer'], locations: ['club-1'] };
    const { status, text } = await ofClub1.post('/operators/tokens', { ...wanted, name: 'NIGHTIY-TOTALS' });
    expect([status, text]).toEqual([409, expect.stringContaining('choose another, or let its admin revoke it')]);
    expect(text).not.toContain('nightly-totals');
    expect((await ofClub1.post('/operators/tokens', { ...wanted, name: 'TILL-TOTALS' })).text).toContain('till-totals');
  });

  it('finds in the audit who gave and removed rights at this location, and nothing about other locations', async () => {
    const { tokenId } = await issue({ name: 'driver', roles: ['viewer'], locations: ['club-1', 'club-2'] });
    await admin.post(`/operators/tokens/${tokenId}/revoke`);
    const group = 'drivers';
    const { body } = await admin.post('/operators/grants', { group, roles: ['viewer'], locations: ['club-1'] });
    const { body: audit } = await ofClub1.get('/audit?limit=200');
    const seen = (audit['actions'] as { action: string; locationId: string; after: string }[]).map(
      ({ action, locationId, after }) => [action, locationId, after],
    );
    expect(seen.slice(0, 3)).toEqual([
      ['give roles', 'club-1', `${String(body['grantId'])} drivers: viewer at club-1`],
      ['revoke token', 'club-1', `${tokenId} driver: viewer at club-1`],
      ['issue token', 'club-1', `${tokenId} driver: viewer at club-1`],
    ]);
  });

  it('cannot issue a token (409) while the location has a hundred valid tokens', async () => {
    await stage.query(
      `INSERT INTO operator_tokens (token_id, sha256, name, roles, locations)
       SELECT gen_random_uuid(), decode(md5(nth::text), 'hex'), 'many-' || nth, '{viewer}', '{club-1}'
       FROM generate_series(1, 100) AS nth`,
    );
    const one = { name: 'one more', roles: ['viewer'], locations: ['club-1'] };
    expect(await ofClub1.post('/operators/tokens', one)).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining('100') },
    });
    await stage.query(`UPDATE operator_tokens SET revoked_at = now() WHERE name LIKE 'many-%'`);
    await issue(one, ofClub1);
  });

  it.each([
    ['all locations', {}],
    ['all locations, explicitly', { locations: null }],
    ['another location', { locations: ['club-2'] }],
    ['another location too', { locations: ['club-1', 'club-2'] }],
    ['an unknown location', { locations: ['club-9'] }],
  ])('is answered 403 for a token or grant that opens %s', async (what, where) => {
    const refused = { status: 403, body: { cause: { code: 'role_missing', roles: ['admin'] } } };
    const name = `escalation to ${what}`;
    expect(await ofClub1.post('/operators/tokens', { name, roles: ['viewer'], ...where })).toMatchObject(refused);
    const [last] = await stage.query('SELECT actor_name, action, subject FROM audit ORDER BY audit_id DESC LIMIT 1');
    expect(last).toEqual({ actor_name: 'admin of club-1', action: 'be refused', subject: 'POST /operators/tokens' });
    expect((await tokensSeenBy(admin)).filter((each) => each.name === name)).toEqual([]);

    const group = name;
    expect(await ofClub1.post('/operators/grants', { group, roles: ['admin'], ...where })).toMatchObject(refused);
    expect((await grantsSeenBy(admin)).filter((each) => each['group'] === group)).toEqual([]);
  });
});

describe('roles at a group of locations', () => {
  const settings = { ordersUrl, unsigned: true };
  const put = (by: Operator, id: string, groups: string[]): Promise<OperatorAnswer> =>
    by.send('PUT', `/locations/${id}`, { integration: 'standard', settings, groups });
  /** Asks the process that changes the groups, and the other one. */
  const member = async (group: string, ...roles: string[]): Promise<[here: Operator, there: Operator]> => {
    const { token } = await issue({ name: `${roles.join()} of ${group}`, roles, locationGroups: [group] });
    return [await askOperator(stage.app, token), await askOperator(other.app, token)];
  };
  const listedTo = async (by: Operator): Promise<unknown[]> =>
    ((await by.get('/locations')).body['locations'] as { locationId: string }[]).map(({ locationId }) => locationId);

  it('apply to the locations that are in the group now', async () => {
    const viewers = await member('moving', 'viewer');
    await put(admin, 'mover', []);
    await stage.seedOrder({ serviceOrderId: 'order-of-mover', locationId: 'mover' });
    const statuses = async (path: string): Promise<number[]> =>
      Promise.all(viewers.map(async (by) => (await by.get(path)).status));
    expect(await statuses('/locations/mover')).toEqual([404, 404]);
    await put(admin, 'mover', ['moving', 'else']);
    expect(await statuses('/locations/mover')).toEqual([200, 200]);
    // The other process learns of it within seconds.
    other.invalidateCache();
    expect(await statuses('/orders/order-of-mover')).toEqual([200, 200]);
    for (const by of viewers) expect(await listedTo(by)).toEqual(['mover']);
    for (const path of ['/orders', '/locations', '/tokens', '/webhooks']) {
      const { text } = await admin.get(`${path}?group=moving`);
      expect([path, text.includes('club-1'), text.includes('"mover"')]).toEqual([
        path,
        false,
        path === '/orders' || path === '/locations',
      ]);
    }
    expect((await admin.send('PATCH', '/locations/mover', { groups: ['else'] })).status).toBe(200);
    other.invalidateCache();
    for (const path of ['/locations/mover', '/orders/order-of-mover']) expect(await statuses(path)).toEqual([404, 404]);
    for (const by of viewers) expect(await listedTo(by)).toEqual([]);
  });

  it("begin with the group's first location, which the group's integrator can create and change", async () => {
    const [here, there] = await member('empty', 'integrator');
    for (const groups of [[], ['else'], ['empty', 'else']]) {
      expect(await put(here, 'empty:first', groups)).toMatchObject({
        status: 403,
        body: { cause: { code: 'role_missing', roles: ['integrator'] } },
      });
    }
    expect((await put(here, 'empty:first', ['empty'])).status).toBe(201);
    expect((await there.send('PATCH', '/locations/empty:first', { name: 'Old' })).status).toBe(200);
    for (const by of [here, there]) expect((await by.get('/locations/empty:first')).status).toBe(200);
    await admin.send('PATCH', '/locations/empty:first', { groups: ['empty', 'else'] });
    for (const groups of [['empty'], [], ['empty', 'else', 'third']]) {
      expect((await here.send('PATCH', '/locations/empty:first', { groups })).status).toBe(403);
      expect((await put(here, 'empty:first', groups)).status).toBe(403);
    }
    expect(await here.send('PATCH', '/locations/empty:first', { name: 'First' })).toMatchObject({ status: 200 });
    expect((await here.send('DELETE', '/locations/empty:first?unpaused=true')).status).toBe(200);
  });

  it('are given once, also if viewer is named, which they include', async () => {
    const give = async (...roles: string[]): Promise<unknown> =>
      (await admin.post('/operators/grants', { group: 'twice', roles })).body['grantId'];
    const first = await give('operator');
    expect(await give('viewer', 'operator')).toBe(first);
    // An integrator alone reads no orders, so these two differ.
    expect(await give('integrator')).not.toBe(await give('viewer', 'integrator'));
  });

  it('reach a joining location only if an operator with all of these roles adds the location to the group', async () => {
    await member('joined', 'viewer');
    const grant = { group: 'staff', roles: ['operator', 'member-data'], locationGroups: ['joined'] };
    const { grantId } = (await admin.post('/operators/grants', grant)).body as Grant;
    const right = { roles: ['integrator', 'operator'], locationGroups: ['left', 'joined'] };
    const less = await askOperator(stage.app, (await issue({ ...right, name: 'less' })).token);
    const other = await issue({ ...right, name: 'same', roles: [...right.roles, 'member-data'] });
    const same = await askOperator(stage.app, other.token);
    const join = async (by = less): Promise<unknown> =>
      (await by.send('PATCH', '/locations/joiner', { groups: ['joined', 'left'] })).body['detail'];
    await put(admin, 'joiner', ['left']);
    const refused = expect.stringMatching(/every role that others have there/) as string;
    expect(await join()).toEqual(refused);
    expect((await put(less, 'joiner', ['joined'])).body['detail']).toEqual(refused);
    // A new location has nothing that a role could reach.
    expect((await put(less, 'joined:new', ['joined'])).status).toBe(201);
    expect(await join(same)).toBeUndefined();
    // What is taken counts no longer.
    await admin.send('PATCH', '/locations/joiner', { groups: ['left'] });
    for (const taken of [`grants/${grantId}/remove`, `tokens/${other.tokenId}/revoke`]) {
      expect(await join()).toEqual(refused);
      await admin.post(`/operators/${taken}`);
    }
    expect(await join()).toBeUndefined();
  });

  it.each<['can' | 'cannot', string, Role[], Role[]]>([
    ['can', 'the location and the group', ['integrator', 'viewer'], ['integrator', 'operator']],
    ['cannot', 'only the location', ['integrator', 'viewer'], ['integrator']],
    ['cannot', 'only the group', ['integrator'], ['integrator', 'viewer']],
  ])('%s be given by an operator who has them at %s', (may, _where, atLocation, atGroup) => {
    const rights = [
      { roles: atLocation, locations: ['club-1'], locationGroups: [] },
      { roles: atGroup, locations: [], locationGroups: ['joined'] },
    ];
    const given = [{ role: 'viewer', group: 'joined' }] as const;
    expect(mayPlace({ rights }, 'club-1', [], ['joined'], given)).toBe(may === 'can');
    expect(mayPlace({ rights }, 'club-1', [], ['joined'], [])).toBe(true);
  });

  it("do not let the group's integrator replace a location that somebody else created at the same moment", async () => {
    const [here] = await member('quick', 'integrator');
    const lock = `SELECT pg_advisory_xact_lock(hashtextextended('quick:taken', $1))`;
    const other = await holdOpen(stage.databaseUrl, lock, [LOCK_CREATE_LOCATION]);
    const answer = put(here, 'quick:taken', ['quick']);
    // It has found no such location, and waits to create it.
    await untilLocked(stage);
    await other.query(
      `INSERT INTO locations (location_id, integration, settings) SELECT 'quick:taken', integration, settings FROM locations
       WHERE location_id = 'club-1'`,
    );
    await other.end('COMMIT');
    expect((await answer).status).toBe(403);
  });

  it("do not let the group's integrator create a removed location again whose orders were of somebody else", async () => {
    const [here] = await member('late', 'integrator', 'viewer', 'member-data');
    await put(admin, 'late:former', ['else']);
    await stage.seedOrder({ serviceOrderId: 'order-of-former', locationId: 'late:former' });
    await stage.query(`UPDATE orders SET ended_at = now() WHERE location_id = 'late:former'`);
    expect((await admin.send('DELETE', '/locations/late:former?unpaused=true')).status).toBe(200);
    const hidden = await put(here, 'club-1', ['late']);
    for (const pass of [async () => {}, () => makePast(stage, 'order-of-former'), () => dropPast(stage)]) {
      await pass();
      const removed = await put(here, 'late:former', ['late']);
      expect([removed.status, removed.text]).toEqual([403, hidden.text]);
      expect((await here.get('/orders/order-of-former')).status).toBe(404);
    }
    expect((await put(admin, 'late:former', ['late'])).status).toBe(201);
  });

  it('let an integrator neither learn which ids exist nor move a location of another group', async () => {
    const [here] = await member('west', 'integrator');
    await put(admin, 'west-2', ['else']);
    const answers: OperatorAnswer[] = [];
    for (const id of ['west-2', 'west-3', 'club-1', 'else:1', 'west']) {
      for (const headers of [{}, { 'if-match': '*' }, { 'if-none-match': '*' }]) {
        for (const query of ['', '?dryRun=true']) {
          const body = { integration: 'standard', settings, groups: ['west'] };
          answers.push(await here.send('PUT', `/locations/${id}${query}`, body, headers));
        }
      }
    }
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]).toMatchObject({ status: 403, body: { detail: expect.stringContaining('brand-nord:7') } });
    expect((await put(here, 'west:3', ['west'])).status).toBe(201);
  });

  it('are not lost by an integrator, who may not remove a location at which others have rights', async () => {
    const [here] = await member('south', 'integrator');
    await put(here, 'south:1', ['south']);
    const named = await issue({ name: 'admin of south:1', roles: ['admin'], locations: ['south:1'] });
    const group = 'people of south:1';
    const grant = await admin.post('/operators/grants', { group, roles: ['viewer'], locations: ['south:1'] });
    const remove = (by: Operator, query = ''): Promise<OperatorAnswer> =>
      by.send('DELETE', `/locations/south:1?unpaused=true${query}`);
    for (const query of ['', '&dryRun=true']) {
      expect(await remove(here, query)).toMatchObject({
        status: 403,
        body: { detail: expect.stringContaining('Ask an admin of this location') as string },
      });
    }
    expect(await statusOf(named.token, '/v1/locations/south:1')).toBe(200);
    for (const path of [`tokens/${named.tokenId}/revoke`, `grants/${String(grant.body['grantId'])}/remove`])
      expect((await admin.post(`/operators/${path}`)).status).toBe(200);
    expect((await remove(here)).status).toBe(200);
  });

  it('show an integrator no orders and no webhooks', async () => {
    const [here] = await member('configured', 'integrator');
    await put(admin, 'shown', ['configured']);
    await stage.seedOrder({ serviceOrderId: 'order-shown', locationId: 'shown' });
    const path = await stage.webhookPath('shown');
    const webhookId = String((await stage.post(path, 'no status')).body['webhookId']);
    await admin.post('/orders/order-shown/retry');
    await admin.post(`/webhooks/${webhookId}/replay`, {});
    await admin.post('/webhooks/replay', { outcome: 'dropped', location: 'shown' });
    await admin.post('/locations/shown/pause');
    const seen = ['/orders/order-shown', '/orders', `/webhooks/${webhookId}`, '/webhooks', '/locations/shown'];
    const answers = await Promise.all(seen.map((each) => here.get(each)));
    expect(answers.map(({ status }) => status)).toEqual([404, 403, 404, 403, 200]);
    const actionsOf = async (by: Operator): Promise<unknown[]> =>
      ((await by.get('/locations/shown')).body['actions'] as { action: string }[]).map(({ action }) => action);
    expect(await actionsOf(here)).toEqual(['pause', 'put']);
    expect(await actionsOf(admin)).toEqual(['pause', 'replay', 'replay many', 'replay', 'retry', 'put']);
    expect((await here.post('/locations/shown/check')).status).toBe(200);
    for (const dry of ['&dryRun=true', '']) {
      answers.push(await here.send('DELETE', `/locations/shown?unpaused=true${dry}`));
      expect(answers.at(-1)).toMatchObject({
        status: 409,
        body: { detail: expect.stringContaining('not ended (1)') as string },
      });
    }
    for (const { text } of answers) expect(text).not.toMatch(new RegExp(`order-shown|${webhookId}`));
  });

  it('can be given and removed by an admin of the whole group, and not of one location', async () => {
    const [ofGroup] = await member('given', 'admin');
    await put(admin, 'given-1', ['given']);
    const { token } = await issue({ name: 'admin of given-1', roles: ['admin'], locations: ['given-1'] });
    const ofLocation = await askOperator(stage.app, token);
    const right = { name: 'given away', roles: ['integrator'], locationGroups: ['given'] };
    expect(await ofLocation.post('/operators/tokens', right)).toMatchObject({ status: 403 });
    const own = await issue(right, ofGroup);
    expect(await tokensSeenBy(ofGroup)).toContainEqual(
      expect.objectContaining({ tokenId: own.tokenId, locations: [], locationGroups: ['given'] }),
    );
    expect((await ofLocation.post(`/operators/tokens/${own.tokenId}/revoke`)).status).toBe(404);
    for (const where of [
      {},
      { locationGroups: ['given', 'else'] },
      { locations: ['club-1'], locationGroups: ['given'] },
    ]) {
      for (const [path, who] of [
        ['tokens', { name: 'more' }],
        ['grants', { group: 'more' }],
      ] as const) {
        expect((await ofGroup.post(`/operators/${path}`, { ...who, roles: ['viewer'], ...where })).status).toBe(403);
      }
    }
    expect((await ofGroup.post(`/operators/tokens/${own.tokenId}/revoke`)).status).toBe(200);
    const grant = { group: 'of the group', roles: ['viewer'], locations: ['given-1'], locationGroups: ['given'] };
    const { grantId } = (await ofGroup.post('/operators/grants', grant)).body as Grant;
    // What is left of it when its location is gone.
    expect((await admin.send('DELETE', '/locations/given-1?unpaused=true')).status).toBe(200);
    expect(await grantsSeenBy(ofGroup)).toEqual([
      expect.objectContaining({ grantId, locations: [], locationGroups: ['given'] }),
    ]);
    expect((await ofGroup.post(`/operators/grants/${grantId}/remove`)).status).toBe(200);
  });
});

describe('a token or grant for a group and other locations', () => {
  const wide = { roles: ['operator'], locations: ['club-1'], locationGroups: ['shared', 'sold'] };
  const right = 'operator at the groups shared';
  let ofShared: Operator;

  beforeAll(async () => {
    for (const id of ['shared-1', 'shared-2']) {
      const settings = { ordersUrl, unsigned: true };
      await admin.send('PUT', `/locations/${id}`, { integration: 'standard', settings, groups: ['shared'] });
    }
    ofShared = await askOperator(
      stage.app,
      (await issue({ name: 'admin of shared-1', roles: ['admin'], locations: ['shared-1'] })).token,
    );
  });

  it('is in the audit of each location where it applies, without the other locations', async () => {
    const { tokenId } = await issue({ name: 'shared token', ...wide });
    const grant = (await admin.post('/operators/grants', { group: 'shared grant', ...wide })).body as Grant;
    await admin.post(`/operators/tokens/${tokenId}/revoke`);
    await admin.post(`/operators/grants/${grant.grantId}/remove`);
    const rows = await stage.query(
      `SELECT location_id AS at, action, outcome, after FROM audit JOIN audit_outcomes USING (audit_id)
       WHERE after ~ 'shared (token|grant): ' AND location_id IS NOT NULL ORDER BY audit_id`,
    );
    const written = (action: string, after: string): object[] =>
      ['club-1', 'shared-1', 'shared-2'].map((at) => ({
        at,
        action,
        outcome: 'done',
        after: `${after}: ${at === 'club-1' ? 'operator at club-1' : right}`,
      }));
    expect(rows).toEqual([
      ...written('issue token', `${tokenId} shared token`),
      ...written('give roles', `${grant.grantId} shared grant`),
      ...written('revoke token', `${tokenId} shared token`),
      ...written('take roles', `${grant.grantId} shared grant`),
    ]);
    const { text } = await ofShared.get('/audit');
    expect(text).toContain(right);
    expect(text).not.toMatch(/club-1|sold|shared-2/);
  });

  it('is shown to an admin of one of these locations without the other locations', async () => {
    const { tokenId } = await issue({ name: 'shared by all', ...wide });
    const { grantId } = (await admin.post('/operators/grants', { group: 'shared by all', ...wide })).body as Grant;
    const seen = expect.objectContaining({ roles: ['operator'], locations: [], locationGroups: ['shared'] });
    expect((await tokensSeenBy(ofShared)).filter((each) => each.tokenId === tokenId)).toEqual([seen]);
    expect((await grantsSeenBy(ofShared)).filter((each) => each.grantId === grantId)).toEqual([seen]);
    for (const path of [`tokens/${tokenId}/revoke`, `grants/${grantId}/remove`])
      expect(await ofShared.post(`/operators/${path}`)).toMatchObject({ status: 404 });
    for (const list of ['tokens', 'grants'])
      expect((await ofShared.get(`/operators/${list}`)).text).not.toMatch(/club-1|sold|everywhere/);
  });
});

describe('a grant', () => {
  /** Somebody who signed in by OIDC, at the other process. */
  async function signedIn(email: string, groups: string[]): Promise<(path: string) => Promise<number>> {
    const who = { kind: 'person', id: `issuer ${email}`, name: email, email, groups } as const;
    const cookie = await startSession(stage.pool, { ...who, source: '127.0.0.1', userAgent: undefined });
    const headers = { cookie: `__Host-expediter_session=${cookie}`, 'sec-fetch-site': 'same-origin' };
    return async (path) => {
      other.invalidateCache();
      return (await sendAsIs(other.app, `/console/api${path}`, { headers })).status;
    };
  }
  const add = async (body: object, by = admin): Promise<Grant> => {
    const answer = await by.post('/operators/grants', body);
    expect(answer.status).toBe(200);
    return answer.body as Grant;
  };

  it('applies at once to people who are signed in', async () => {
    const get = await signedIn('anna@example.com', []);
    expect(await get('/locations')).toBe(401);
    const grant = await add({ email: 'Anna@Example.com', roles: ['viewer'], locations: ['club-1'] });
    expect(grant).toMatchObject({ email: 'anna@example.com', group: null, roles: ['viewer'], locations: ['club-1'] });
    expect(await get('/locations/club-1')).toBe(200);
    expect(await get('/locations/club-2')).toBe(404);

    expect((await admin.post(`/operators/grants/${grant.grantId}/remove`)).status).toBe(200);
    expect(await get('/locations/club-1')).toBe(401);
    expect((await admin.post(`/operators/grants/${grant.grantId}/remove`)).status).toBe(404);
    // What was given back opens no session of before.
    await add({ email: 'anna@example.com', roles: ['viewer'] });
    expect(await get('/locations/club-2')).toBe(401);
    const given = `${grant.grantId} anna@example.com: viewer at club-1`;
    expect((await actions('give roles', 'anna@example.com'))[0]).toMatchObject({ outcome: 'done', after: given });
    expect(await actions('take roles', 'anna@example.com')).toMatchObject([{ subject: grant.grantId, after: given }]);
  });

  it('applies to a group of people in addition to the grants to their addresses', async () => {
    const get = await signedIn('ben@example.com', ['kitchen']);
    await add({ group: 'kitchen', roles: ['viewer'], locations: ['club-2'] });
    expect(await get('/locations/club-2')).toBe(200);
    expect(await get('/locations/club-1')).toBe(404);
    await add({ email: 'ben@example.com', roles: ['viewer'], locations: ['club-1'] });
    expect(await get('/locations/club-1')).toBe(200);
  });

  it('that is given twice is stored once', async () => {
    const locations = ['club-1', 'club-2'];
    const first = await add({ group: 'twice', roles: ['admin', 'viewer'], locations });
    expect(first).toMatchObject({ roles: ['viewer', 'admin'], locations });
    const again = { group: 'twice', roles: ['viewer', 'admin', 'viewer'], locations: locations.toReversed() };
    expect((await add(again)).grantId).toBe(first.grantId);
    expect((await add({ ...again, locations: null })).grantId).not.toBe(first.grantId);
    const atOnce = await Promise.all(Array.from({ length: 5 }, () => add({ group: 'at once', roles: ['viewer'] })));
    expect(new Set(atOnce.map(({ grantId }) => grantId)).size).toBe(1);
  });

  it.each([
    ['neither an e-mail address nor a group', {}, 'body'],
    ['both an e-mail address and a group', { email: 'a@example.com', group: 'b' }, 'body'],
    ['an invalid e-mail address', { email: 'anna' }, 'email'],
    ['a group without a name', { group: '' }, 'group'],
  ])('is answered 400 for %s', async (_what, to, field) => {
    expect(await admin.post('/operators/grants', { roles: ['viewer'], ...to })).toMatchObject({
      status: 400,
      body: { issues: [{ path: field }] },
    });
  });
});

it('rights at a location are removed with the location, and do not apply to a later location with the same id', async () => {
  await stage.addLocation('club-3', { ordersUrl });
  const alone = await issue({ name: 'of club-3', roles: ['admin'], locations: ['club-3'] });
  const both = await issue({ name: 'of two', roles: ['viewer'], locations: ['club-1', 'club-3'] });
  for (const locations of [['club-3'], ['club-1', 'club-3']]) {
    const group = `at ${locations.join()}`;
    await admin.post('/operators/grants', { group, roles: ['viewer'], locations });
  }
  await pauseLocation(stage.pool, 'club-3');
  expect(await removeLocation(stage.pool, 'club-3')).toMatchObject({ tokens: 0 });
  await stage.addLocation('club-3', { ordersUrl });
  expect(await statusOf(alone.token, '/v1/locations/club-3')).toBe(401);
  expect(await statusOf(both.token, '/v1/locations/club-1')).toBe(200);
  expect(await statusOf(both.token, '/v1/locations/club-3')).toBe(404);
  expect((await grantsSeenBy(admin)).filter(({ group }) => String(group).startsWith('at club'))).toMatchObject([
    { group: 'at club-1,club-3', locations: ['club-1'] },
  ]);
});
