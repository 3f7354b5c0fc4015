import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { runToEnd } from '../../world/processes/run-program.ts';
import { until } from '../../world/processes/until.ts';

const SCRIPT = fileURLToPath(new URL('../../tools/build/run-tests.ts', import.meta.url));

/** A folder with programs in the place of Vitest and of the checks. */
function programs(about: Partial<Record<'vitest' | 'tsc' | 'oxlint' | 'oxfmt', string>> = {}): {
  env: { PATH: string };
  read: (file: string) => string;
} {
  const folder = mkdtempSync(join(tmpdir(), 'run-tests-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, does] of Object.entries({ vitest: '', tsc: '', oxlint: '', oxfmt: '', ...about })) {
    writeFileSync(join(folder, name), `#!/bin/sh\necho "${name} $*" >> ${folder}/ran\ncd ${folder}\n${does}\n`, {
      mode: 0o755,
    });
  }
  const read = (file: string): string => readFileSync(join(folder, file), { encoding: 'utf8', flag: 'a+' });
  return { env: { PATH: `${folder}:${process.env['PATH']}` }, read };
}

it('npm test runs the tests and every check, and ends with the line that the checks passed', async () => {
  const { env, read } = programs({ vitest: 'echo Tests 3 passed', oxlint: 'echo no warnings' });
  const { code, out } = await runToEnd(SCRIPT, env, []);
  expect([code, out]).toEqual([0, 'Tests 3 passed\ntypes, lint, format: passed\n']);
  const ran = read('ran').match(/^\w+/gm);
  expect(ran?.toSorted()).toEqual(['oxfmt', 'oxlint', 'tsc', 'tsc', 'vitest']);
});

it.each([
  [{ oxlint: 'echo a warning; exit 1' }, 'Tests\n\n> npm run lint\na warning\n\nfailed: lint (npm run lint)\n'],
  [
    { tsc: 'echo wrong; exit 2', oxfmt: 'echo untidy >&2; exit 1' },
    'Tests\n\n> npm run typecheck\nwrong\n\n\n> npm run format:check\nuntidy\n\n' +
      'failed: types (npm run typecheck), format (npm run format:check)\n',
  ],
  [{ vitest: 'echo Tests; exit 1' }, 'Tests\nfailed: tests\n'],
])('npm test exits 1 and names the failed checks last: %j', async (about, expected) => {
  // The tests end only when the checks have ended, whose output must not come before.
  const slow = 'until grep -q oxfmt ran; do sleep 0.05; done; echo Tests';
  const { env } = programs({ vitest: slow, ...about });
  const { code, out, error } = await runToEnd(SCRIPT, env, []);
  expect({ code, out, error }).toEqual({ code: 1, out: expected, error: '' });
});

it('npm test gives the tests a higher priority than the checks', async () => {
  const { env, read } = programs({ vitest: 'nice > tests', tsc: 'nice > checks' });
  await runToEnd(SCRIPT, env, []);
  expect(Number(read('checks'))).toBeGreaterThan(Number(read('tests')));
});

it('npm test with arguments passes them to the tests, and runs no checks', async () => {
  const { env, read } = programs({ vitest: 'echo Tests' });
  const { code, out } = await runToEnd(SCRIPT, env, ['test/core/live', '-t', 'a claim']);
  expect([code, out, read('ran')]).toEqual([0, 'Tests\n', 'vitest run --project tests test/core/live -t a claim\n']);
});

it.each(['SIGINT', 'SIGTERM'] as const)('npm test ends the tests and the running check on %s', async (signal) => {
  const waits = 'exec sleep 60';
  const { env, read } = programs({ vitest: waits, tsc: `echo begun > check; ${waits}` });
  const child = spawn(process.execPath, [SCRIPT], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [out, ended] = [text(child.stdout), once(child, 'close')];
  await until(() => read('check') !== '' && read('ran').includes('vitest'));
  child.kill(signal);
  await ended;
  expect([child.exitCode, await out, read('ran').match(/oxlint/)]).toEqual([1, 'failed: tests\n', null]);
});

it('npm run test:slow runs the tests with each seed, and names the failed seeds', async () => {
  const slow = fileURLToPath(new URL('../../tools/build/test-slow.ts', import.meta.url));
  const { env } = programs({ vitest: 'echo seed $SLOW; test $SLOW = 5' });
  const { code, out } = await runToEnd(slow, env, ['--seeds', '3', '--from', '4', 'test/a.test.ts']);
  const ran = [4, 5, 6].map((seed) => `SLOW=${seed}: 1 file\nseed ${seed}\n`).join('');
  expect([code, out]).toEqual([1, `${ran}Failed: SLOW=4, SLOW=6\n`]);
});
