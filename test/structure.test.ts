import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { registry } from '../src/providers/index.ts';

const SRC = new URL('../src/', import.meta.url).pathname;
/** Where an integration's name is not the vendor's, and vendors that may come. */
const VENDORS = ['lightspeed', 'clover', 'otter', 'olo'];

/** The rooms of core from the ground up. A room imports only rooms of the floors below its own. */
const FLOORS = [
  ['domain'],
  ['postgres', 'egress'],
  ['operators', 'contacts', 'kitchens'],
  ['cases'],
  ['live', 'locations', 'traffic', 'retention'],
  ['statuses'],
  ['transitions'],
  ['placements', 'signals'],
  ['cancellations', 'replay', 'spill', 'polling', 'test-orders'],
  ['orders'],
  ['notices'],
];
/** What each folder and file of `src` may import, from the ground up. Each imports only rows before its own. */
const ROWS: Record<string, readonly string[]> = {
  core: [],
  database: ['core'],
  identity: ['core'],
  observe: ['core'],
  platform: ['core'],
  providers: ['core'],
  pubsub: ['core'],
  config: ['core', 'identity'],
  terminal: ['core', 'config', 'database', 'observe', 'providers'],
  diagnostics: ['core', 'config', 'database', 'identity', 'platform', 'providers', 'pubsub', 'terminal'],
  operators: ['core', 'config', 'diagnostics', 'observe', 'terminal'],
  http: ['core', 'identity', 'operators'],
  server: ['core', 'config', 'database', 'http', 'identity', 'observe', 'platform', 'providers', 'pubsub'],
  cli: ['core', 'config', 'database', 'diagnostics', 'observe', 'operators', 'platform', 'pubsub', 'terminal'],
  'cli.ts': ['cli', 'terminal'],
  'main.ts': ['server'],
  'platform-kit.ts': ['core', 'platform'],
  'provider-kit.ts': ['core', 'providers'],
  'require-node.ts': [],
};
const floorOf = (room: string): number => FLOORS.findIndex((floor) => floor.includes(room));

function filesIn(folder: string): { file: string; text: string }[] {
  return readdirSync(join(SRC, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => ({ file: join(folder, file), text: readFileSync(join(SRC, folder, file), 'utf8') }));
}

const importsOf = (text: string): string[] =>
  [...text.matchAll(/(?:from|import\()\s*'([^']+)'/g)].map((match) => match[1] ?? '');

/** The loop that writes lease, next attempt, deadline and request of a table's rows. */
const WRITERS: Record<string, string> = {
  outbox: 'relay',
  placements: 'placements',
  cancellations: 'cancellations',
  refreshes: 'refreshes',
  notice_messages: 'notices',
  kitchens: 'kitchens',
  removed_kitchens: 'kitchens',
  attention_items: 'attention',
};

/** @returns the loops whose columns a text of SQL statements writes */
const loopsWrittenBy = (text: string): string[] =>
  [
    ...text.matchAll(/\bUPDATE (\w+)( \w+)? SET\b[^`"]*?\b(lease_\w+|(next_attempt|deadline|requested)_at)\s*=/g),
  ].flatMap(([, table = '']) => WRITERS[table] ?? []);

describe('the structure', () => {
  it('each module of core imports only modules of lower layers', () => {
    const files = filesIn('core');
    const roomOf = (path: string): string => path.split('/')[1] ?? '';
    expect(new Set(files.map(({ file }) => roomOf(file)))).toEqual(new Set(FLOORS.flat()));
    for (const { file, text } of files) {
      const floor = floorOf(roomOf(file));
      for (const path of importsOf(text).filter((path) => path.startsWith('.'))) {
        const imported = join(file, '..', path);
        expect(imported, file).toMatch(/^core\//);
        if (roomOf(imported) !== roomOf(file))
          expect(floorOf(roomOf(imported)), `${file}: ${path}`).toBeLessThan(floor);
      }
    }
  });

  it('world, tools, src and console import nothing from test', () => {
    const places = ['world', 'tools', 'src', 'console'];
    for (const { file, text } of places.flatMap((place) => filesIn(join('..', place)))) {
      const imported = importsOf(text).filter((path) => path.startsWith('.'));
      expect(
        imported.map((path) => join(file, '..', path)).filter((path) => path.startsWith('../test/')),
        file,
      ).toEqual([]);
    }
  });

  it('core and console name no POS', () => {
    const names = [...registry.keys(), ...VENDORS];
    for (const { file, text } of [...filesIn('core'), ...filesIn('../console')]) {
      // The specification of signed webhooks has the name of an integration.
      const words = text.toLowerCase().replaceAll(/standard.webhooks/g, '');
      for (const name of names) expect(words, file).not.toMatch(new RegExp(`\\b${name}\\b`));
    }
  });

  it('only the parts of forms have inputs, so that all fields look and answer alike', () => {
    const files = filesIn('../console').filter(({ text }) => /<(input|select|textarea)\b/.test(text));
    // The slider of a chart and the box that chooses a row of a list belong to no form.
    expect(files.map(({ file }) => file).toSorted()).toEqual([
      '../console/parts/chart.tsx',
      '../console/parts/form.tsx',
      '../console/parts/pick.tsx',
    ]);
  });

  it('each folder and file of src imports exactly the folders that its row in this test allows', () => {
    const names = Object.keys(ROWS);
    expect(names.toSorted()).toEqual(readdirSync(SRC).toSorted());
    const topOf = (path: string): string => path.split('/')[0] ?? '';
    for (const [place, [name, mayImport]] of Object.entries(ROWS).entries()) {
      expect(names.slice(0, place), name).toEqual(expect.arrayContaining([...mayImport]));
      const files = filesIn('.').filter(({ file }) => topOf(file) === name);
      const imported = files.flatMap(({ file, text }) =>
        importsOf(text).flatMap((path) => (path.startsWith('.') ? [topOf(join(file, '..', path))] : [])),
      );
      expect([...new Set(imported)].filter((to) => to !== name).toSorted(), name).toEqual(mayImport.toSorted());
    }
  });

  it('a provider imports only core, the shared files of providers, zod and Node', () => {
    const allowed = /^(\.\/[\w-]+\.ts|\.\.\/[\w-]+\.ts|\.\.\/\.\.\/core\/domain\/[\w-]+\.ts|node:\w+|zod)$/;
    const files = filesIn('providers').filter(({ file }) => file.split('/').length > 2);
    expect(new Set(files.map(({ file }) => file.split('/')[1])).size).toBe(registry.size);
    for (const { file, text } of files) {
      expect(
        importsOf(text).filter((path) => !allowed.test(path) || path === '../index.ts'),
        file,
      ).toEqual([]);
    }
  });

  it('only core/egress sends HTTP requests', () => {
    const sends =
      /(?<![\w.'])fetch\(|globalThis|= fetch\b|['"](undici|node:(https|http2))['"]|import \{[^}]*\} from 'node:http'/;
    const files = filesIn('.').filter(({ text }) => sends.test(text.replaceAll(/^\s*(\/\/|\/?\*).*$/gm, '')));
    expect(files.map(({ file }) => file).toSorted()).toEqual([
      'core/egress/bounded-fetch.ts',
      'core/egress/guarded-fetch.ts',
    ]);
  });

  it('providers are called in only two places, which hide secrets in their answers', () => {
    const calls = /\bfetch: posFetch\b|\.(translateWebhook|readKitchen)(\?\.)?\(/;
    const places = filesIn('core').filter(({ text }) => calls.test(text));
    expect(places.map(({ file }) => file).toSorted()).toEqual([
      'core/locations/check-location.ts',
      'core/statuses/translate-webhook-request.ts',
    ]);
    for (const { text } of places) expect(text).toMatch(/\bhideSecrets\(/);
  });

  it('no file of src decides by a text comparison whether a host is this machine', () => {
    const judges = /127\\\.|'127\.'|localhost[|)]|'localhost',|\[::1|=== '(localhost|127\.0\.0\.1|::1)'/;
    const files = filesIn('.').filter(({ text }) => judges.test(text.replaceAll(/^\s*(\/\/|\/?\*).*$/gm, '')));
    expect(files.map(({ file }) => file)).toEqual([]);
  });

  it('no cache reserves room for entries that it does not have', () => {
    const caches = filesIn('.').filter(({ text }) => text.includes('new LRUCache'));
    expect(caches.length).toBeGreaterThan(3);
    const made = caches.flatMap(({ text }) => text.match(/new LRUCache<[^]*?>\([^]*?\);$/gm) ?? []);
    expect(made.filter((cache) => !cache.includes('atMost('))).toEqual([]);
  });

  it('only json-text.ts asks whether a value is an object', () => {
    const asks = filesIn('.').filter(({ text }) => /typeof (\w+) === 'object' && \1 !== null/.test(text));
    expect(asks.map(({ file }) => file)).toEqual(['core/domain/json-text.ts']);
  });

  it('lint refuses to look up a text from outside in a plain object', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'lookups-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const judge = (code: string): string[] => {
      writeFileSync(join(folder, 'code.ts'), `const WORDS: Readonly<Record<string, string>> = { a: 'b' };\n${code}\n`);
      const { stdout } = spawnSync(join(SRC, '../node_modules/.bin/oxlint'), ['-c', '.oxlintrc.json', folder], {
        cwd: join(SRC, '..'),
        encoding: 'utf8',
      });
      return [...stdout.matchAll(/lookups\(([\w-]+)\)/g)].map(([, rule = '']) => rule);
    };
    expect(judge('export const a = (text: string) => text in WORDS;')).toEqual(['no-in-by-text']);
    expect(judge('export const a = (text: string) => WORDS[text];')).toEqual(['no-record-by-text']);
    expect(judge("export const a = (it: object) => 'b' in it && Object.hasOwn(WORDS, 'c') && WORDS.a;")).toEqual([]);
  });

  it('output goes through one function for each stream, so that no text controls the terminal', () => {
    const prints = filesIn('.').filter(({ text }) => /process\.std(out|err)\.write|console\.\w+\(/.test(text));
    // require-node.ts has no imports, and only words of its own.
    expect(prints.map(({ file }) => file).toSorted()).toEqual([
      'observe/terminal-text.ts',
      'require-node.ts',
      'terminal/print.ts',
    ]);
  });

  it('only the registry names the providers', () => {
    const files = filesIn('.').filter(({ file }) => !file.startsWith('providers') && file !== 'provider-kit.ts');
    for (const { file, text } of files) {
      expect(
        importsOf(text).filter((path) => /providers\/(?!index\.ts)/.test(path)),
        file,
      ).toEqual([]);
    }
  });

  it('the package for providers exports every shared file of providers, and no provider', () => {
    const shared = readdirSync(join(SRC, 'providers'), { withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name !== 'index.ts')
      .map(({ name }) => `./providers/${name}`);
    const entry = readFileSync(join(SRC, 'provider-kit.ts'), 'utf8');
    expect(importsOf(entry).filter((path) => path.startsWith('./providers/'))).toEqual(shared.sort());
  });

  it('the console shows no path of a file: only the help of commands, the environment and certify name pages', () => {
    const texts = [...filesIn('.'), ...filesIn('../console')].map(({ file, text }) => ({
      file,
      text: text.replaceAll(/\/\*[^]*?\*\/|^ *\/\/.*$/gm, ''),
    }));
    const filesWith = (pattern: RegExp): string[] =>
      texts.flatMap(({ file, text }) => (pattern.test(text) ? [file] : [])).toSorted();
    const naming = filesWith(/\bdocs\/[^\s'`]+\.md/).filter((file) => !/^(cli|config|operators)\//.test(file));
    expect(naming).toEqual(['diagnostics/test-run.ts']);
    // The developers of a POS read these checks in a terminal. A test order of the console imports none of them.
    const checks = ['check-ticket', 'explain-in-vain', 'place-twice'].map((name) => `diagnostics/${name}.ts`);
    expect(filesWith(/\bpageFor\(/)).toEqual([...checks, ...naming]);
    const placed = texts.find(({ file }) => file === 'diagnostics/place-test-order.ts')?.text ?? '';
    expect(importsOf(placed).filter((path) => checks.includes(join('diagnostics', path)))).toEqual([]);
  });

  it('file names are unique, except those that every provider has', () => {
    const names = ['src', 'console', 'tools', 'test', 'world', 'packages']
      .flatMap((folder) =>
        readdirSync(join(SRC, '..', folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
      )
      // Where the benchmark has installed its peers.
      .filter((file) => !file.includes('node_modules'))
      .filter((file) => /\.tsx?$/.test(file) && !/^src\/providers\/[\w-]+\/|\/index\.ts$/.test(file))
      .map((file) => basename(file).replace(/\.tsx?$/, ''));
    expect(names.length).toBeGreaterThan(400);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  it('every test with random inputs uses SEED', () => {
    const files = filesIn('../test').map(({ file, text }) => ({
      file,
      draws: text.match(/\bfc\s*\.(assert|check|sample)\(/g)?.length ?? 0,
      seeds: text.match(/\bseed: SEED\b/g)?.length ?? 0,
    }));
    expect(files.filter(({ draws }) => draws > 0).length).toBeGreaterThan(5);
    expect(files.filter(({ draws, seeds }) => draws > seeds)).toEqual([]);
  });

  /** The files of `npm test`. */
  const tests = filesIn('../test').filter(({ file }) => !/^\.\.\/test\/(process|system|harness)\//.test(file));

  it('no test sleeps before an expectation', () => {
    const looks = tests.filter(({ text }) => /\bawait sleep\(.*\n(.*\n){0,2}.*\bexpect\(/.test(text));
    expect(looks.map(({ file }) => file)).toEqual([]);
  });

  it('a test that writes a column that a background loop reads runs the loop in steps', () => {
    const textOf = new Map(tests.map(({ file, text }) => [file, text]));
    /** A test's own text, and that of what it imports, which may start the system for it. */
    const whole = ({ file, text }: { file: string; text: string }): string =>
      [text, ...importsOf(text).map((path) => textOf.get(join(file, '..', path)))].join('\n');
    for (const test of tests.filter((each) => /(?<!function )\bstartSystem\(/.test(whole(each)))) {
      const stepped = [...whole(test).matchAll(/\bstepped: (\[.*?\]|'all')/gs)].map(([, loops]) => loops).join();
      expect(
        loopsWrittenBy(test.text).filter((loop) => !stepped.includes(`'${loop}'`) && !stepped.includes(`'all'`)),
        test.file,
      ).toEqual([]);
    }
  });

  it('only one function asks whether a URL has a user name or a password', () => {
    const asking = filesIn('.').filter(({ text }) => /\.username \+|\{ username = ''/.test(text));
    expect(asking.map(({ file }) => file)).toEqual(['core/domain/has-credentials.ts']);
  });

  it('.env.example holds every variable of the environment, and no other', async () => {
    const { CONFIG_NAMES } = await import('../src/config/config.ts');
    const example = readFileSync(new URL('../.env.example', import.meta.url), 'utf8');
    const names = [...example.matchAll(/^#? ?([A-Z_]+)=/gm)].map((match) => match[1]);
    expect(new Set(names)).toEqual(new Set(CONFIG_NAMES));
    expect(names).toHaveLength(CONFIG_NAMES.length);
  });
});
