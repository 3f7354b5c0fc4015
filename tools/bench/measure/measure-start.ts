import { setTimeout as sleep } from 'node:timers/promises';
import { compileService } from '../stage/compile-service.ts';
import { prepareBenchDatabase } from '../stage/prepare-bench-database.ts';
import { processorMs } from './processor-ms.ts';
import { residentMb } from './resident-mb.ts';
import { startService } from '../stage/start-service.ts';
import { median } from './summarize.ts';

type Rest = Record<'idleMb' | 'idleCpuMs', number>;
export type StartMeasurement = Record<'startMs' | 'readyMs', number> & Rest;

/** Operators have their own port, as in production. */
const OPERATORS = { OPERATOR_TOKEN: '1O5dv9P2pcZFhXH5m4TXywVkZFFoanlth2LqSyWyWg4', OPERATOR_PORT: '0' };
/** Time for the work that continues after the start. */
const SETTLE_MS = 5_000;
const REST_MS = 10_000;

/**
 * Measures the start of a service with a migrated database and an operators' port: the medians of several starts. Then
 * measures the last service while it has nothing to do.
 */
export async function measureStart(
  postgres: { url: string },
  about: { times: number },
  say: (line: string) => void,
): Promise<StartMeasurement> {
  const { databaseUrl } = await prepareBenchDatabase(postgres.url, { name: 'bench_start', locations: 1 });
  const main = await compileService();
  const starts: number[] = [];
  const readies: number[] = [];
  let rest: Rest = { idleMb: Number.NaN, idleCpuMs: Number.NaN };
  while (starts.length < about.times) {
    const service = await startService(main, { DATABASE_URL: databaseUrl, ...OPERATORS });
    starts.push(service.startMs);
    readies.push(service.readyMs);
    if (starts.length === about.times) rest = await measureRest(service.pid);
    await service.stop();
  }
  say(`  healthy after ${listOf(starts)} ms, ready after ${listOf(readies)} ms`);
  return { startMs: median(starts), readyMs: median(readies), ...rest };
}

async function measureRest(pid: number): Promise<Rest> {
  await sleep(SETTLE_MS);
  const before = processorMs(pid);
  await sleep(REST_MS);
  return { idleMb: residentMb(pid), idleCpuMs: ((processorMs(pid) - before) * 1_000) / REST_MS };
}

function listOf(values: readonly number[]): string {
  return values.map((value) => Math.round(value)).join(', ');
}
