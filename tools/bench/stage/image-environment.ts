import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

let environment: Record<string, string> | undefined;

/**
 * The Dockerfile's environment for the service, so that the measurement is like production. Leaves out LD_PRELOAD if
 * this machine lacks the allocator, because every process would print an error.
 */
export function imageEnvironment(): Record<string, string> {
  environment ??= readEnvironment();
  return environment;
}

function readEnvironment(): Record<string, string> {
  const dockerfile = readFileSync(new URL('../../../Dockerfile', import.meta.url), 'utf8');
  const set = [...dockerfile.matchAll(/^ENV (\w+)=(?:"(.*)"|(\S*))$/gm)];
  const { LD_PRELOAD = '', ...others } = Object.fromEntries(
    set.map(([, name = '', quoted, plain]) => [name, quoted ?? plain ?? '']),
  );
  return isLoadable(LD_PRELOAD) ? { ...others, LD_PRELOAD } : others;
}

/** Tests if a library can be loaded. If it cannot, the loader runs the program anyway, but prints an error. */
function isLoadable(library: string): boolean {
  if (process.platform !== 'linux') return false;
  return spawnSync(process.execPath, ['--version'], { env: { LD_PRELOAD: library } }).stderr.length === 0;
}
