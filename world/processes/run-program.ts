import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

export type Ended = { code: number | null; out: string; error: string };

/** Runs a program that ends by itself, with this environment only. */
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

/** Runs one of our programs. */
export function runToEnd(
  file: string,
  env: Record<string, string>,
  args: readonly string[],
  input = '',
): Promise<Ended> {
  return runProgram(process.execPath, [file, ...args], env, { input });
}
