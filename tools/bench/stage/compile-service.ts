import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import buildServer from '../../build/build-service.ts';

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));

let compiled: Promise<string> | undefined;

/**
 * Bundles the service with its dependencies, as in production, into a directory that is deleted at exit. Later calls
 * return the same bundle. @returns the file to run
 */
export function compileService(): Promise<string> {
  return (compiled ??= compile());
}

async function compile(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'expediter-built-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  await buildServer(join(directory, 'dist'));
  for (const name of ['node_modules', 'migrations', 'package.json']) {
    symlinkSync(join(PROJECT, name), join(directory, name));
  }
  return join(directory, 'dist/main.js');
}
