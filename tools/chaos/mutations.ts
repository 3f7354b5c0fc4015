/**
 * Removes one guard of the service at a time, in a copy, and checks that a test or the harness notices. A guard whose
 * absence nobody notices is either not needed or not tested.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MUTATIONS, withoutGuard, type Mutation } from './guards.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PARTS = [
  'src',
  'console',
  'test',
  'tools',
  'world',
  'packages',
  'examples',
  'migrations',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
  '.env.example',
];
/** Without its guard, a test may wait a minute for an event that never comes, some tests more than once. */
const PATIENCE_MS = 900_000;

const wanted = process.argv.slice(2);
const named = Object.entries(MUTATIONS).filter(
  ([claim, { edits }]) =>
    wanted.length === 0 || wanted.some((part) => [claim, ...Object.keys(edits)].some((name) => name.includes(part))),
);
// Tests come before chaos, which takes minutes for each.
const chosen = named.toSorted(([, one], [, other]) => (other.noticedBy[0] ?? '').localeCompare(one.noticedBy[0] ?? ''));
if (chosen.length === 0) {
  process.stderr.write(`There is no guard of this name. The guards are:\n${Object.keys(MUTATIONS).join('\n')}\n`);
  process.exit(2);
}

const counts = { noticed: 0, 'NOT NOTICED': 0, 'FAILS WITH THE GUARD, TOO': 0 };
const passes = new Map<string, boolean>();
for (const [claim, { edits, noticedBy }] of chosen) {
  const name = noticedBy.filter((part) => !/^(node_modules|run$|--config|-t$)/.test(part)).join(' ');
  if (!passes.has(name)) passes.set(name, await succeeds(noticedBy));
  const verdict =
    passes.get(name) !== true
      ? 'FAILS WITH THE GUARD, TOO'
      : (await succeeds(noticedBy, edits))
        ? 'NOT NOTICED'
        : 'noticed';
  counts[verdict] += 1;
  process.stdout.write(`${verdict.padEnd(12)} ${claim}: ${name}\n`);
}
const counted = Object.entries(counts).map(([verdict, count]) => `${count} ${verdict}`);
process.stdout.write(`${chosen.length} guards: ${counted.join(', ')}\n`);
process.exitCode = counts.noticed === chosen.length ? 0 : 1;

/** Runs a command in a copy of the checkout, with all guards or without one. @returns whether it exited with 0 */
async function succeeds(command: readonly string[], edits: Mutation['edits'] = {}): Promise<boolean> {
  const copy = mkdtempSync(join(tmpdir(), 'expediter-mutation-'));
  try {
    for (const part of PARTS) cpSync(join(ROOT, part), join(copy, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    for (const file of globSync(join(copy, 'src/**/*.ts'))) {
      const text = readFileSync(file, 'utf8');
      const edited = Object.entries(edits).reduce((left, [mark, edit]) => withoutGuard(left, mark, edit), text);
      if (edited !== text) writeFileSync(file, edited);
    }
    const child = spawn(process.execPath, command, { cwd: copy, stdio: 'ignore', timeout: PATIENCE_MS });
    const [code] = (await once(child, 'exit')) as [number | null];
    return code === 0;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
