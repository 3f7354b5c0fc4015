import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endWithUs } from '../../world/processes/end-with-us.ts';
import { installApart } from '../../world/processes/install-apart.ts';
import { until } from '../../world/processes/until.ts';

/** Installs a shop of `examples/platforms` from its lock file, and compiles it. @returns its folder */
export function installShop(name: string): string {
  const folder = fileURLToPath(new URL(`../../examples/platforms/${name}/shop`, import.meta.url));
  installApart(folder);
  execFileSync(process.execPath, [join(folder, 'node_modules/typescript/bin/tsc'), '-p', folder], { stdio: 'inherit' });
  return folder;
}

export type Shop = {
  /** Standard output and error so far. */
  output(): string;
  /** SIGTERM, as a deployment does. */
  stop(): Promise<void>;
  /** SIGKILL, as a crash. */
  kill(): Promise<void>;
};

/** Runs a shop in a process of its own, with this environment only. Resolves when it has printed `ready`. It ends with us. */
export async function startShop(about: {
  folder: string;
  /** Relative to the folder. */
  script: string;
  args?: string[];
  env: Record<string, string>;
  ready: RegExp;
}): Promise<Shop> {
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [about.script, ...(about.args ?? [])], {
    cwd: about.folder,
    env: { PATH, ...about.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endWithUs(child);
  const closed = once(child, 'close');
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  await until(() => {
    if (child.exitCode !== null) throw new Error(`the shop ended: ${output.slice(-4_000)}`);
    return about.ready.test(output);
  }, 120_000);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await closed;
  };
  return { output: () => output, stop: () => end('SIGTERM'), kill: () => end('SIGKILL') };
}
