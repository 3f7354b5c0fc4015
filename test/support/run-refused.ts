import { expect } from 'vitest';
import { runCli } from './run-cli.ts';

/** Runs a command that has to end with this exit code and print nothing but an error. @returns the error */
export async function runRefused(
  code: number,
  env: Record<string, string>,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const ended = await runCli(env, args, input);
  expect(ended).toEqual({ code, out: '', error: expect.any(String) });
  return ended.error;
}
