import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { report } from '../../src/terminal/failures.ts';
import { buildProgram } from '../../src/cli/program.ts';
import type { Ended } from '../../world/processes/run-program.ts';

export const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

/** Gets what is written to standard error, as it is written. */
type Heard = (words: string) => void;

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs the command line in this process, with this environment only, one command after the other. To run two at once,
 * or to test the process itself, use `runToEnd` with `CLI`.
 */
export function runCli(
  env: Record<string, string>,
  args: readonly string[],
  input = '',
  heard?: Heard,
): Promise<Ended> {
  const ended = last.then(() => runHere(env, args, input, heard));
  last = ended.catch(() => {});
  return ended;
}

/** Does what `cli.ts` does. One at a time, since it replaces globals of the process. */
async function runHere(
  env: Record<string, string>,
  args: readonly string[],
  input: string,
  heard: Heard = () => {},
): Promise<Ended> {
  const { env: ownEnv, stdout, stderr, exitCode } = process;
  const stdin = Object.getOwnPropertyDescriptor(process, 'stdin') ?? {};
  // What the rest of this process may read meanwhile, such as a Pub/Sub client of the service.
  const { PATH, NODE_COMPILE_CACHE, METADATA_SERVER_DETECTION, PUBSUB_EMULATOR_HOST } = ownEnv;
  const [writeOut, writeError] = [stdout.write, stderr.write];
  const said = { out: '', error: '' };
  process.env = { PATH, NODE_COMPILE_CACHE, METADATA_SERVER_DETECTION, PUBSUB_EMULATOR_HOST, ...env };
  process.exitCode = 0;
  Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(input)]), configurable: true });
  stdout.write = (words: string | Uint8Array) => ((said.out += String(words)), true);
  stderr.write = (words: string | Uint8Array) => {
    said.error += String(words);
    heard(String(words));
    return true;
  };
  try {
    await buildProgram()
      .parseAsync(args, { from: 'user' })
      .catch((error: unknown) => (process.exitCode = report(error)));
    return { code: process.exitCode, ...said };
  } finally {
    process.env = ownEnv;
    process.exitCode = exitCode;
    Object.defineProperty(process, 'stdin', stdin);
    stdout.write = writeOut;
    stderr.write = writeError;
  }
}
