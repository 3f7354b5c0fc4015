import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLI } from '../support/run-cli.ts';
import { runProgram, type Ended } from '../../world/processes/run-program.ts';

/**
 * Runs a command that the console shows, word for word, in a shell, where `expediter` is ours.
 * @param files what lies in the folder where it runs, by name
 */
export async function runShownCommand(
  command: string,
  about: { env: Record<string, string>; files?: Record<string, string> },
): Promise<Ended> {
  const folder = await mkdtemp(join(tmpdir(), 'expediter-'));
  try {
    const expediter = join(folder, 'expediter');
    await writeFile(expediter, `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`);
    await chmod(expediter, 0o755);
    for (const [name, text] of Object.entries(about.files ?? {})) await writeFile(join(folder, name), text);
    const env = { ...about.env, PATH: `${folder}:${process.env['PATH'] ?? ''}` };
    return await runProgram('sh', ['-c', command], env, { cwd: folder });
  } finally {
    await rm(folder, { recursive: true });
  }
}
