import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { runProgram } from '../../world/processes/run-program.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');
const { scripts, engines } = JSON.parse(read('package.json')) as Record<'scripts' | 'engines', Record<string, string>>;

const OLD_NODE = { NODE_OPTIONS: `--require ${join(PROJECT, 'test/support/old-node.ts')}` };

it.each<[string, string]>([
  ['the service', 'node src/main.ts'],
  ['the command line', 'node src/cli.ts'],
  ...'predemo predev test bench bench:peers chaos chaos:mutations chaos:neighbours expediter'
    .split(' ')
    .map((name): [string, string] => [`npm run ${name}`, scripts[name] ?? '']),
])('%s exits 1 with one line on an old Node', async (_, command) => {
  const { code, out, error } = await runProgram('sh', ['-c', command], OLD_NODE, { cwd: PROJECT });
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(error).toMatch(/^Expediter needs Node [\d.]+ or newer, and this is 20\.20\.2: [^\n]+\n$/);
});

it('the check of the Node version runs on an old Node, because it is the first import', () => {
  expect(() => new Script(read('src/require-node.ts'))).not.toThrow();
  for (const entry of ['src/main.ts', 'src/cli.ts']) {
    expect(read(entry).match(/^import .*$/gm), entry).toEqual([`import './require-node.ts';`]);
  }
});

it('package.json requires the same Node version as the check', () => {
  const [, major, minor] = /major: (\d+), minor: (\d+)/.exec(read('src/require-node.ts')) ?? [];
  expect(engines['node']).toBe(`>=${major}.${minor}`);
});
