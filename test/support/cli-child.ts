/** The process of `runCli`. It does what `cli.ts` does, once per message. */
import { Readable } from 'node:stream';
import { report } from '../../src/cli/failures.ts';
import { buildProgram } from '../../src/cli/program.ts';

type Command = { env: Record<string, string>; args: string[]; input: string };

const { PATH, NODE_COMPILE_CACHE } = process.env;

process.on('message', ({ env, args, input }: Command) => {
  void (async () => {
    const said = { out: '', error: '' };
    process.env = { PATH, NODE_COMPILE_CACHE, ...env };
    process.exitCode = 0;
    Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(input)]), configurable: true });
    process.stdout.write = (words: string | Uint8Array) => ((said.out += String(words)), true);
    process.stderr.write = (words: string | Uint8Array) => ((said.error += String(words)), true);
    try {
      await buildProgram().parseAsync(args, { from: 'user' });
    } catch (error) {
      process.exitCode = report(error);
    }
    const code = process.exitCode;
    process.exitCode = 0;
    process.send?.({ code, ...said });
  })();
});
