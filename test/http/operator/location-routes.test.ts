import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { etagOf } from '../../../src/core/locations/put-location.ts';
import { z } from 'zod';
import { NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import type { PosContext, Provider } from '../../../src/core/domain/provider.ts';
import { OPERATOR_TOKEN, askOperator, type Operator, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import type { Role } from '../../../src/core/operators/operator.ts';
import { nameToken } from '../../../world/system/log-in.ts';
import { statusWebhook } from '../../../world/pos/status-webhook.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { until } from '../../../world/processes/until.ts';

type Location = Record<string, unknown> & {
  settings: Readonly<Record<string, { fingerprint?: string }>> & { key: { fingerprint?: string } };
  locationId: string;
  lastSeenAt: string | null;
  webhooks: number[];
  errors: number[];
};
type Token = Record<string, unknown> & { tokenId: string; state: string };

const SECRET = 'the-secret-of-a-till';
const ordersUrl = 'http://127.0.0.1:9/orders';
const check = vi.fn<(context: PosContext<unknown>) => Promise<string | void>>();

/** A POS that can be asked whether its settings are right. */
const asked: Provider = {
  integration: 'asked',
  settings: z.object({ key: z.string(), menu: z.record(z.string(), z.string()).meta({ shown: true }).optional() }),
  deduplicates: true,
  createOrder: async () => ({}),
  translateWebhook: () => [],
  check,
};
const unasked: Provider = { ...asked, integration: 'unasked' };
delete unasked.check;

const BY = { kind: 'operator_token', id: 'operator_token', name: 'OPERATOR_TOKEN' };

let stage: Stage;
let operator: Operator;

beforeAll(async () => {
  stage = await startStage({
    providers: [asked, unasked],
    env: { OPERATOR_TOKEN, PUBLIC_URL: 'https://expediter.test' },
  });
  operator = await askOperator(stage.app);
  await stage.addLocation('club/1', { ordersUrl });
  await stage.addLocation('silent', { ordersUrl, cancelUrl: ordersUrl });
  await stage.addLocation('asked-1', { key: SECRET }, 'asked');
  await stage.addLocation('unasked-1', { key: SECRET }, 'unasked');
});
afterAll(() => stage?.stop());

const audited = async (action: string, about: object): Promise<unknown> => {
  const { body } = await operator.get(`/audit?action=${encodeURIComponent(action)}&limit=200`);
  return expect(body['actions']).toContainEqual(
    expect.objectContaining({ by: BY, source: '127.0.0.1', action, outcome: 'done', ...about }),
  );
};
const sum = (list: readonly number[]): number => list.reduce((total, count) => total + count, 0);
const show = async (id: string): Promise<Location & { tokens: Token[] }> => {
  const { status, body } = await operator.get(`/locations/${encodeURIComponent(id)}`);
  expect(status).toBe(200);
  return body as Location & { tokens: Token[] };
};

describe('the answer about a location', () => {
  it('shows the number of webhooks and errors of the last hour at all processes', async () => {
    const path = await stage.webhookPath('club/1');
    const about = { databaseUrl: stage.databaseUrl };
    const [one, other] = await Promise.all([startStage(about), startStage(about)]);
    for (const each of [one, other, other])
      expect((await each.post(path, { eventType: 'menu.changed' })).status).toBe(200);
    expect((await one.post(path, 'not json')).body).toMatchObject({ outcome: 'dropped' });
    expect((await one.post(path.replace(/token=.*/, 'token=wrong'), {})).status).toBe(401);

    // Both write what they heard as they stop, and the third is asked.
    await Promise.all([one.stop(), other.stop()]);
    const heard = await show('club/1');
    expect(sum(heard.errors)).toBe(2);
    expect([heard.webhooks.length, heard.errors.length]).toEqual([12, 12]);
    // It may have been at the turn of five minutes.
    expect(sum(heard.webhooks.slice(-2))).toBe(5);
    expect(Math.abs(Date.parse(heard.lastSeenAt ?? '') - Date.now())).toBeLessThan(20_000);

    const { body } = await operator.get('/locations');
    const locations = body['locations'] as Location[];
    expect(locations.map(({ locationId }) => locationId)).toEqual(['asked-1', 'club/1', 'silent', 'unasked-1']);
    expect(heard['grant']).toBeNull();
    expect(heard).toEqual(expect.objectContaining(locations[1]));
    expect(locations[2]).toMatchObject({ lastSeenAt: null, webhooks: zeros(), errors: zeros(), pausedAt: null });
  });

  it('counts no webhook that is over an hour old or came through another integration', async () => {
    await stage.addLocation('moved', { key: SECRET }, 'asked');
    await stage.query(`INSERT INTO location_last_seen VALUES ('moved', 'standard', now())`);
    const drops = (ago: number, notStored: number): Promise<unknown> =>
      stage.query(
        `INSERT INTO dropped_bytes VALUES ('moved', (now() AT TIME ZONE 'UTC')::date - $1::int, 1, $2)
         ON CONFLICT (location_id) DO UPDATE SET day = excluded.day, not_stored = excluded.not_stored`,
        [ago, notStored],
      );
    await drops(1, 7);
    expect(await show('moved')).toMatchObject({ notStored: 0 });
    await drops(0, 8);
    expect(await show('moved')).toMatchObject({ notStored: 8 });
    await stage.query(
      `INSERT INTO traffic SELECT 'moved', date_trunc('minute', now()) - make_interval(mins => n), 'asked', 'webhook', 'dropped', 1
       FROM generate_series(0, 120) AS n`,
    );
    const { lastSeenAt, webhooks, errors } = await show('moved');
    expect(lastSeenAt).toBeNull();
    expect(webhooks.slice(0, 11)).toEqual(Array.from({ length: 11 }, () => 5));
    expect(webhooks.at(-1)).toBeLessThanOrEqual(5);
    expect(errors).toEqual(webhooks);
  });

  it('shows in how many days its connection to the POS expires', async () => {
    await stage.addLocation('ending', { ordersUrl });
    const keep = (seed: string, lastsS: number | null): Promise<unknown> =>
      stage.query(
        `WITH kept AS (
           INSERT INTO credentials (seed_sha256, integration, granted_at, lasts_s)
           VALUES ($1::text::bytea, 'standard', now() - interval '1 day', $2::integer)
         )
         UPDATE locations SET grant_sha256 = $1::text::bytea WHERE location_id = 'ending'`,
        [seed, lastsS],
      );
    await keep('ends', 2.5 * 86_400);
    const { grant } = (await show('ending')) as { grant?: Record<string, unknown> };
    const days = (from: unknown, to: unknown): number =>
      (Date.parse(String(to)) - Date.parse(String(from))) / 86_400_000;
    expect(days(grant?.['grantedAt'], grant?.['lastsUntil'])).toBeCloseTo(2.5);
    expect(grant?.['daysLeft']).toBe(1);
    await keep('has ended', 3600);
    expect(await show('ending')).toMatchObject({ grant: { daysLeft: -1 } });
    await keep('never ends', null);
    expect(await show('ending')).toMatchObject({ grant: { daysLeft: null, lastsUntil: null } });
  });

  it('shows the webhook tokens with their state, and no secret', async () => {
    const [valid, expired] = [await newToken('club/1'), await newToken('club/1')];
    const change = (assignments: string, { tokenId }: { tokenId: string }): Promise<unknown> =>
      stage.query(`UPDATE webhook_tokens SET ${assignments} WHERE token_id = $1`, [tokenId]);
    await change(`label = 'till', expires_at = now() - interval '1 min'`, expired);
    await change(`integration = 'asked'`, await newToken('club/1'));
    const shown = await show('club/1');
    expect(shown).toMatchObject({
      webhookUrl: 'https://expediter.test/webhook/standard/club%2F1',
      knows: { check: false, cancel: false, menuOnly: false, connect: false },
    });
    const states = shown.tokens.map(({ state }) => state);
    expect(states).toEqual(['valid', 'valid', 'expired', 'of another integration']);
    expect(shown.tokens[1]).toEqual({
      tokenId: valid.tokenId,
      label: null,
      integration: 'standard',
      state: 'valid',
      createdAt: expect.any(String),
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: null,
    });
    expect(shown.tokens[2]).toMatchObject({ label: 'till' });
    expect(await show('asked-1')).toMatchObject({ knows: { check: true, cancel: false, connect: false } });
    expect(await show('silent')).toMatchObject({ knows: { cancel: true } });
    const everything = JSON.stringify([shown, await show('asked-1')]);
    for (const secret of [valid.token, expired.token, SECRET]) expect(everything).not.toContain(secret);
    expect(shown).toMatchObject({
      settings: { ordersUrl: { origin: 'http://127.0.0.1:9/…' }, unsigned: { value: true } },
    });
    expect(await show('asked-1')).toMatchObject({
      settings: { key: { fingerprint: expect.stringMatching(/^[0-9a-f]{12}$/) } },
    });
  });
});

it('a pause and its end are shown at once by the kitchen, also while no job settles it', async () => {
  const kitchen = async (): Promise<unknown> => (await show('silent'))['kitchen'];
  await operator.post('/locations/silent/pause', { reason: 'The oven is broken.' });
  expect(await kitchen()).toMatchObject({ state: 'closed', source: 'operator', reason: 'The oven is broken.' });
  await operator.post('/locations/silent/resume');
  expect(await kitchen()).toMatchObject({ state: 'open' });
});

describe('a check of a location', () => {
  it('calls the POS with the settings of the location, even if the location is paused', async () => {
    check.mockResolvedValueOnce();
    expect((await operator.post('/locations/asked-1/pause')).status).toBe(200);
    const { status, body } = await operator.post('/locations/asked-1/check');
    expect([status, body]).toEqual([200, { locationId: 'asked-1', state: 'ok' }]);
    expect(check.mock.lastCall?.[0]).toMatchObject({ settings: { key: SECRET } });
    await audited('check', { locationId: 'asked-1', after: 'ok' });
    expect((await operator.post('/locations/asked-1/resume')).status).toBe(200);
  });

  it('answers the state failed with the problem and what to do', async () => {
    check.mockRejectedValueOnce(new NeedsOperator('key: the POS refuses it'));
    expect((await operator.post('/locations/asked-1/check')).body).toEqual({
      locationId: 'asked-1',
      state: 'failed',
      problem: 'key: the POS refuses it',
      toDo: expect.stringContaining('location change --settings - asked-1') as string,
    });
    check.mockRejectedValueOnce(new TryAgain('HTTP 503', { sent: false }));
    expect((await operator.post('/locations/asked-1/check')).body).toMatchObject({ state: 'failed' });
    await audited('check', { locationId: 'asked-1', after: 'failed' });
  });

  it('answers the state unchecked if the POS has no call for a check', async () => {
    expect((await operator.post('/locations/unasked-1/check')).body).toEqual({
      locationId: 'unasked-1',
      state: 'unchecked',
      detail: expect.stringContaining('this POS has no call') as string,
    });
  });

  it('shows no secret, even if the settings cannot be read', async () => {
    await stage.addLocation('broken', { key: SECRET }, 'asked');
    await stage.query(`UPDATE locations SET integration = 'standard' WHERE location_id = 'broken'`);
    const { body, text } = await operator.post('/locations/broken/check');
    expect(body).toMatchObject({ state: 'failed', problem: expect.stringContaining('ordersUrl') });
    expect(text + stage.logged.join('')).not.toContain(SECRET);
  });

  it('does not delay a process that stops', async () => {
    const hanging = await startStage({ databaseUrl: stage.databaseUrl, providers: [asked] });
    const hers = await askOperator(await hanging.listen());
    check.mockClear();
    check.mockImplementationOnce(() => new Promise(() => {}));
    const asking = hers.post('/locations/asked-1/check');
    await until(() => check.mock.calls.length === 1);
    await hanging.stop();
    expect((await asking).status).toBe(503);
  });
});

describe('a webhook token', () => {
  it('is refused after its revocation, but still listed', async () => {
    const [{ tokenId, token }, other] = [await newToken('silent'), await newToken('silent')];
    const knock = async (key: string): Promise<number> =>
      (await stage.post(`/webhook/standard/silent?token=${key}`, { eventType: 'menu.changed' })).status;
    const path = `/locations/silent/tokens/${tokenId}`;
    const { status, body } = await operator.send('DELETE', path);
    expect([status, body]).toEqual([200, { tokenId, revoked: true }]);
    await audited('revoke', { locationId: 'silent', subject: tokenId });
    expect([await knock(token), await knock(other.token)]).toEqual([401, 200]);
    const [shown] = (await show('silent')).tokens;
    expect(shown).toMatchObject({ tokenId, state: 'revoked', revokedAt: expect.any(String) });
    expect((await operator.send('DELETE', path)).status).toBe(200);
    expect((await show('silent')).tokens[0]).toEqual(expect.objectContaining({ revokedAt: shown?.['revokedAt'] }));
  });

  it('cannot be revoked through another location', async () => {
    const { tokenId } = await newToken('silent');
    expect((await operator.send('DELETE', `/locations/asked-1/tokens/${tokenId}`)).status).toBe(404);
    expect((await show('silent')).tokens.find((each) => each.tokenId === tokenId)).toMatchObject({ state: 'valid' });
  });
});

describe('a location by the API', () => {
  const standard = (more: object = {}): object => ({
    integration: 'standard',
    settings: { ordersUrl, unsigned: true },
    ...more,
  });
  const put = (id: string, body: object, headers = {}, query = ''): Promise<OperatorAnswer> =>
    operator.send('PUT', `/locations/${id}${query}`, body, headers);
  const patch = (id: string, body: object, headers = {}, query = ''): Promise<OperatorAnswer> =>
    operator.send('PATCH', `/locations/${id}${query}`, body, headers);
  const remove = (id: string, query = '', headers = {}): Promise<OperatorAnswer> =>
    operator.send('DELETE', `/locations/${id}${query}`, undefined, headers);
  const rowOf = async (id: string): Promise<unknown> =>
    (await stage.query('SELECT * FROM locations WHERE location_id = $1', [id]))[0];
  const lastAudited = async (): Promise<Record<string, unknown> | undefined> => {
    const [row] = await stage.query(
      `SELECT action, location_id, outcome, before, after FROM audit JOIN audit_outcomes USING (audit_id)
       ORDER BY audit_id DESC LIMIT 1`,
    );
    return row;
  };

  it('is created by the first PUT, and is replaced completely by the next PUT', async () => {
    const details = {
      name: ' Trattoria Nord ',
      timeZone: 'Europe/Berlin',
      country: 'de',
      contacts: [{ name: 'Ada', phone: '+4930123456' }],
      groups: ['berlin', 'brand-nord', 'berlin'],
      address: 'Hafenstr. 1, 20457 Hamburg',
      backOfficeUrl: 'https://pos.example.com/nord',
    };
    const created = await put('new-1', standard(details));
    expect(created).toMatchObject({ status: 201, body: { created: true, validTokens: 0 } });
    const etag = String(created.body['etag']);
    expect(created.headers.get('etag')).toBe(etag);
    expect(await show('new-1')).toMatchObject({
      ...details,
      name: 'Trattoria Nord',
      country: 'DE',
      groups: ['berlin', 'brand-nord'],
      etag,
    });
    const before = await rowOf('new-1');
    for (const same of [() => put('new-1', standard(details)), () => patch('new-1', { country: 'DE', settings: {} })]) {
      expect(await same()).toMatchObject({ status: 200, body: { created: false, changes: [], etag } });
    }
    expect(await rowOf('new-1')).toEqual(before);

    expect((await put('new-1', standard())).body).toMatchObject({ created: false });
    const none = Object.entries(details).map(([name, value]) => [name, Array.isArray(value) ? [] : null]);
    expect(await show('new-1')).toMatchObject(Object.fromEntries(none));
  });

  it('has the same ETag as in the previous version of Expediter if it has no newer details', () => {
    const row = { integration: 'standard', sealedSettings: 'sealed', name: 'Club', timeZone: null, country: 'DE' };
    const tag = (address: string | null): string =>
      etagOf({ ...row, contacts: [], groups: ['nord'], address, backOfficeUrl: null });
    expect(tag(null)).toBe('"e2homIXXRH-ze_qviQhl1E"');
    expect(tag('Hafenstr. 1')).not.toBe(tag(null));
  });

  it('stores how to notify a contact, and answers 400 if that is impossible', async () => {
    const contact = { email: 'kitchen@nord.example', via: 'email', quiet: { from: '22:00', to: '08:00' } };
    const more = { ...contact, afterMinutes: 10, language: 'de', about: ['in_doubt'] };
    const stored = await put('told', standard({ contacts: [more], timeZone: 'Europe/Berlin' }));
    expect(stored).toMatchObject({ status: 201 });
    expect(await show('told')).toMatchObject({ contacts: [more] });
    const phone = { phone: '+4930123456' };
    for (const [wrong, detail] of [
      [{ contacts: [contact] }, /timeZone is required, because a contact has quiet hours/],
      [{ contacts: [{ ...phone, via: 'email' }] }, /needs an email to be told by email/],
      [{ contacts: [{ ...phone, via: 'webhook', afterMinutes: 121 }] }, /afterMinutes/],
      [{ contacts: [{ ...phone, quiet: { from: '24:00', to: '08:00' } }] }, /is not a time such as 22:00/],
    ] as const) {
      const refused = await put('told', standard(wrong));
      expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringMatching(detail)]);
    }
  });

  it('stores the telephone numbers of contacts in E.164, also those as they are dialled in its country', async () => {
    const phones = (id: string): Promise<unknown> =>
      show(id).then(({ contacts }) => (contacts as { phone: string }[]).map(({ phone }) => phone));
    const national = [{ phone: '030 / 123456' }, { phone: '+33 1 23 45 67 89' }, { phone: '+493012345' }];
    await put('dialled', standard({ country: 'de', contacts: national }));
    const stored = ['+4930123456', '+33123456789', '+493012345'];
    expect(await phones('dialled')).toEqual(stored);
    // The stored country counts, and what is stored already is no change.
    expect((await patch('dialled', { contacts: national })).body).toMatchObject({ changes: [] });
    await patch('dialled', { country: 'FR', contacts: [{ phone: '01 23 45 67 89' }] });
    expect(await phones('dialled')).toEqual(['+33123456789']);
  });

  it.each([
    [
      'a national number without a country',
      { contacts: [{ phone: '030 123456' }] },
      'cannot be read as',
      ', or give the country of the location',
    ],
    ['a number that no telephone has', { country: 'DE', contacts: [{ phone: '030 12' }] }, 'cannot be read as'],
    ['a number that ends too early', { country: 'DE', contacts: [{ phone: '12' }] }, 'has too few digits for'],
    ['such a number in E.164', { contacts: [{ phone: '+1234567' }] }, 'has too few digits for'],
  ])('with %s is answered 400 with what to write', async (_, details, what, more = '') => {
    const { status, body } = await put('dialled', standard(details));
    const says = expect.stringMatching(new RegExp(`^${what} a telephone number\\. .* such as \\+4930123456${more}$`));
    expect([status, body['issues']]).toEqual([400, [{ path: 'contacts.0.phone', received: 'string', says }]]);
  });

  describe('that has contacts who answer for orders', () => {
    const contact = { name: 'Kitchen', email: 'kitchen@nord.example', via: 'email' };
    const groups = ['answering'];
    const by = async (...roles: Role[]): Promise<Operator> =>
      askOperator(stage.app, await nameToken(stage, `${roles.join()} of answering`, roles, [], groups));

    it('lets only operators change these contacts, and answers 403 to an integrator', async () => {
      const [integrator, both] = [await by('integrator'), await by('integrator', 'operator')];
      await put('answering', standard({ contacts: [contact], groups }));
      const changed = [
        { ...contact, email: 'me@evil.example' },
        { ...contact, about: ['in_doubt'] },
        { phone: '+4930123456', via: 'webhook' },
      ];
      const before = await rowOf('answering');
      for (const each of changed) {
        for (const [method, id, query, body] of [
          ['PATCH', 'answering', '', { contacts: [contact, each] }],
          ['PATCH', 'answering', '?dryRun=true', { contacts: [each] }],
          ['PUT', 'answering', '', standard({ contacts: [each], groups })],
          ['PUT', 'answering:2', '', standard({ contacts: [each], groups })],
        ] as const) {
          expect(await integrator.send(method, `/locations/${id}${query}`, body)).toMatchObject({
            status: 403,
            body: {
              detail: expect.stringMatching(/^contacts: .* the role operator .* Leave out `via`/),
              cause: { code: 'role_missing', roles: ['operator'] },
            },
          });
        }
      }
      expect([await rowOf('answering'), await rowOf('answering:2')]).toEqual([before, undefined]);
      const shown = { email: 'owner@nord.example' };
      for (const contacts of [[shown, contact], [shown]]) {
        const kept = await integrator.send('PUT', '/locations/answering', standard({ contacts, groups }));
        expect(kept).toMatchObject({ status: 200 });
      }
      expect((await integrator.send('PATCH', '/locations/answering', { contacts: [contact] })).status).toBe(403);
      expect((await both.send('PATCH', '/locations/answering', { contacts: changed })).status).toBe(200);
      expect((await both.send('PUT', '/locations/answering:2', standard({ contacts: changed, groups }))).status).toBe(
        201,
      );
      const [row] = await stage.query(
        `SELECT actor_name AS by, after FROM audit JOIN audit_outcomes USING (audit_id)
         WHERE location_id = 'answering' AND after LIKE '%contacts%' ORDER BY audit_id DESC LIMIT 1`,
      );
      expect(row).toEqual({ by: 'integrator,operator of answering', after: '{"contacts":"changed"}' });
    });

    it('allows one test of its contacts a minute, and fifty tests a day to each caller', async () => {
      for (const id of ['tested', 'tested-2']) await put(id, standard({ contacts: [contact], groups: ['answering'] }));
      const test = (id: string, as = operator): Promise<OperatorAnswer> => as.post(`/locations/${id}/contacts/test`);
      const refused = (detail: RegExp): object => ({ status: 409, body: { detail: expect.stringMatching(detail) } });
      const pass = (minutes: number): Promise<unknown> =>
        stage.query(`UPDATE audit SET at = at - make_interval(mins => $1) WHERE action = 'test contacts'`, [minutes]);
      const another = await by('integrator', 'viewer');
      expect((await test('tested')).status).toBe(200);
      expect(await test('tested')).toMatchObject(refused(/within the last minute/));
      expect(await test('tested', another)).toMatchObject(refused(/within the last minute/));
      const atOnce = await Promise.all(Array.from({ length: 5 }, () => test('tested-2')));
      expect(atOnce.filter(({ status }) => status === 200).length).toBeLessThan(2);
      await pass(2);
      await stage.query(
        `INSERT INTO audit (actor_kind, actor_id, actor_name, action, location_id)
         SELECT 'operator_token', 'operator_token', 'OPERATOR_TOKEN', 'test contacts', 'nowhere' FROM generate_series(1, 50)`,
      );
      expect(await test('tested')).toMatchObject(refused(/50 tests within a day/));
      expect((await test('tested', another)).status).toBe(200);
      await pass(25 * 60);
      expect((await test('tested')).status).toBe(200);
    });
  });

  it('is created by only one of many simultaneous requests', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, (_, nth) => put('once', standard({ name: `${nth}` }))));
    expect(all.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(all.filter(({ status }) => status === 200)).toHaveLength(7);
  });

  it('is changed by a merge patch, which keeps a secret that it leaves out', async () => {
    await put('patched', {
      integration: 'asked',
      settings: { key: SECRET, site: 'one', more: { a: 1, b: 2 } },
      name: 'A',
    });
    const { fingerprint } = (await show('patched')).settings.key;
    expect(await patch('patched', { settings: { site: null, more: { b: null, c: 3 } }, name: null })).toMatchObject({
      status: 200,
      body: { changes: expect.arrayContaining([{ field: 'name', before: 'A', after: null }]) },
    });
    const { settings, name } = await show('patched');
    expect([Object.keys(settings).toSorted(), settings.key.fingerprint, name]).toEqual([
      ['key', 'more'],
      fingerprint,
      null,
    ]);
    check.mockResolvedValueOnce();
    await operator.post('/locations/patched/check');
    expect(check.mock.lastCall?.[0]).toMatchObject({ settings: { key: SECRET } });

    expect((await patch('patched', { settings: { key: 'another' } })).status).toBe(200);
    expect((await show('patched')).settings.key.fingerprint).not.toBe(fingerprint);
    // The settings of another POS are other settings.
    expect((await patch('patched', { integration: 'standard' })).status).toBe(400);
    expect((await patch('patched', standard())).status).toBe(200);
    expect(Object.keys((await show('patched')).settings)).toEqual(['ordersUrl', 'unsigned']);
    expect((await patch('patched', {})).status).toBe(400);
  });

  it('sends no secret to another host: a changed host without the secret is answered 400', async () => {
    const [secret, other] = [1, 2].map((byte) => `whsec_${Buffer.alloc(24, byte).toString('base64')}`);
    const at = (host: string): object => ({ ordersUrl: `http://${host}/orders` });
    await put('hosted', { integration: 'standard', settings: { ...at('127.0.0.1:9'), secret } });
    for (const more of [at('127.0.0.1:10'), { statusUrl: 'http://127.0.0.1:10/' }]) {
      expect(await patch('hosted', { settings: more })).toMatchObject({
        status: 400,
        body: { detail: expect.stringMatching(/another host.*: secret$/) },
      });
    }
    for (const settings of [
      { ordersUrl: 'http://127.0.0.1:9/elsewhere' },
      { ...at('127.0.0.1:10'), secret: other },
      { ...at('127.0.0.1:9'), secret: null, unsigned: true },
    ]) {
      expect((await patch('hosted', { settings })).status).toBe(200);
    }
  });

  it('is not changed with the ETag of an older state, which is answered 412', async () => {
    const { body } = await put('raced', standard());
    const [old, now] = [String(body['etag']), String((await patch('raced', { name: 'B' })).body['etag'])];
    const before = await rowOf('raced');
    const stale = { 'if-match': old };
    const attempts = [
      () => put('raced', standard(), stale),
      () => patch('raced', { name: 'C' }, stale),
      () => remove('raced', '?unpaused=true', stale),
    ];
    for (const attempt of attempts) {
      expect(await attempt()).toMatchObject({ status: 412, body: { type: 'urn:expediter:problem:changed-meanwhile' } });
    }
    expect(await rowOf('raced')).toEqual(before);
    expect((await put('nowhere', standard(), { 'if-match': '*' })).status).toBe(412);
    expect(await rowOf('nowhere')).toBeUndefined();
    expect((await put('raced', standard(), { 'if-match': 'nonsense' })).status).toBe(400);
    // Somebody else created it meanwhile.
    expect((await put('raced', standard(), { 'if-none-match': '*' })).status).toBe(412);
    expect((await put('raced', standard(), { 'if-none-match': now })).status).toBe(400);
    expect((await put('raced-too', standard(), { 'if-none-match': '*' })).status).toBe(201);
    expect((await patch('raced', { name: 'C' }, { 'if-match': `${old}, ${now}` })).status).toBe(200);
    expect((await remove('raced', '?unpaused=true', { 'if-match': '*' })).status).toBe(200);
  });

  it('keeps its integration while its POS has open orders, unless anyway=true is given', async () => {
    await put('leaving', standard());
    const [path, later] = [await stage.webhookPath('leaving'), await stage.webhookPath('leaving')];
    const other = { integration: 'asked', settings: { key: SECRET } };
    await stage.seedOrder({ serviceOrderId: 'at-the-till', locationId: 'leaving' });
    for (const change of [put, patch]) {
      for (const query of ['', '?dryRun=true']) {
        const { status, body } = await change('leaving', other, {}, query);
        expect([status, body['detail']]).toEqual([409, expect.stringMatching(/at-the-till \(sent\).*anyway=true/)]);
      }
      expect((await change('leaving', standard({ name: 'B' }))).status).toBe(200);
    }
    expect((await patch('leaving', other, {}, '?anyway=true')).status).toBe(200);

    const says = (status: string): object => statusWebhook({ serviceOrderId: 'at-the-till', status });
    expect(await stage.post(path, says('ready'))).toMatchObject({ status: 200, body: { outcome: 'applied' } });
    expect(await stage.order('at-the-till')).toMatchObject({ status: 'ready' });
    await stage.query(`UPDATE orders SET ended_at = now() WHERE service_order_id = 'at-the-till'`);
    expect((await stage.post(later, says('completed'))).status).toBe(401);
  });

  it('can change its integration while its orders wait', async () => {
    await put('waiting', standard());
    await stage.seedOrder({ serviceOrderId: 'waits', locationId: 'waiting' });
    await stage.query(`UPDATE placements SET state = 'waiting', finished_at = NULL WHERE service_order_id = 'waits'`);
    expect((await patch('waiting', { integration: 'asked', settings: { key: SECRET } })).status).toBe(200);
  });

  it('is not changed by a dry run, which answers the changes', async () => {
    const { body } = await put('dry', standard({ groups: ['berlin'] }));
    const before = [await rowOf('dry'), await lastAudited()];
    const dry = '?dryRun=true';
    expect(await put('not-yet', standard(), {}, dry)).toMatchObject({
      status: 200,
      body: { created: true, etag: null },
    });
    const replaced = await put('dry', { integration: 'asked', settings: { key: SECRET } }, {}, dry);
    expect(replaced).toMatchObject({ status: 200, body: { created: false, integration: 'asked', etag: body['etag'] } });
    expect(replaced.headers.get('etag')).toBe(body['etag']);
    expect((await patch('dry', { groups: [] }, {}, dry)).body['changes']).toEqual([
      { field: 'groups', before: '["berlin"]', after: null },
    ]);
    expect((await remove('dry', dry)).status).toBe(409);
    expect(await remove('dry', `${dry}&unpaused=true`)).toMatchObject({ status: 200, body: { tokens: 0 } });
    expect([await rowOf('dry'), await lastAudited(), await rowOf('not-yet')]).toEqual([...before, undefined]);
  });

  it('answers the keys of a map that changed, but not of very many', async () => {
    const changes = async (menu: object): Promise<unknown> =>
      (await put('mapped', { integration: 'asked', settings: { key: SECRET, menu } })).body['changes'];
    await changes({});
    expect(await changes({ tea: '1' })).toEqual([{ field: 'settings.menu.tea', before: null, after: '1' }]);
    expect(await changes({ tea: '2', cake: '3' })).toEqual([
      { field: 'settings.menu.tea', before: '1', after: '2' },
      { field: 'settings.menu.cake', before: null, after: '3' },
    ]);
    expect(await changes({ cake: '3' })).toEqual([{ field: 'settings.menu.tea', before: '2', after: null }]);
    const whole = Object.fromEntries(Array.from({ length: 1_000 }, (_, nth) => [`item ${nth}`, String(nth)]));
    expect(await changes(whole)).toEqual([
      { field: 'settings.menu', before: '{"cake":"3"}', after: expect.stringMatching(/^.{200}…$/) },
    ]);
  });

  it('is in the audit with its state before and after a change, without secrets and contacts', async () => {
    const contacts = [{ email: 'ada@example.com' }];
    await put('audited', { integration: 'asked', settings: { key: SECRET }, contacts, groups: ['berlin'] });
    const about = { location_id: 'audited', outcome: 'done' };
    const read = (json: unknown): unknown => JSON.parse(String(json));
    const lastChange = async (): Promise<object> => {
      const row = await lastAudited();
      return { ...row, before: read(row?.['before']), after: read(row?.['after']) };
    };
    expect(await lastChange()).toEqual({
      ...about,
      action: 'put',
      before: { integration: null, groups: null, contacts: null, 'settings.key': null },
      after: { integration: 'asked', groups: '["berlin"]', contacts: 'set', 'settings.key': 'set' },
    });
    await patch('audited', { settings: { key: 'another' }, contacts: [{ phone: '+4930123456' }], name: 'Nord' });
    expect(await lastChange()).toEqual({
      ...about,
      action: 'change',
      before: { name: null, contacts: 'set', 'settings.key': 'set' },
      after: { name: 'Nord', contacts: 'changed', 'settings.key': 'changed' },
    });
    await remove('audited', '?unpaused=true');
    expect(await lastAudited()).toMatchObject({ ...about, action: 'remove' });
  });

  it('is refused with settings of more than 20 levels', async () => {
    expect((await put('deep', { integration: 'asked', settings: { key: SECRET } })).status).toBe(201);
    const deep = `{"settings":${'{"more":'.repeat(25)}1${'}'.repeat(25)}}`;
    const { status, body } = await operator.send('PATCH', '/locations/deep', deep);
    expect([status, body['detail']]).toEqual([400, 'settings: has more than 20 levels']);
  });

  it('is refused for an address that may not be called, also while it has no secret yet', async () => {
    const settings = { ordersUrl: 'http://pos.example.com/orders' };
    const { status, body } = await put('wrong', standard({ settings }));
    expect([status, body['issues']]).toEqual([400, [expect.objectContaining({ path: 'settings.ordersUrl' })]]);
  });

  it.each([
    ['groups', ['']],
    ['country', 'XX'],
    ['timeZone', 'Mars/Olympus'],
    ['contacts', [{ name: 'Ada' }]],
    ['contacts', [{ phone: '030 123' }]],
    ['name', ' '],
    ['address', 'x'.repeat(301)],
    ['backOfficeUrl', 'http://pos.example.com/nord'],
    ['backOfficeUrl', 'https://ada:secret@pos.example.com/nord'],
    ['settings', { ordersUrl: 'http://10.0.0.1/orders', unsigned: true }],
    ['integration', 'nobody'],
  ])('is not stored with a wrong %s: %j', async (field, value) => {
    let closed = 0;
    stage.pool.on('release', (error: unknown) => void (closed += error instanceof Error ? 1 : 0));
    const answer = await put('wrong', standard({ [field]: value }));
    expect([answer.status, answer.body['detail']]).toEqual([400, expect.stringContaining(field.slice(0, 7))]);
    expect(await rowOf('wrong')).toBeUndefined();
    expect(closed, 'connections to Postgres that it cost').toBe(0);
  });

  it('is removed only if it is paused, otherwise the answer is 409', async () => {
    await put('gone', standard());
    expect((await remove('gone')).status).toBe(409);
    await operator.post('/locations/gone/pause');
    expect(await remove('gone')).toMatchObject({ status: 200, body: { locationId: 'gone', removed: true, tokens: 0 } });
    expect((await remove('gone')).status).toBe(404);
  });

  it('gives the same caller the same token for the same Idempotency-Key', async () => {
    await put('keyed', standard());
    const other = await askOperator(stage.app, await nameToken(stage, 'another integrator', ['integrator']));
    const issue = (key: string, body: object = {}, by = operator): Promise<OperatorAnswer> =>
      by.post('/locations/keyed/tokens', body, { 'idempotency-key': key });
    const all = await Promise.all(Array.from({ length: 5 }, () => issue('key-number-1', { label: 'till' })));
    const [first] = all;
    expect(new Set(all.map(({ text }) => text)).size).toBe(1);
    expect(first).toMatchObject({ status: 200, body: { token: expect.stringMatching(/^exw_[\w-]{49}$/) } });
    expect((await stage.post(String(first?.body['url']).replace('https://expediter.test', ''), {})).status).toBe(200);
    expect((await show('keyed')).tokens).toHaveLength(1);

    expect(await issue('key-number-1', { label: 'bar' })).toMatchObject({ status: 422 });
    const others = [
      await issue('key-number-2', { label: 'till' }),
      await issue('key-number-1', { label: 'till' }, other),
    ];
    others.push(await operator.post('/locations/keyed/tokens'));
    expect((await issue('short')).status).toBe(400);
    expect((await operator.send('DELETE', `/locations/keyed/tokens/${String(first?.body['tokenId'])}`)).status).toBe(
      200,
    );
    const again = await issue('key-number-1', { label: 'till' });
    expect(again).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining('no longer valid') as string },
    });
    expect(again.text).not.toContain('exw_');
    expect(await issue('key-number-1', { label: 'bar' })).toMatchObject({ status: 422 });
    await remove('keyed', '?unpaused=true');
    await put('keyed', standard());
    others.push(await issue('key-number-1', { label: 'till' }));
    expect(new Set([first, ...others].map((each) => each?.body['token'])).size).toBe(5);
  });
});

function zeros(): number[] {
  return Array.from({ length: 12 }, () => 0);
}

async function newToken(locationId: string): Promise<{ tokenId: string; token: string }> {
  const token = (await stage.webhookPath(locationId)).split('token=')[1] ?? '';
  const [row] = await stage.query(
    'SELECT token_id FROM webhook_tokens WHERE location_id = $1 ORDER BY created_at DESC LIMIT 1',
    [locationId],
  );
  return { tokenId: String(row?.['token_id']), token };
}
