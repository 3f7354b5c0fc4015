/** What only a process of its own shows of the command line. */
import { expect, it } from 'vitest';
import { CLI } from '../support/run-cli.ts';
import { runProgram, runToEnd } from '../../world/processes/run-program.ts';

it.each([
  [0, ['--version'], /^$/],
  [1, ['location', 'list'], /^error: [^\n]*ECONNREFUSED 127\.0\.0\.1:9; start Postgres/],
  [2, ['order'], /^Usage/],
  [3, ['provider', 'schema', 'nowhere'], /^error: nowhere: No integration has this name\./],
] as const)('the command line exits %i with the arguments %j', async (code, args, says) => {
  const { error, ...ended } = await runToEnd(CLI, { DATABASE_URL: 'postgres://127.0.0.1:9/expediter' }, args);
  expect(ended.code).toBe(code);
  expect(error).toMatch(says);
});

it('the command line prints no stack trace when its output is closed', async () => {
  const script = `"${process.execPath}" "${CLI}" provider schema square | :`;
  expect(await runProgram('sh', ['-c', script], {})).toMatchObject({ error: '' });
});
