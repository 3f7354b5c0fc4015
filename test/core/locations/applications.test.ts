/** Vendor applications: the platform's own id and secret at a vendor, which locations refer to by name. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { adoptApplications } from '../../../src/core/locations/applications.ts';
import { readChangedTokens } from '../../../src/core/locations/changed-tokens.ts';
import { parseSettingsKeys, seal, unseal } from '../../../src/core/locations/settings-key.ts';
import { registry } from '../../../src/providers/index.ts';
import { SIMULATORS } from '../../../world/pos/index.ts';
import type { Simulator } from '../../../world/pos/simulator.ts';
import { MERCHANT } from '../../../world/pos/square/square-oauth.ts';
import { startHubrise } from '../../../world/pos/hubrise/start-hubrise.ts';
import { startSquare } from '../../../world/pos/square/start-square.ts';
import { startToast } from '../../../world/pos/toast/start-toast.ts';
import { allowedHosts } from '../../../world/network/allowed-loopback.ts';
import { OPERATOR_TOKEN, askOperator, type Operator, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { SHARED_ENV } from '../../../world/system/fixtures.ts';
import { nameToken } from '../../../world/system/log-in.ts';
import { runCli } from '../../support/run-cli.ts';
import { startSystem, type System } from '../../../world/system/start-system.ts';
import { until } from '../../../world/processes/until.ts';

const SUPPLIED = ['baseUrl', 'tokenUrl', 'oauthUrl', 'clientId', 'clientSecret'];
const WRONG = 'a secret that the vendor has replaced';
let system: System;
let operator: Operator;
/** An integrator of the group `north`. */
let scoped: Operator;
let pos: Simulator;

beforeAll(async () => {
  const env = { OPERATOR_TOKEN, PUBLIC_URL: 'https://expediter.test' };
  system = await startSystem({ env, stepped: ['placements'], processes: 2 });
  operator = await askOperator(system.urls[0] ?? '');
  const token = await nameToken(system, 'of north', ['integrator'], [], ['north']);
  scoped = await askOperator(system.urls[0] ?? '', token);
});
afterAll(() => system?.stop());
beforeEach(async () => {
  pos = await startToast();
});
afterEach(async () => {
  await system.query('DELETE FROM locations');
  await system.query('DELETE FROM applications');
  await pos.stop();
});

const part = (isSupplied: boolean, of = pos): Record<string, unknown> =>
  Object.fromEntries(Object.entries(of.settings).filter(([name]) => SUPPLIED.includes(name) === isSupplied));
const putApplication = (name: string, change: object = {}, by = operator): Promise<OperatorAnswer> =>
  by.send('PUT', `/applications/${name}`, { integration: pos.integration, settings: { ...part(true), ...change } });
const put = (locationId: string, settings: object, by = operator): Promise<OperatorAnswer> =>
  by.send('PUT', `/locations/${locationId}`, { integration: pos.integration, settings, groups: ['north'] });
const refer = (locationId: string, name = 'ours', change: object = {}, by = operator): Promise<OperatorAnswer> =>
  put(locationId, { application: name, ...part(false), ...change }, by);
const stored = async (locationId: string): Promise<Record<string, unknown>> => {
  const [row] = await system.query('SELECT settings, application FROM locations WHERE location_id = $1', [locationId]);
  const keys = parseSettingsKeys(SHARED_ENV.SETTINGS_KEY);
  const settings = await unseal(keys, String(row?.['settings']), `locations/${locationId}`);
  return { column: row?.['application'], ...(settings as object) };
};
async function place(locationId: string, nth = 0): Promise<Record<string, unknown> | undefined> {
  const { serviceOrderId } = await system.placeOrder({ locationId });
  await system.round('placements', nth);
  return system.placement(serviceOrderId);
}

describe.each(['toast', 'deliverect', 'lightspeed-k', 'square'] as const)('an application of %s', (integration) => {
  it('gets a new secret by one call, and each process uses that secret for each location from the next request on', async () => {
    await pos.stop();
    pos = await (integration === 'square' ? startSquare({ byOauth: true }) : SIMULATORS[integration]());
    expect(await putApplication('ours')).toMatchObject({ status: 201, body: { created: true, locations: 0 } });
    for (const id of ['club-1', 'club-2']) expect((await refer(id)).status).toBe(201);
    expect(await place('club-1')).toMatchObject({ state: 'sent' });

    // The vendor ends the secret before its successor is here, and every token with it.
    await putApplication('ours', { clientSecret: WRONG });
    pos.expireTokens?.();
    await system.query(`UPDATE credentials SET granted_at = now() - interval '2 h', expires_at = now()`);
    const waiting = await Promise.all([0, 1].map((nth) => system.placeOrder({ locationId: `club-${nth + 1}` })));
    for (const nth of [0, 1, 0, 1]) await system.round('placements', nth);
    const states = async (): Promise<unknown[]> =>
      Promise.all(waiting.map(async (each) => (await system.placement(each.serviceOrderId))?.['state']));
    expect(await states()).toEqual(['held', 'held']);

    const done = await putApplication('ours');
    expect(done).toMatchObject({ status: 200, body: { created: false, changed: ['clientSecret'], locations: 2 } });
    for (const nth of [0, 1, 0, 1]) await system.round('placements', nth);
    expect(await states()).toEqual(['sent', 'sent']);
    expect(await place('club-2', 1)).toMatchObject({ state: 'sent' });
    expect(pos.tickets).toHaveLength(4);
  });
});

it('a webhook is verified with a new secret, although the process has cached the old one', async () => {
  await pos.stop();
  const hubrise = await startHubrise();
  pos = hubrise;
  await putApplication('ours', { clientId: 'ours', clientSecret: WRONG });
  await refer('club-1');
  await place('club-1');
  const url = new URL(await system.webhookUrl('club-1'));
  const report = async (): Promise<unknown> => {
    const [ticket] = hubrise.tickets;
    const at = new URL(url.pathname + url.search, system.urls[1]).href;
    return ticket && (await hubrise.report(at, ticket, 'accepted')).body;
  };
  expect(await report()).toMatchObject({ outcome: 'dropped' });
  // As if all of it were an hour old, so that only the application changes.
  await system.query(`WITH l AS (UPDATE locations SET updated_at = now() - interval '1 h')
                      UPDATE webhook_tokens SET created_at = now() - interval '1 h'`);
  expect((await readChangedTokens(system.pool)).changed).toEqual([]);
  await putApplication('ours', { clientId: 'ours' });
  // Each process reads within five seconds which of its cached tokens have changed.
  expect((await readChangedTokens(system.pool)).changed).toHaveLength(1);
  await until(async () => ((await report()) as { outcome: string }).outcome !== 'dropped');
});

describe('a location of an application', () => {
  beforeEach(async () => {
    await putApplication('ours');
  });

  it.each([
    ['an unknown application', { application: 'theirs' }, 'settings: application names no application of toast'],
    [
      'an application of another integration',
      { application: 'hub' },
      'settings: application names no application of toast',
    ],
    ['a name that cannot be stored', { application: 'a\0b' }, 'settings: application names no application of toast'],
    ['an object as its name', { application: { name: 'ours' } }, 'settings: application names no application of toast'],
    ['a field of the application too', { clientSecret: 'mine' }, 'settings: clientSecret is part of the application'],
    ['a host too', { baseUrl: 'https://evil.example' }, 'settings: baseUrl is part of the application'],
  ])('is refused if the location gives %s', async (_, change, detail) => {
    const settings = { clientId: 'another', clientSecret: 'another' };
    await operator.send('PUT', '/applications/hub', { integration: 'hubrise', settings });
    for (const by of [operator, scoped]) {
      const answer = await refer('north:new', 'ours', change, by);
      expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(detail) as string } });
      expect(answer.body['issues']).toHaveLength(1);
    }
    await refer('club-1');
    expect((await operator.send('PATCH', '/locations/club-1', { settings: change })).status).toBe(400);
  });

  it("uses the application, and its group's integrator can neither see the secret nor change the host", async () => {
    expect((await refer('north:1', 'ours', {}, scoped)).status).toBe(201);
    expect(await place('north:1')).toMatchObject({ state: 'sent' });
    const shown = await scoped.get('/locations/north:1');
    expect(shown.body).toMatchObject({ settings: { application: { value: 'ours' } }, settingsProblem: null });
    expect(Object.keys(shown.body['settings'] as object)).not.toContain('clientSecret');
    const moved = { application: null, baseUrl: 'https://evil.example', clientId: 'mine', clientSecret: 'mine' };
    expect((await scoped.send('PATCH', '/locations/north:1', { settings: moved })).status).toBe(400);
    expect(await stored('north:1')).toMatchObject({ column: 'ours', application: 'ours' });
  });

  it('has no reference to the application once its settings no longer name the application', async () => {
    await refer('club-1');
    const settings = { application: null, ...pos.settings };
    expect((await operator.send('PATCH', '/locations/club-1', { settings })).status).toBe(200);
    expect(await stored('club-1')).toMatchObject({ column: null, clientSecret: pos.settings['clientSecret'] });
  });

  it('is exported as a file with the name of its application, and apply accepts this file', async () => {
    await refer('club-1');
    const folder = await mkdtemp(join(tmpdir(), 'expediter-applications-'));
    try {
      expect((await runCli(system.env, ['export', '--to', folder])).code).toBe(0);
      const file = await readFile(join(folder, 'club-1.yaml'), 'utf8');
      expect(file).toContain('  application: ours\n');
      expect(file).not.toMatch(/baseUrl|clientId|clientSecret/);
      await system.query('DELETE FROM locations');
      const secrets = {
        LOCATION_CLUB_1__RESTAURANT_GUID: pos.settings['restaurantGuid'],
        LOCATION_CLUB_1__WEBHOOK_SECRET: 'a secret',
      };
      const env = { ...system.env, ...(secrets as Record<string, string>) };
      const whole = file.replaceAll(
        /env:LOCATION_CLUB_1__(?!RESTAURANT|WEBHOOK)\w+/g,
        'env:LOCATION_CLUB_1__RESTAURANT_GUID',
      );
      await writeFile(join(folder, 'club-1.yaml'), whole);
      const applied = await runCli(env, ['apply', '-f', join(folder, 'club-1.yaml'), '--yes']);
      expect(applied).toMatchObject({ code: 0, error: '' });
      expect(await stored('club-1')).toMatchObject({ column: 'ours', application: 'ours' });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("keeps its application when it is disconnected, and gets none of the application's fields", async () => {
    await pos.stop();
    pos = await startSquare({ byOauth: true });
    await putApplication('seller');
    await refer('club-1', 'seller', { merchantId: MERCHANT });
    expect((await operator.post('/locations/club-1/disconnect')).body).toMatchObject({ revoked: true });
    expect(Object.keys(await stored('club-1'))).not.toContain('refreshToken');
    expect(await stored('club-1')).toMatchObject({ column: 'seller', application: 'seller' });
    expect(Object.keys(await stored('club-1'))).not.toContain('clientSecret');
  });
});

describe('an application', () => {
  it('cannot be read or changed by an integrator who has only some locations: the answer is 403', async () => {
    for (const answer of [
      await putApplication('ours', {}, scoped),
      await scoped.get('/applications'),
      await scoped.send('DELETE', '/applications/ours'),
      await scoped.post('/applications/adopt', { dryRun: true }),
    ]) {
      expect(answer.status).toBe(403);
    }
  });

  it('is shown with a fingerprint of its secret, and the secret is in no answer, log or audit', async () => {
    await putApplication('ours');
    await refer('club-1');
    const { body, text } = await operator.get('/applications');
    expect(body).toMatchObject({
      applications: [
        {
          name: 'ours',
          locations: ['club-1'],
          settings: { baseUrl: { value: pos.url }, clientSecret: { fingerprint: expect.any(String) as string } },
        },
      ],
    });
    const audit = await operator.get('/audit');
    expect(audit.body['actions']).toContainEqual(
      expect.objectContaining({
        action: 'put application',
        subject: 'ours',
        after: expect.stringContaining('clientSecret') as string,
      }),
    );
    const said = [text, audit.text, ...system.logged].join('\n');
    expect(said).not.toContain(pos.settings['clientSecret']);
    const rows = await system.query('SELECT to_json(a)::text AS row FROM applications a');
    expect(JSON.stringify(rows)).not.toContain(pos.settings['clientSecret']);
  });

  it('shows its changes in the audit of each location that uses it', async () => {
    const of = await askOperator(system.urls[0] ?? '', await nameToken(system, 'of uses-1', ['admin'], ['uses-1']));
    await putApplication('ours', { clientSecret: WRONG });
    for (const id of ['uses-1', 'uses-2']) await refer(id);
    await refer('uses-none', 'ours', { application: undefined, ...part(true) });
    await putApplication('ours', { clientSecret: WRONG });
    await putApplication('ours');
    const rotations = (await of.get('/audit?action=put%20application')).body['actions'];
    const rotation = { action: 'put application', subject: 'ours', outcome: 'done', after: 'changed clientSecret' };
    expect(rotations).toMatchObject([{ ...rotation, locationId: 'uses-1', by: { id: 'operator_token' } }]);
    const { body } = await operator.get('/audit?action=put%20application&limit=3');
    const at = [null, 'uses-1', 'uses-2'].map(
      (locationId) => expect.objectContaining({ ...rotation, locationId }) as unknown,
    );
    expect(body['actions']).toEqual(expect.arrayContaining(at));
  });

  it.each([
    ['a field of a location', { restaurantGuid: 'x' }, 'restaurantGuid'],
    ['no secret', { clientSecret: undefined }, 'clientSecret'],
    ['a host that may not be called', { baseUrl: 'http://10.0.0.1' }, 'baseUrl'],
  ])('is refused with %s', async (_, change, detail) => {
    const answer = await putApplication('ours', change);
    expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(detail) as string } });
  });

  it('is refused for an integration without applications, and an application cannot change its integration', async () => {
    const none = await operator.send('PUT', '/applications/ours', { integration: 'standard', settings: {} });
    expect(none).toMatchObject({ status: 400, body: { detail: 'standard has no applications' } });
    await putApplication('ours');
    const other = { integration: 'hubrise', settings: { clientId: 'another', clientSecret: 'another' } };
    expect((await operator.send('PUT', '/applications/ours', other)).status).toBe(409);
  });

  it('cannot be removed while locations use it', async () => {
    await putApplication('ours');
    for (const nth of [1, 2]) await refer(`club-${nth}`);
    expect(await operator.send('DELETE', '/applications/ours')).toMatchObject({
      status: 409,
      body: { detail: 'Locations use it: 2. See: expediter application list' },
    });
    await system.query('DELETE FROM locations');
    expect((await operator.send('DELETE', '/applications/ours')).status).toBe(200);
    expect((await operator.send('DELETE', '/applications/ours')).status).toBe(404);
  });

  it('that is removed while a location is being stored makes the request of the location fail with 400', async () => {
    await putApplication('ours');
    const client = await system.pool.connect();
    await client.query('BEGIN; SELECT FROM applications FOR UPDATE');
    const storing = refer('club-1');
    const isWaiting = async (): Promise<boolean> => {
      const locked = await system.query(`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`);
      return locked.length > 0;
    };
    await Promise.race([until(isWaiting), storing]);
    await client.query('DELETE FROM applications; COMMIT');
    client.release();
    expect((await storing).status).toBe(400);
    expect(await system.query('SELECT FROM locations')).toEqual([]);
  });
});

describe('a location with a client id and secret of its own', () => {
  const own = (): object => ({ ...part(true), ...part(false) });

  it('is accepted, and adopt moves it into one application with the locations that have the same secret', async () => {
    for (const id of ['club-1', 'club-2']) expect((await put(id, own())).status).toBe(201);
    await put('club-3', { ...own(), clientId: 'another client' });
    await putApplication('kept', { clientId: 'of others' });
    const dry = await operator.post('/applications/adopt', { dryRun: true });
    expect(await stored('club-1')).toMatchObject({ column: null, clientSecret: pos.settings['clientSecret'] });
    const doctor = await runCli(system.env, ['doctor', '--only', 'locations']);
    expect(doctor.out).toMatch(/settings of club-1, club-2, club-3[^]*expediter application adopt/);

    const done = await operator.post('/applications/adopt');
    expect(done.body).toEqual({
      applications: [
        { name: 'toast', integration: 'toast', locations: ['club-1', 'club-2'] },
        { name: 'toast-2', integration: 'toast', locations: ['club-3'] },
      ],
    });
    expect(dry.body).toEqual(done.body);
    expect(await stored('club-2')).toEqual({ column: 'toast', application: 'toast', ...part(false) });
    expect(await place('club-2')).toMatchObject({ state: 'sent' });
    const { body } = await operator.get('/audit?location=club-3');
    const after = '{"settings.application":"toast-2"}';
    expect(body['actions']).toContainEqual(expect.objectContaining({ action: 'change', after, outcome: 'done' }));
    expect((await operator.post('/applications/adopt')).body).toEqual({ applications: [] });
    await put('club-4', own());
    expect((await operator.post('/applications/adopt')).body).toMatchObject({
      applications: [{ name: 'toast', locations: ['club-4'] }],
    });
  });

  describe('a location that changes during adopt', () => {
    const keys = parseSettingsKeys(SHARED_ENV.SETTINGS_KEY);
    const rules = { registry, keys, publicUrl: 'https://expediter.test', allowedHosts };
    /** Adopts, and does something else once, as soon as a location was read. */
    const adoptAfter = (other: () => Promise<unknown>): ReturnType<typeof adoptApplications> => {
      const { pool } = system;
      let isOver = false;
      const query = async (text: string, values: unknown[]): Promise<unknown> => {
        const answer = await pool.query(text, values);
        if (!isOver && text.includes('FROM locations l WHERE location_id = $1')) {
          isOver = true;
          await other();
        }
        return answer;
      };
      const raced = Object.assign(Object.create(pool) as typeof pool, { query, connect: () => pool.connect() });
      return adoptApplications(raced, rules, false);
    };

    it('keeps settings that were stored during adopt', async () => {
      for (const id of ['club-1', 'club-2']) await put(id, own());
      const theirs = { settings: { clientSecret: 'a newer secret' } };
      expect(await adoptAfter(() => operator.send('PATCH', '/locations/club-1', theirs))).toMatchObject([
        { name: 'toast', locations: ['club-2'] },
      ]);
      expect(await stored('club-1')).toMatchObject({ column: null, ...theirs.settings });
    });

    it('is not moved into an application that somebody else created with the same name during adopt', async () => {
      await put('club-1', own());
      const theirs = (): Promise<unknown> => putApplication('toast', { clientId: 'theirs' });
      await expect(adoptAfter(theirs)).rejects.toThrow('There is another application called "toast"');
      expect(await stored('club-1')).toMatchObject({ column: null, clientSecret: pos.settings['clientSecret'] });
      const { body } = await operator.post('/applications/adopt');
      expect(body).toMatchObject({ applications: [{ name: 'toast-2', locations: ['club-1'] }] });
    });
  });

  it('is not adopted if it has no client of the platform, or its settings cannot be decrypted', async () => {
    await pos.stop();
    pos = await startSquare();
    await put('club-1', pos.settings);
    await put('club-2', pos.settings);
    await system.query(`UPDATE locations SET settings = 'x' WHERE location_id = 'club-2'`);
    expect((await operator.post('/applications/adopt')).body).toEqual({ applications: [] });
    // Its settings are refused today.
    const toast = { ...own(), baseUrl: 'http://10.0.0.1', clientId: 'ours', clientSecret: 'ours' };
    const sealed = await seal(parseSettingsKeys(SHARED_ENV.SETTINGS_KEY), toast, 'locations/club-1');
    await system.query(`UPDATE locations SET integration = 'toast', settings = $1 WHERE location_id = 'club-1'`, [
      sealed,
    ]);
    expect((await operator.post('/applications/adopt')).body).toMatchObject({ applications: [{ locations: [] }] });
    expect(await stored('club-1')).toMatchObject({ column: null, clientSecret: 'ours' });
  });
});
