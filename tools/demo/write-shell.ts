import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

/** Variables that may be secrets of the user. They are not written to the file, because the user's shell has them. */
const MAYBE_THEIRS = ['DATABASE_URL', 'FOLLOW_TOKEN_KEYS', 'ORDER_API_TOKEN', 'STATUS_WEBHOOK_SECRET'];

/**
 * Writes a file for a shell to read with `. <file>`. It defines `expediter` as the command line of this demo, with the
 * environment of its service, so that the commands in the console work there.
 * @param own the environment of the demo
 * @returns the path of the file, quoted, and the variables that its shell must have
 */
export function writeShell(dir: string, env: Record<string, string>, own: NodeJS.ProcessEnv) {
  const file = join(dir, 'expediter.sh');
  const theirs = MAYBE_THEIRS.filter((name) => env[name] !== undefined && own[name] === env[name]);
  const variables = Object.entries(env).map(([name, value]) =>
    theirs.includes(name)
      ? `: "\${${name}:?export it with the value that the demo has}"\n`
      : `export ${name}=${quoted(value)}\n`,
  );
  const command = `expediter() { ${quoted(process.execPath)} ${quoted(CLI)} "$@"; }\n`;
  writeFileSync(file, variables.join('') + command, { mode: 0o600 });
  return { shell: quoted(file), theirs };
}

/** Quotes one word for a POSIX shell, unless it needs no quotes. */
export function quoted(word: string): string {
  return /^[\w./:@-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
