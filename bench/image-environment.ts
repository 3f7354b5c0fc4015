import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

let environment: Record<string, string> | undefined;

/**
 * What the Dockerfile sets for the service: what is measured is how it is operated. Without its allocator where this
 * machine does not have that, since every process would complain.
 */
export function imageEnvironment(): Record<string, string> {
  environment ??= readEnvironment();
  return environment;
}

function readEnvironment(): Record<string, string> {
  const dockerfile = readFileSync(new URL('../Dockerfile', import.meta.url), 'utf8');
  const set = [...dockerfile.matchAll(/^ENV (\w+)=(?:"(.*)"|(\S*))$/gm)];
  const { LD_PRELOAD = '', ...others } = Object.fromEntries(
    set.map(([, name = '', quoted, plain]) => [name, quoted ?? plain ?? '']),
  );
  return isLoadable(LD_PRELOAD) ? { ...others, LD_PRELOAD } : others;
}

/** The loader runs the program in any case; of a library that it does not find it complains. */
function isLoadable(library: string): boolean {
  if (process.platform !== 'linux') return false;
  return spawnSync(process.execPath, ['--version'], { env: { LD_PRELOAD: library } }).stderr.length === 0;
}
