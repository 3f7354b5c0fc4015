/**
 * `npm test`: the tests, which begin at once, and at a lower priority types, lint and format. With arguments, which go
 * to Vitest, only the tests run.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** The npm script of each check. They run one after another, because types and lint need more than a gigabyte each. */
const CHECKS = { types: 'typecheck', lint: 'lint', format: 'format:check' };
/** For the parts of types and lint that are written in Go: a fifth less processor time, for 250 MB more of lint. */
const FEWER_COLLECTIONS = { GOGC: '200' };

/** A third of the usual share of a processor. At 19, the lowest, a busy machine left the checks almost no time. */
const CHECKS_NICE = 5;

const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  scripts: Record<string, string>;
};
const args = process.argv.slice(2);
const failed: string[] = [];
const outputs: string[] = [];
let check: ChildProcess | undefined;
let isStopping = false;

const vitest = spawn('vitest', ['run', '--project', 'tests', ...args], { stdio: 'inherit' });
const testsEnd = once(vitest, 'close') as Promise<[number | null]>;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    isStopping = true;
    vitest.kill(signal);
    // tsc takes its time with other signals.
    check?.kill('SIGKILL');
  });
}
// Set after Vitest was started: only the checks inherit it.
setPriority(CHECKS_NICE);
const checksEnd = args.length === 0 ? runChecks() : undefined;

const [code] = await testsEnd;
await checksEnd;
if (code !== 0) failed.unshift('tests');
process.stdout.write(outputs.join(''));
if (failed.length > 0) process.stdout.write(`failed: ${failed.join(', ')}\n`);
else if (checksEnd !== undefined) process.stdout.write(`${Object.keys(CHECKS).join(', ')}: passed\n`);
process.exitCode = failed.length > 0 ? 1 : 0;

async function runChecks(): Promise<void> {
  for (const [what, script] of Object.entries(CHECKS)) {
    for (const command of (scripts[script] ?? '').split(' && ')) {
      if (isStopping) return;
      // Without a shell in between, which would end without its command.
      check = spawn(`exec ${command}`, {
        shell: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...FEWER_COLLECTIONS },
      });
      let output = '';
      for (const stream of [check.stdout, check.stderr])
        stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
      // It comes when every process that the check started has ended too.
      const [status] = (await once(check, 'close')) as [number | null];
      if (status === 0 || isStopping) continue;
      failed.push(`${what} (npm run ${script})`);
      outputs.push(`\n> npm run ${script}\n${output}\n`);
      break;
    }
  }
}
