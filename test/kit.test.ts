/**
 * The way of a provider that lives in a package of its own, without a network: the package that npm would publish, the
 * template's own checks with it, and a service that loads what the template packs.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runToEnd } from './support/run-cli.ts';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));
const TEMPLATE = join(PROJECT, 'examples/provider-template');
const MODULES = join(PROJECT, 'node_modules');

/** Whatever the machine's own npm is told to do. */
const OFFLINE = ['--offline', '--ignore-scripts=false'];

type Package = {
  version: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
};

let folder: string;
/** What npm packs of this project, unpacked. */
let kit: string;
/** A developer's copy of the template, with the package installed. */
let acme: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kit-'));
  // Packing builds, which would pull `dist` from under whoever uses the one here.
  const project = join(folder, 'project');
  for (const name of ['src', 'test', 'console', 'scripts', 'migrations', 'README.md', 'LICENSE']) copy(name, project);
  for (const name of ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json', 'tsconfig.kit.json'])
    copy(name, project);
  symlinkSync(MODULES, join(project, 'node_modules'));
  kit = await pack(project, join(folder, 'expediter'));

  acme = join(folder, 'acme');
  cpSync(TEMPLATE, acme, {
    recursive: true,
    filter: (path) => !['node_modules', 'dist'].some((left) => path === join(TEMPLATE, left)),
  });
  const { devDependencies, peerDependencies } = readPackage(TEMPLATE);
  link(acme, ['.bin', ...Object.keys({ ...devDependencies, ...peerDependencies })]);
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function copy(name: string, to: string): void {
  cpSync(join(PROJECT, name), join(to, name), { recursive: true });
}

function readPackage(of: string): Package {
  return JSON.parse(readFileSync(join(of, 'package.json'), 'utf8')) as Package;
}

/** In place of an installation: the package as it was packed, everything else as it is installed here. */
function link(directory: string, names: readonly string[]): void {
  for (const name of names) {
    const place = join(directory, 'node_modules', name);
    mkdirSync(dirname(place), { recursive: true });
    if (name === 'expediter') cpSync(kit, place, { recursive: true });
    else symlinkSync(join(MODULES, name), place);
  }
}

async function run(directory: string, program: string, words: readonly string[]): Promise<string> {
  const child = spawn(program, words, { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const [out, error, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  expect(code, `${program} ${words.join(' ')}\n${out}\n${error}`).toBe(0);
  return out;
}

/** Has npm pack a package, and unpacks it. */
async function pack(directory: string, to: string): Promise<string> {
  const out = await run(directory, 'npm', ['pack', '--json', ...OFFLINE, '--pack-destination', folder]);
  const file = /"filename": "([^"]+\.tgz)"/.exec(out)?.[1] ?? expect.unreachable(out);
  mkdirSync(to, { recursive: true });
  await run(folder, 'tar', ['-xzf', file, '--strip-components=1', '-C', to]);
  return to;
}

describe('the kit for providers of their own', () => {
  it('asks of a provider what we test with', () => {
    const { version, dependencies, devDependencies } = readPackage(PROJECT);
    const { devDependencies: asked, peerDependencies } = readPackage(TEMPLATE);
    expect({ ...devDependencies, expediter: `file:expediter-${version}.tgz` }).toMatchObject(asked);
    expect(peerDependencies).toEqual({ expediter: `>=${version}`, zod: `^${dependencies['zod']}` });
  });

  it('is what the guide shows', () => {
    const unindented = (code: string) => code.replaceAll(/^ +/gm, '');
    const guide = readFileSync(join(PROJECT, 'docs/writing-a-provider.md'), 'utf8');
    const shown = [...guide.matchAll(/^```\w+\n(?:\/\/|#) ([\w./-]+)\n(.*?)^```$/gms)];
    expect(shown.length).toBeGreaterThan(5);
    for (const [, file = '', code = ''] of shown) {
      expect(unindented(readFileSync(join(TEMPLATE, file), 'utf8')), file).toContain(unindented(code));
    }
  });

  it('brings the console as it was built', () => {
    for (const name of ['index.html', 'index.html.br', 'licences.txt'])
      expect(existsSync(join(kit, 'dist/console', name)), name).toBe(true);
    for (const name of ['console', 'scripts']) expect(existsSync(join(kit, name)), name).toBe(false);
  });

  it('lets the template pass its types, our lint and the suite', async () => {
    const bin = (name: string) => join(MODULES, '.bin', name);
    const lint = ['--config', join(PROJECT, '.oxlintrc.json'), '--type-aware', '--deny-warnings', 'src', 'test'];
    await Promise.all([run(acme, bin('oxlint'), lint), run(acme, 'npm', ['test', ...OFFLINE])]);
  }, 60_000);

  it('lets a service load what the template packs, which finds the very same code there', async () => {
    // As the image has it; see the Dockerfile.
    const image = join(folder, 'image');
    cpSync(join(kit, 'dist'), join(image, 'dist'), { recursive: true });
    cpSync(join(kit, 'package.json'), join(image, 'package.json'));
    link(image, Object.keys(readPackage(kit).dependencies));
    symlinkSync('..', join(image, 'node_modules/expediter'));
    expect(readFileSync(join(PROJECT, 'Dockerfile'), 'utf8')).toContain('ln -s .. node_modules/expediter');

    mkdirSync(join(acme, 'dist'), { recursive: true });
    writeFileSync(join(acme, 'dist/renamed-since.js'), '');
    const installed = await pack(acme, join(image, 'node_modules/expediter-acme'));
    expect(existsSync(join(installed, 'dist/renamed-since.js')), 'of an earlier build').toBe(false);
    const where = `console.log(import.meta.resolve('expediter/provider'))`;
    const found = await run(installed, process.execPath, ['--input-type=module', '-e', where]);
    expect(found.trim()).toBe(pathToFileURL(realpathSync(join(image, 'dist/provider-kit.js'))).href);

    const env = { PROVIDER_MODULES: 'expediter-acme' };
    const cli = (...words: string[]) => runToEnd(join(image, 'dist/cli.js'), env, [...words, '--json']);
    const [list, schema] = await Promise.all([cli('provider', 'list'), cli('provider', 'schema', 'acme')]);
    expect({ list: list.error, schema: schema.error }).toEqual({ list: '', schema: '' });
    expect(JSON.parse(list.out)).toContainEqual({ integration: 'acme', deduplicates: true, canBeAsked: false });
    expect(JSON.parse(schema.out)).toMatchObject({ required: ['storeId', 'apiKey', 'webhookSecret'] });
  }, 60_000);
});
