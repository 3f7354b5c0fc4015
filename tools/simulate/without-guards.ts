/**
 * Takes each guard about order, time or crashes away, one at a time, and looks for a seed that notices it. The other
 * guards are about what one call or one statement does alone, and `tools/chaos/guards.ts` names the test of each. Eight
 * more are left to their tests: a trigger of Postgres holds `doubt-stays` too; without `called-off` a person settles
 * the doubt; `absent-after-death` needs an operator who looks in the minute after a process died in its request;
 * `early-end-notified` is about orders that ended days ago; `no-ticket-after-cancel` also stops what `no-retry-once-
 * cancelled` stops; after a long stop a process gives up its statement before it reads the answer, so `no-late-call`
 * is not reached; a worker sends an order milliseconds after it has read it, and `worker-lets-go` is about a change
 * that is stored between; and `locked-by-key` is about two batches that lock the same rows in turns, while a
 * statement of the simulation takes all its locks at once unless somebody holds one.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';

const MARKS = [
  'order-lock',
  'cancel-lock',
  'higher-rank',
  'attempt-written',
  'cancel-written',
  'cancel-until-deadline',
  'lease-covers-call',
  'died-in-doubt',
  'lost-in-doubt',
  'doubt-not-repeated',
  'ask-before-retry',
  'pos-key',
  'outbox-in-commit',
  'stop-at-failed',
  'forget-when-out',
  'postgres-clock',
  'missing-since',
  'parked-go-on',
  'sweep-finds',
  'signal-refreshes',
  'refresh-ends',
  'sent-as-it-was',
  'absent-after',
  'absent-too-early',
  'refusal-notified',
  'unknown-state',
  'restored-in-doubt',
  'forgotten-in-doubt',
  'every-run-records',
  'doubt-stays-there',
  'repeat-may-arrive',
  'unsure-503',
  'sequence-floor',
  'ack-after-commit',
  'answered-when-out',
  'spilled-id',
];

const { values, positionals } = parseArgs({
  options: { seeds: { type: 'string', default: '1000' }, orders: { type: 'string', default: '20' } },
  allowPositionals: true,
});
const program = fileURLToPath(new URL('simulate.ts', import.meta.url));
const run = promisify(execFile);
const left = positionals.length > 0 ? positionals : [...MARKS];
let missed = 0;

async function look(): Promise<void> {
  for (let mark = left.shift(); mark !== undefined; mark = left.shift()) {
    const about = ['--without', mark, '--seeds', values.seeds, '--orders', values.orders];
    const said = await run(process.execPath, [program, ...about, '--until-found'], { maxBuffer: 2 ** 28 }).then(
      () => undefined,
      (error: { stdout?: string; stderr?: string }) => `${error.stdout ?? ''}${error.stderr ?? ''}`,
    );
    if (said === undefined) missed += 1;
    const seeds = said?.match(/^seed /gm)?.length ?? 0;
    const found = said?.trim().split('\n').slice(-3).join(' | ').slice(0, 300) ?? '';
    process.stdout.write(said === undefined ? `NOT NOTICED ${mark}\n` : `${mark}: seed ${seeds}: ${found}\n`);
  }
}

await Promise.all([look(), look()]);
process.exitCode = missed > 0 ? 1 : 0;
