import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

export const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
export const MODULES = join(PROJECT, 'node_modules');

/** Whatever the machine's own npm is told to do. */
export const OFFLINE = ['--offline', '--ignore-scripts=false'];

/** Copies what packages are built from. Packing builds, which would pull a package's `dist` from under whoever uses it here. */
export function copyProject(to: string): string {
  const sources = ['src', 'world', 'packages', 'LICENSE', 'package.json', 'tsconfig.json'];
  for (const name of sources) cpSync(join(PROJECT, name), join(to, name), { recursive: true });
  symlinkSync(MODULES, join(to, 'node_modules'));
  return to;
}

/** In place of an installation: packages that were packed, by their folders, everything else as it is installed here. */
export function link(directory: string, names: readonly string[], packed: Readonly<Record<string, string>> = {}): void {
  for (const name of new Set([...names, ...Object.keys(packed)])) {
    const place = join(directory, 'node_modules', name);
    mkdirSync(dirname(place), { recursive: true });
    if (packed[name] === undefined) symlinkSync(join(MODULES, name), place);
    else cpSync(packed[name], place, { recursive: true });
  }
}

/** Runs a program to its end, which has to be a good one. @returns what it wrote */
export async function runWell(directory: string, program: string, words: readonly string[]): Promise<string> {
  const child = spawn(program, words, { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const [out, error, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  expect(code, `${program} ${words.join(' ')}\n${out}\n${error}`).toBe(0);
  return out;
}

/** Has npm pack a package, and unpacks it. @returns `to`, the folder of what is in it */
export async function packPackage(directory: string, to: string): Promise<string> {
  const beside = dirname(to);
  mkdirSync(to, { recursive: true });
  const out = await runWell(directory, 'npm', ['pack', '--json', ...OFFLINE, '--pack-destination', beside]);
  const file = /"filename": "([^"]+\.tgz)"/.exec(out)?.[1] ?? expect.unreachable(out);
  await runWell(beside, 'tar', ['-xzf', file, '--strip-components=1', '-C', to]);
  return to;
}
