import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

export type Ended = { code: number | null; out: string; error: string };

/** The command line as an operator runs it: in a process of its own, with this environment alone. */
export function runCli(env: Record<string, string>, args: readonly string[], input?: string): Promise<Ended> {
  return runToEnd(CLI, env, args, input);
}

/** The same with any other of our programs that ends by itself. */
export function runToEnd(
  file: string,
  env: Record<string, string>,
  args: readonly string[],
  input = '',
): Promise<Ended> {
  return runProgram(process.execPath, [file, ...args], env, { input });
}

/** And with whatever program. */
export async function runProgram(
  program: string,
  args: readonly string[],
  env: Record<string, string>,
  { input = '', cwd }: { input?: string; cwd?: string } = {},
): Promise<Ended> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(program, args, { env: { PATH, NODE_COMPILE_CACHE, ...env }, cwd });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const ended = once(child, 'close') as Promise<[number | null]>;
  const [out, error, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, out, error };
}
