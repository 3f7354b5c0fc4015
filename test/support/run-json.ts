import { expect } from 'vitest';
import { runCli } from './run-cli.ts';

/** Runs a command that has to succeed. @returns its JSON */
export async function runJson<Value>(
  env: Record<string, string>,
  args: readonly string[],
  input?: string,
): Promise<Value> {
  const ended = await runCli(env, [...args, '--json'], input);
  expect({ ...ended, out: '' }).toEqual({ code: 0, out: '', error: expect.any(String) });
  return JSON.parse(ended.out) as Value;
}
