import type { MainProcess } from '../../world/processes/run-main.ts';
import { until } from '../../world/processes/until.ts';

/** Bytes after a garbage collection, and the number of open connections. */
export type Memory = { heapUsed: number; external: number; rss: number; sockets: number };

/** `NODE_OPTIONS` of a process whose memory is measured. */
export const PROBED = `--expose-gc --import=${new URL('./probe-memory.ts', import.meta.url).href}`;

/** Measures the memory of a process that was started with `PROBED`. */
export async function memoryOf(main: MainProcess): Promise<Memory> {
  const reports = (): string[] => [...main.output().matchAll(/^MEMORY (.+)$/gm)].map((match) => match[1] ?? '');
  const before = reports().length;
  main.child.kill('SIGUSR2');
  return JSON.parse(await until(() => reports()[before])) as Memory;
}
