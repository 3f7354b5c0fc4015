import type { MainProcess } from './run-main.ts';
import { until } from './until.ts';

/** Bytes, after a collection of garbage; and how many connections are open. */
export type Memory = { heapUsed: number; external: number; rss: number; sockets: number };

/** For `NODE_OPTIONS` of a process whose memory is to be looked at. */
export const PROBED = `--expose-gc --import=${new URL('./probe-memory.ts', import.meta.url).href}`;

/** What a process that was started with `PROBED` holds on to. */
export async function memoryOf(main: MainProcess): Promise<Memory> {
  const reports = (): string[] => [...main.output().matchAll(/^MEMORY (.+)$/gm)].map((match) => match[1] ?? '');
  const before = reports().length;
  main.child.kill('SIGUSR2');
  return JSON.parse(await until(() => reports()[before])) as Memory;
}
