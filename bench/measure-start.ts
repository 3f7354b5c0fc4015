import { compileService } from './compile-service.ts';
import { prepareBenchDatabase } from './prepare-bench-database.ts';
import { startService } from './start-service.ts';
import { median } from './summarize.ts';

/** Measures the start of a service whose database is migrated: the medians of several starts. */
export async function measureStart(
  postgres: { url: string },
  about: { times: number },
  say: (line: string) => void,
): Promise<{ startMs: number; readyMs: number }> {
  const { databaseUrl } = await prepareBenchDatabase(postgres.url, { name: 'bench_start', locations: 1 });
  const main = await compileService();
  const starts: number[] = [];
  const readies: number[] = [];
  while (starts.length < about.times) {
    const service = await startService(main, { DATABASE_URL: databaseUrl });
    await service.stop();
    starts.push(service.startMs);
    readies.push(service.readyMs);
  }
  say(`  healthy after ${listOf(starts)} ms, ready after ${listOf(readies)} ms`);
  return { startMs: median(starts), readyMs: median(readies) };
}

function listOf(values: readonly number[]): string {
  return values.map((value) => Math.round(value)).join(', ');
}
