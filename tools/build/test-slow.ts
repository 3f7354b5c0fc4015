/**
 * Runs tests with late statements, to find tests and code that depend on the order of two statements by chance:
 * `npm run test:slow -- [--seeds 2] [--from 1] [files of tests]`. Without files, all tests that start the whole service.
 */
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seeds: { type: 'string', default: '2' }, from: { type: 'string', default: '1' } },
});
const startsService = (file: string): boolean => /\bstart(System|Tills)\(/.test(readFileSync(file, 'utf8'));
const all = (): string[] =>
  globSync('test/**/*.test.ts', { exclude: ['test/{process,system,harness}/**'] }).filter(startsService);
const files = positionals.length > 0 ? positionals : all();
const seeds = Array.from({ length: Number(values.seeds) }, (_, nth) => Number(values.from) + nth);
const failed = seeds.filter((seed) => {
  process.stdout.write(`SLOW=${seed}: ${files.length} ${files.length === 1 ? 'file' : 'files'}\n`);
  const env = { ...process.env, SLOW: String(seed) };
  return spawnSync('vitest', ['run', '--project', 'tests', ...files], { env, stdio: 'inherit' }).status !== 0;
});
process.stdout.write(failed.length === 0 ? 'All seeds passed.\n' : `Failed: SLOW=${failed.join(', SLOW=')}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;
