import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../src/cli.ts', import.meta.url));

/** What may be a secret of whoever runs the demo, and is not written down: their shell has it. */
const MAYBE_THEIRS = ['DATABASE_URL', 'ORDER_API_TOKEN'];

/**
 * Writes what a shell reads (`. <file>`) so that `expediter` is the command line of this demo there, with its service's
 * environment: then every command works that the console shows.
 * @param own the environment of the demo
 * @returns the file, quoted
 */
export function writeShell(dir: string, env: Record<string, string>, own: NodeJS.ProcessEnv): string {
  const file = join(dir, 'expediter.sh');
  const variables = Object.entries(env).map(([name, value]) =>
    MAYBE_THEIRS.includes(name) && own[name] === value
      ? `: "\${${name}:?export it, as for the demo}"\n`
      : `export ${name}=${quoted(value)}\n`,
  );
  const command = `expediter() { ${quoted(process.execPath)} ${quoted(CLI)} "$@"; }\n`;
  writeFileSync(file, variables.join('') + command, { mode: 0o600 });
  return quoted(file);
}

/** Quotes one word for a POSIX shell, unless it needs no quotes. */
export function quoted(word: string): string {
  return /^[\w./:@-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
