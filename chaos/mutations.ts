/**
 * Removes one guard of the service at a time, in a copy, and checks that a test or the harness notices. A guard whose
 * absence nobody notices is either not needed or not tested.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MUTATIONS, type Mutation } from './guards.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PARTS = [
  'src',
  'test',
  'chaos',
  'clients',
  'examples',
  'migrations',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
  'vitest.process.config.ts',
  '.env.example',
];
const PATIENCE_MS = 400_000;

const wanted = process.argv.slice(2);
const chosen = MUTATIONS.filter(({ guard }) => wanted.length === 0 || wanted.some((part) => guard.includes(part)));
if (chosen.length === 0) {
  process.stderr.write(`No guard is called so. There are:\n${MUTATIONS.map(({ guard }) => `  ${guard}`).join('\n')}\n`);
  process.exit(2);
}

const passes = new Map<string, boolean>();
let unnoticed = 0;
for (const { guard, file, edits, noticedBy } of chosen) {
  const name = noticedBy.filter((part) => !/^(node_modules|run$|--config)/.test(part)).join(' ');
  if (!passes.has(name)) passes.set(name, await succeeds(noticedBy));
  const noticed = passes.get(name) === true && !(await succeeds(noticedBy, { file, edits }));
  if (!noticed) unnoticed += 1;
  const verdict = noticed ? 'noticed' : passes.get(name) === true ? 'NOT NOTICED' : 'FAILS WITH THE GUARD, TOO';
  process.stdout.write(`${verdict.padEnd(12)} ${guard}: ${name}\n`);
}
process.stdout.write(`${chosen.length - unnoticed} of ${chosen.length} guards are noticed when they are missing\n`);
process.exitCode = unnoticed === 0 ? 0 : 1;

/** Runs a command in a copy of the checkout, with or without a guard. @returns whether it exited with 0 */
async function succeeds(command: readonly string[], edit?: Pick<Mutation, 'file' | 'edits'>): Promise<boolean> {
  const copy = mkdtempSync(join(tmpdir(), 'expediter-mutation-'));
  try {
    for (const part of PARTS) cpSync(join(ROOT, part), join(copy, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    if (edit !== undefined) {
      let text = readFileSync(join(copy, edit.file), 'utf8');
      for (const [from, to] of edit.edits) {
        if (text.split(from).length !== 2) throw new Error(`${edit.file} does not hold once: ${from}`);
        text = text.replace(from, () => to);
      }
      writeFileSync(join(copy, edit.file), text);
    }
    const child = spawn(process.execPath, command, { cwd: copy, stdio: 'ignore', timeout: PATIENCE_MS });
    const [code] = (await once(child, 'exit')) as [number | null];
    return code === 0;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
