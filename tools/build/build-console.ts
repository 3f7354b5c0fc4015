/** `node tools/build/build-console.ts`: builds the console, unless the last build is newer than all its sources. */
import { readdir, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../..', import.meta.url);
const MADE_OF = ['console', 'src', 'tools/build', 'package-lock.json'];
/** The file that a build writes last. */
const BUILT = 'dist/console/index.html';

export default async function buildConsole(): Promise<void> {
  const built = await changedAt(BUILT).catch(() => 0);
  const sources = await Promise.all(MADE_OF.map(newestIn));
  if (Math.max(...sources) < built) return;
  const { build } = await import('vite');
  const { NODE_ENV } = process.env;
  // The NODE_ENV of a test runner would make a development build, which contains the paths of this machine.
  process.env['NODE_ENV'] = 'production';
  try {
    await build({ root: fileURLToPath(new URL('console', ROOT)), logLevel: 'warn' });
  } finally {
    if (NODE_ENV === undefined) delete process.env['NODE_ENV'];
    else process.env['NODE_ENV'] = NODE_ENV;
  }
}

async function newestIn(path: string): Promise<number> {
  const files = await readdir(new URL(path, ROOT), { recursive: true }).catch(() => []);
  return Math.max(...(await Promise.all([path, ...files.map((file) => `${path}/${file}`)].map(changedAt))));
}

async function changedAt(path: string): Promise<number> {
  return (await stat(new URL(path, ROOT))).mtimeMs;
}

if (import.meta.main) await buildConsole();
