import pg from 'pg';
import { expect, it } from 'vitest';
import { postgresMs, processorMs } from '../../tools/bench/measure/processor-ms.ts';
import { startPostgres } from '../../world/postgres/start-postgres.ts';
import { until } from '../../world/processes/until.ts';

it('the measured CPU time of a process equals what the process itself counts', () => {
  const [before, own] = [processorMs(process.pid), process.cpuUsage()];
  const until = performance.now() + 100;
  while (performance.now() < until);
  const { user, system } = process.cpuUsage(own);
  expect((processorMs(process.pid) - before) / ((user + system) / 1_000)).toBeCloseTo(1, 1);
  expect(processorMs(2 ** 30)).toBeNaN();
});

it('the measured CPU time of Postgres includes all its processes, new and ended ones', async () => {
  const postgres = await startPostgres();
  try {
    const before = postgresMs(postgres.pid);
    const client = new pg.Client(postgres.url);
    await client.connect();
    const sql = 'SELECT pg_backend_pid() AS pid, count(*) FROM generate_series(1, 1000000)';
    const { rows } = await client.query<{ pid: number }>(sql);
    const spent = postgresMs(postgres.pid) - before;
    expect(spent).toBeGreaterThan(20);
    await client.end();
    await until(() => Number.isNaN(processorMs(rows[0]?.pid ?? 0)));
    expect(postgresMs(postgres.pid) - before).toBeGreaterThan(0.8 * spent);
  } finally {
    await postgres.stop();
  }
});
