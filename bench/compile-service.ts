import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));

let compiled: Promise<string> | undefined;

/**
 * Compiles the service to JavaScript, as in production, with its dependencies into a directory that is deleted at exit.
 * Compiles only once.
 * @returns the file to run
 */
export function compileService(): Promise<string> {
  return (compiled ??= compile());
}

async function compile(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'expediter-built-'));
  const tsc = join(PROJECT, 'node_modules/typescript/bin/tsc');
  const words = [tsc, '-p', join(PROJECT, 'tsconfig.build.json'), '--outDir', join(directory, 'dist')];
  // A process group of its own: the compiler runs another program, which would go on without it.
  const compiler = spawn(process.execPath, words, { stdio: 'inherit', detached: true });
  process.once('exit', () => {
    if (compiler.pid !== undefined && compiler.exitCode === null) process.kill(-compiler.pid, 'SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });
  const [code] = (await once(compiler, 'close')) as [number | null];
  if (code !== 0) throw new Error(`the service does not compile: tsc ended with ${code}`);
  for (const name of ['node_modules', 'migrations', 'package.json']) {
    symlinkSync(join(PROJECT, name), join(directory, name));
  }
  return join(directory, 'dist/main.js');
}
