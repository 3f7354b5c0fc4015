/**
 * The way of a provider that lives in a package of its own, without a network: the kit as npm packs it, the template's own
 * checks with it, and a service that loads what the template packs.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GiveUp, NeedsOperator, NotAuthentic, Poison, TryAgain } from '../../src/core/domain/errors.ts';
import { runDemo } from './demo/run-demo.ts';
import { OPERATOR_TOKEN, sendAsIs } from '../../world/system/ask-operator.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { copyProject, link, MODULES, OFFLINE, packPackage, PROJECT, runWell } from '../support/pack-package.ts';
import { runToEnd } from '../../world/processes/run-program.ts';
import { startSystem } from '../../world/system/start-system.ts';

const TEMPLATE = join(PROJECT, 'examples/provider-template');

/** Of the kit with what it needs, as it is installed. */
const LIMIT_BYTES = 15_000_000;

type Kit = typeof import('../../src/provider-kit.ts');
type Package = {
  version: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
};

let folder: string;
/** What npm packs of `packages/provider-kit`, unpacked. */
let kit: string;
/** A developer's copy of the template, with the kit installed. */
let acme: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kit-'));
  kit = await packPackage(
    join(copyProject(join(folder, 'project')), 'packages/provider-kit'),
    join(folder, 'expediter-kit'),
  );

  acme = join(folder, 'acme');
  cpSync(TEMPLATE, acme, {
    recursive: true,
    filter: (path) => !['node_modules', 'dist'].some((left) => path === join(TEMPLATE, left)),
  });
  const { dependencies, devDependencies, peerDependencies } = readPackage(TEMPLATE);
  link(acme, ['.bin', ...Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies })], {
    'expediter-kit': kit,
  });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function filesIn(at: string): string[] {
  const entries = readdirSync(at, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

function readPackage(of: string): Package {
  return JSON.parse(readFileSync(join(of, 'package.json'), 'utf8')) as Package;
}

describe('the kit for third-party providers', () => {
  it('has the version of the service, and the same major versions of its dependencies', () => {
    const { version, dependencies, devDependencies } = readPackage(PROJECT);
    const template = readPackage(TEMPLATE);
    expect(readPackage(kit).version).toBe(version);
    expect(template.dependencies).toEqual({ 'expediter-kit': `file:expediter-kit-${version}.tgz` });
    expect(devDependencies).toMatchObject(template.devDependencies);
    const majorOf = (range: string): string => range.split('.')[0] ?? '';
    for (const [name, range] of Object.entries({ ...template.peerDependencies, ...readPackage(kit).peerDependencies }))
      expect(majorOf(range), name).toBe(`^${majorOf({ ...dependencies, ...devDependencies }[name] ?? '')}`);
  });

  it('needs only zod, and its test suite also needs vitest', () => {
    const { peerDependencies, ...rest } = readPackage(kit);
    expect(rest).not.toHaveProperty('dependencies');
    const needed = (file: string): string[] =>
      [...readFileSync(file, 'utf8').matchAll(/(?:from|import\() ?'([^.'][^']*)'/g)]
        .map(([, name = '']) => name)
        .filter((name) => !name.startsWith('node:'));
    const built = filesIn(join(kit, 'dist'));
    const inSource = join(kit, 'dist/src');
    expect(new Set(built.flatMap(needed))).toEqual(new Set(Object.keys(peerDependencies)));
    expect(new Set(built.filter((file) => file.startsWith(inSource)).flatMap(needed))).toEqual(new Set(['zod']));

    const bytes = [...filesIn(kit), ...filesIn(join(MODULES, 'zod'))].map((file) => statSync(file).size);
    expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThan(LIMIT_BYTES);
  });

  it('has the template that the guide shows', () => {
    const unindented = (code: string) => code.replaceAll(/^ +/gm, '');
    const guide = readFileSync(join(PROJECT, 'docs/writing-a-provider.md'), 'utf8');
    const shown = [...guide.matchAll(/^```\w+\n(?:\/\/|#) ([\w./-]+)\n(.*?)^```$/gms)];
    expect(shown.length).toBeGreaterThan(5);
    for (const [, file = '', code = ''] of shown) {
      expect(unindented(readFileSync(join(TEMPLATE, file), 'utf8')), file).toContain(unindented(code));
    }
  });

  it('has a template that passes the compiler, lint and the test suite', async () => {
    const bin = (name: string) => join(MODULES, '.bin', name);
    const lint = ['--config', join(PROJECT, '.oxlintrc.json'), '--type-aware', '--deny-warnings', 'src', 'test'];
    await Promise.all([runWell(acme, bin('oxlint'), lint), runWell(acme, 'npm', ['test', ...OFFLINE])]);
  });

  it('throws errors that the service recognises, although their classes are others', async () => {
    const theirs = (await import(pathToFileURL(join(kit, 'dist/src/provider-kit.js')).href)) as Kit;
    const thrown = [
      [new theirs.TryAgain('later', { sent: false }), TryAgain],
      [new theirs.NeedsOperator('the key is wrong'), NeedsOperator],
      [new theirs.GiveUp('closed', { reason: 'The restaurant is closed.' }), GiveUp],
      [new theirs.Poison('no JSON'), Poison],
      [new theirs.NotAuthentic('no signature'), NotAuthentic],
    ] as const;
    for (const [error, known] of thrown) {
      expect(error.constructor).not.toBe(known);
      expect(error).toBeInstanceOf(known);
    }
  });

  it('does not change the schemas of the service when both are loaded', async () => {
    await import(pathToFileURL(join(kit, 'dist/src/provider-kit.js')).href);
    const system = await startSystem({ env: { OPERATOR_TOKEN } });
    const answer = await sendAsIs(system.urls[0] ?? '', '/openapi.json', {
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    });
    await system.stop();
    expect(answer.status).toBe(200);
  });

  it('has a template that a service can load, with its own copy of the kit', async () => {
    const image = join(folder, 'image');
    for (const name of ['src', 'package.json']) cpSync(join(PROJECT, name), join(image, name), { recursive: true });
    link(image, Object.keys(readPackage(PROJECT).dependencies));

    mkdirSync(join(acme, 'dist'), { recursive: true });
    writeFileSync(join(acme, 'dist/renamed-since.js'), '');
    const installed = await packPackage(acme, join(image, 'node_modules/expediter-acme'));
    expect(existsSync(join(installed, 'dist/renamed-since.js')), 'of an earlier build').toBe(false);
    expect(readdirSync(join(installed, 'node_modules'))).toEqual(['expediter-kit']);

    const env = { PROVIDER_MODULES: 'expediter-acme' };
    const cli = (...words: string[]) => runToEnd(join(image, 'src/cli.ts'), env, [...words, '--json']);
    const [list, schema] = await Promise.all([cli('provider', 'list'), cli('provider', 'schema', 'acme')]);
    expect({ list: list.error, schema: schema.error }).toEqual({ list: '', schema: '' });
    expect(JSON.parse(list.out)).toContainEqual(
      expect.objectContaining({ integration: 'acme', deduplicates: true, canBeAsked: false }),
    );
    expect(JSON.parse(schema.out)).toMatchObject({
      required: ['storeId', 'clientId', 'clientSecret', 'webhookSecret'],
    });
  });

  it('has a template whose provider and simulator complete an order in npm run demo', async () => {
    const dir = join(folder, 'demo');
    const env = { PROVIDER_MODULES: join(acme, 'src/index.ts'), DATABASE_URL: await createDatabase() };
    const demo = runDemo(['--once', '--json', '--pos', join(acme, 'test/start-acme.ts'), '--dir', dir], { dir, env });
    expect(await demo.code, demo.stderr()).toBe(0);
    expect(demo.stderr()).toMatch(/delivery +order-\w+ +POS +webhook HANDED_OVER +200 applied/);
  });
});
