/** `apply` and `export`: locations as files, by the API and by the database. */
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { OPERATOR_TOKEN } from '../../world/system/ask-operator.ts';
import { startStage, type Stage } from '../support/operator-stage.ts';
import { runJson } from '../support/run-json.ts';
import { runRefused } from '../support/run-refused.ts';
import { runCli } from '../support/run-cli.ts';
import type { Ended } from '../../world/processes/run-program.ts';
import { writeLocationFile } from '../../src/cli/location-files.ts';
import type { ShownLocation } from '../../src/core/locations/show-location.ts';

const ORDERS_URL = 'http://127.0.0.1:9/hooks/a1b2c3d4';
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const OTHER = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const file = (id: string, more = 'secret: env:SECRET', name = `Club ${id}`): string =>
  `id: ${id}\nintegration: standard\nname: ${name}\ngroups: [nord]\nsettings:\n  ordersUrl: env:ORDERS_URL\n  ${more}\n`;

let stage: Stage;
let url: string;
let folder: string;

beforeAll(async () => {
  stage = await startStage({ env: { OPERATOR_TOKEN, PUBLIC_URL: 'https://expediter.test' } });
  url = await stage.listen();
});
afterAll(() => stage?.stop());
beforeEach(async () => {
  await stage.query('DELETE FROM locations');
  folder = await mkdtemp(join(tmpdir(), 'expediter-apply-'));
  return () => rm(folder, { recursive: true });
});

const write = (files: Record<string, string>): Promise<unknown> =>
  Promise.all(Object.entries(files).map(([name, content]) => writeFile(join(folder, name), content)));
const stored = (): Promise<Record<string, unknown>[]> =>
  stage.query('SELECT location_id, name, groups, updated_at FROM locations ORDER BY location_id');

describe.each([
  ['the API', () => ({ EXPEDITER_URL: url, EXPEDITER_TOKEN: OPERATOR_TOKEN })],
  ['the database', () => stage.env],
])('expediter apply by %s', (by, envOf) => {
  const run = (args: readonly string[], input = '', more: Record<string, string> = {}): Promise<Ended> =>
    runCli({ ...envOf(), SECRET, ORDERS_URL, ...more }, args, input);
  const apply = (...args: string[]): Promise<Ended> => run(['apply', '-f', folder, ...args]);

  it('prints a plan without --yes, and creates the locations with --yes', async () => {
    await write({ 'a.yaml': file('club-1'), 'both.yml': `${file('club-2')}---\n${file('club-3')}` });
    const plan = await apply();
    expect(plan).toMatchObject({ code: 2, error: '' });
    expect(plan.out).toMatch(/^club-1 +create +integration, name, groups, settings\.ordersUrl, settings\.secret$/m);
    expect(plan.out).toContain('3 to create, 0 to change, 0 to remove, 0 unchanged');
    expect(await stored()).toEqual([]);

    const applied = await apply('--yes');
    expect(applied.code).toBe(0);
    expect(applied.out).toContain('3 created, 0 changed');
    const before = await stored();
    expect(before).toMatchObject([{ location_id: 'club-1', name: 'Club club-1', groups: ['nord'] }, {}, {}]);
    expect(await apply()).toEqual({ code: 0, out: '0 to create, 0 to change, 0 to remove, 3 unchanged\n', error: '' });
    await apply('--yes');
    expect(await stored()).toEqual(before);
  });

  it('shows the changes of settings without the values of secrets', async () => {
    await write({ 'a.yaml': file('club-1') });
    await apply('--yes');
    await write({ 'a.yaml': file('club-1', 'secret: stdin:NEW', 'Other name') });
    const { code, out, error } = await run(['apply', '-f', folder], `NEW=${OTHER}\n`);
    expect({ code, error }).toEqual({ code: 2, error: '' });
    expect(out).toMatch(/^club-1 +change +name +Club club-1 → Other name$/m);
    expect(out).toMatch(/^ +settings\.secret +changed$/m);
    expect(out).not.toContain('whsec');
  });

  it('removes with --prune the locations of the group that no file describes', async () => {
    await write({
      'a.yaml': file('club-1'),
      'b.yaml': file('club-2'),
      'c.yaml': file('club-3').replace('nord', 'south'),
    });
    await apply('--yes');
    await Promise.all(['b.yaml', 'c.yaml'].map((name) => rm(join(folder, name))));
    expect((await apply()).code).toBe(0);
    expect((await apply('--prune', '--group', 'nord')).out).toMatch(/^club-2 +remove$/m);
    expect((await apply('--prune', '--group', 'nord', '--yes')).code).toBe(0);
    expect((await stored()).map((row) => row['location_id'])).toEqual(['club-1', 'club-3']);
  });

  it('prints the warnings about a location, with and without --yes', async () => {
    const guid = '9c59d4ab-8242-450f-8f36-b16e1b3ab802';
    const ids = `restaurantGuid: ${guid}\n  diningOptionGuids: { pickup: ${guid}, delivery: ${guid} }`;
    const baseUrl = 'baseUrl: https://pos.example.com';
    const secrets = 'clientId: env:SECRET\n  clientSecret: env:SECRET\n  webhookSecret: env:SECRET';
    const brand = (id: string): string =>
      `id: ${id}\nintegration: toast\nsettings:\n  ${ids}\n  ${baseUrl}\n  ${secrets}\n`;
    await write({ 'a.yaml': brand('brand-1') });
    await apply('--yes');
    await write({ 'b.yaml': brand('brand-2') });
    const warned = /^Warning: brand-2: The location brand-1 has the same restaurantGuid\.$/m;
    for (const { out } of [await apply(), await apply('--yes')]) expect(out).toMatch(warned);
    expect((await apply()).out).not.toContain('Warning');
  });

  it('changes nothing if it would remove or move a location with open orders, unless --anyway is given', async () => {
    await write({ 'a.yaml': file('club-1'), 'b.yaml': file('busy') });
    await apply('--yes');
    await stage.seedOrder({ serviceOrderId: 'order-1', locationId: 'busy' });
    await write({ 'a.yaml': file('club-1', 'secret: env:SECRET', 'New') });
    await rm(join(folder, 'b.yaml'));
    const { code, out, error } = await apply('--prune', '--yes');
    expect(code).toBe(1);
    expect(out).toContain('order-1 (sent)');
    expect(error).toContain('Nothing was changed');
    expect(await stored()).toMatchObject([{ location_id: 'busy' }, { name: 'Club club-1' }]);
    await write({
      'b.yaml': 'id: busy\nintegration: hubrise\nsettings: { accessToken: env:SECRET, clientSecret: env:SECRET }\n',
    });
    expect(await apply('--yes')).toMatchObject({ code: 1, out: expect.stringContaining('order-1 (sent)') });
    expect(await apply('--yes', '--anyway')).toMatchObject({ code: 0 });
    await stage.query('WITH p AS (DELETE FROM placements) DELETE FROM orders');
  });

  const withSecret = (secret: string, id = 'club-1'): string => file(id, `secret: ${secret}`);
  it.each([
    [
      'a secret in the file',
      { 'a.yaml': withSecret(SECRET) },
      /a\.yaml: club-1: settings\.secret: is a secret: write env:/,
    ],
    ['an unset variable', { 'a.yaml': withSecret('env:NOWHERE') }, /the variable NOWHERE is not set/],
    ['a missing file', { 'a.yaml': withSecret('file:nowhere.txt') }, /the file nowhere\.txt cannot be read \(ENOENT\)/],
    [
      'a line that is missing in the input',
      { 'a.yaml': withSecret('stdin:NOWHERE') },
      /standard input has no line NOWHERE=/,
    ],
    ['invalid YAML', { 'a.yaml': 'id: [club-1' }, /a\.yaml:\d+: this is not valid YAML/],
    ['an unknown field', { 'a.yaml': `${file('club-1')}colour: hunter2` }, /a\.yaml: .*colour/],
    [
      'one location in two files',
      { 'a.yaml': file('club-1'), 'b.yaml': file('club-1') },
      /club-1 is also in .*a\.yaml/,
    ],
    [
      'several faults at once',
      { 'a.yaml': withSecret('env:NOWHERE'), 'b.yaml': withSecret('env:NEITHER', 'club-2') },
      /variable NOWHERE.*\n.*variable NEITHER/,
    ],
    ['a folder without a location', { 'a.txt': 'x' }, /no file describes a location/],
    ['settings that the POS would refuse', { 'a.yaml': file('club-1', 'unsigned: false') }, /Nothing was changed/],
  ])('changes nothing and names the fault for %s', async (_name, files, words) => {
    await write(files);
    const { code, out, error } = await apply('--yes');
    expect(code).toBe(1);
    expect(error).toMatch(words);
    expect(out + error).not.toMatch(/whsec|hunter2/);
    expect(await stored()).toEqual([]);
  });

  it('reads the files of expediter export, which have variables for secrets', async () => {
    await write({
      'a.yaml': `${file('club-1')}\naddress: Hafenstr. 1\nbackOfficeUrl: https://pos.example.com/nord\n`,
      'key.txt': `${SECRET}\n`,
      'b.yaml': file('club/2', 'secret: file:key.txt'),
    });
    expect((await apply('--yes')).code).toBe(0);
    const to = join(folder, 'exported');
    const { out } = await run(['export', '--to', to]);
    const variables = out.match(/LOCATION_CLUB_[12]__\w+/g) ?? [];
    const hashed = (name: string): unknown =>
      expect.stringMatching(new RegExp(`^LOCATION_CLUB_2__${name}__[0-9A-F]+$`));
    const plain = ['LOCATION_CLUB_1__ORDERS_URL', 'LOCATION_CLUB_1__SECRET'];
    expect(variables).toEqual([...plain, hashed('ORDERS_URL'), hashed('SECRET')]);
    expect(await readFile(join(to, 'club-1.yaml'), 'utf8')).not.toContain('a1b2c3d4');
    expect((await readdir(to)).toSorted()).toEqual(['club%2F2.yaml', 'club-1.yaml', 'location.schema.json']);
    const values = variables.map((name) => [name, name.includes('URL') ? ORDERS_URL : SECRET] as const);
    const again = await run(['apply', '-f', to], '', Object.fromEntries(values));
    expect(again).toEqual({ code: 0, out: '0 to create, 0 to change, 0 to remove, 2 unchanged\n', error: '' });

    const text = await readFile(join(to, 'club-1.yaml'), 'utf8');
    expect(text).not.toContain('whsec');
    expect(text).toMatch(/^address: Hafenstr\. 1\nbackOfficeUrl: https:/m);
    const fits = new Ajv2020({ strict: false, validateFormats: false }).compile(
      JSON.parse(await readFile(join(to, 'location.schema.json'), 'utf8')) as object,
    );
    const document = parse(text) as { settings: object };
    expect([fits(document), fits.errors]).toEqual([true, null]);
    expect(fits({ ...document, settings: { ...document.settings, secret: SECRET } })).toBe(false);
    expect(fits({ ...document, colour: 'blue' })).toBe(false);

    expect(await runRefused(1, envOf(), ['export', '--to', to])).toContain('EEXIST');
  });

  it('reads no reference in a text that is not secret', async () => {
    const more = { DEPLOY_KEY: OTHER, LOCATION_CLUB_1__ACCESS_TOKEN: 'token' };
    await writeFile(join(folder, 'key'), OTHER);
    const mapped = { pizza: `file:${join(folder, 'key')}`, pasta: 'text:stdin:A', soup: 'file' };
    const settings = { locationId: 'L1', merchantId: 'env:DEPLOY_KEY', itemMap: mapped };
    await stage.addLocation('club-1', { ...settings, accessToken: 'token' }, 'square');
    const before = await stored();
    const to = join(folder, 'exported');
    await run(['export', '--to', to]);
    const again = await run(['apply', '-f', to, '--yes'], '', more);
    expect(again).toEqual({ code: 0, out: '0 created, 0 changed, 0 removed, 1 unchanged\n', error: '' });
    expect(await stored()).toEqual(before);

    const exported = join(to, 'club-1.yaml');
    await writeFile(exported, (await readFile(exported, 'utf8')).replaceAll('text:', ''));
    const { code, out, error } = await run(['apply', '-f', to], '', more);
    expect(code).toBe(1);
    for (const [field, from] of [
      ['merchantId', 'env'],
      ['itemMap', 'file'],
      ['itemMap', 'stdin'],
    ]) {
      expect(error).toMatch(new RegExp(`settings\\.${field}: is not a secret, so ${from}: is not read`));
    }
    expect(out + error).not.toContain(OTHER);
  });

  it('reads a secret only from a file below the folder of --files or --secrets', async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), 'expediter-secrets-'));
    onTestFinished(() => rm(elsewhere, { recursive: true }));
    await writeFile(join(elsewhere, 'key'), SECRET);
    await mkdir(join(folder, 'of'));
    const to = join(folder, 'of', 'a.yaml');
    await symlink(join(elsewhere, 'key'), join(folder, 'of', 'link'));
    await writeFile(join(folder, 'key'), SECRET);
    const planOf = async (path: string, ...more: string[]): Promise<Ended> => {
      await writeFile(to, withSecret(`file:${path}`));
      return run(['apply', '-f', to, ...more]);
    };
    for (const path of ['link', '../key', join(elsewhere, 'key'), join(elsewhere, 'none'), '../nowhere']) {
      const { code, error } = await planOf(path);
      expect([code, error]).toEqual([
        1,
        expect.stringMatching(/the file \S+ is not below the folder of --files or --sec/),
      ]);
      expect(error).not.toMatch(/ENOENT|whsec/);
    }
    for (const path of ['link', join(elsewhere, 'key')]) {
      expect(await planOf(path, '--secrets', elsewhere)).toMatchObject({ code: 2, error: '' });
    }
    expect((await planOf('../key', '--secrets', elsewhere)).code).toBe(1);
    expect((await planOf('../key', '--secrets', folder)).code).toBe(2);
    expect((await planOf('key', '--secrets', join(folder, 'none'))).error).toMatch(/none cannot be read \(ENOENT\)/);
  });

  it("export writes a file for each location, whatever the location's id is", async () => {
    const ids = ['/'.repeat(255), `${'/'.repeat(254)}x`, '..', 'club-1', 'Club-1', 'CLUB-1'];
    for (const id of ids) await stage.addLocation(`${id}?`.slice(0, 255), { ordersUrl: 'http://127.0.0.1:9/' });
    await expect(stage.addLocation('..', { ordersUrl: 'http://127.0.0.1:9/' })).rejects.toThrow('cannot be an id');
    await stage.query("UPDATE locations SET location_id = rtrim(location_id, '?')");
    const to = join(folder, 'exported');
    const { code, out, error } = await run(['export', '--to', to]);
    // No client of the API can name it in a URL.
    const unread = by === 'the API' ? 1 : 0;
    expect([code, error]).toEqual([
      unread,
      unread === 1 ? expect.stringMatching(/^error: Not every location was exported. \.\.: /) : '',
    ]);
    expect(out).toContain(`${ids.length - unread} locations are in`);
    const files = (await readdir(to)).filter((name) => name.endsWith('.yaml'));
    const described = await Promise.all(
      files.map(async (name) => parse(await readFile(join(to, name), 'utf8')) as unknown),
    );
    expect(described.map((each) => (each as { id: string }).id).toSorted()).toEqual(
      ids
        .slice(0)
        .filter((id) => unread === 0 || id !== '..')
        .toSorted(),
    );
    // On a disk that does not tell capitals, and whatever else there is.
    expect(new Set(files.map((name) => name.toLowerCase())).size).toBe(files.length);
  });
});

it('export gives each secret a different variable', () => {
  const about = {
    integration: 'standard',
    name: null,
    timeZone: null,
    country: null,
    address: null,
    backOfficeUrl: null,
  };
  const variableOf = ([locationId, field]: readonly [string, string]): unknown =>
    writeLocationFile({
      ...about,
      locationId,
      groups: [],
      contacts: [],
      settings: { [field]: { fingerprint: '' } },
    } as unknown as ShownLocation).variables[0];
  const [usual, ...names] = [
    ['club-1', 'secret'],
    ['club_1', 'secret'],
    ['Club-1', 'secret'],
    ['club--1', 'secret'],
    ['club 1', 'secret'],
    ['club', 'oneSecret'],
    ['club-one', 'secret'],
    ['club', 'one_secret'],
    ['deploy', 'key'],
    ['1', 'secret'],
  ].map((each) => variableOf(each as [string, string]));
  expect(usual).toBe('LOCATION_CLUB_1__SECRET');
  for (const name of names) expect(name).toMatch(/^LOCATION_\w+__\w+$/);
  expect(new Set([usual, ...names]).size).toBe(10);
});

it('an integrator of a group can apply only locations of that group', async () => {
  const right = ['--role', 'integrator', '--location-groups', 'nord'];
  const issued = await runJson(stage.env, ['operator', 'token', 'issue', '--name', 'of nord', ...right]);
  const { token } = issued as { token: string };
  await write({ 'a.yaml': file('nord:1'), 'b.yaml': file('nord:2').replace('[nord', '[south') });
  const run = (...args: string[]): Promise<Ended> =>
    runCli({ EXPEDITER_URL: url, EXPEDITER_TOKEN: token, SECRET, ORDERS_URL }, ['apply', '-f', folder, ...args]);
  const refused = await run('--yes');
  expect(refused).toMatchObject({ code: 1, error: expect.stringContaining('Nothing was changed') as string });
  expect(refused.out).toMatch(/^nord:2 .*You need the role integrator/m);
  await rm(join(folder, 'b.yaml'));
  expect((await run('--yes')).code).toBe(0);
  expect(await stored()).toMatchObject([{ location_id: 'nord:1' }]);
  const by = await stage.query(
    `SELECT actor_name FROM audit WHERE action = 'put' AND location_id = 'nord:1' ORDER BY audit_id DESC LIMIT 1`,
  );
  expect(by).toEqual([{ actor_name: 'of nord' }]);
});
