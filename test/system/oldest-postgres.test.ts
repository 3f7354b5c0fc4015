import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { postgresMs } from '../../bench/processor-ms.ts';
import { migrate } from '../../src/database/migrate.ts';
import { startPostgres } from '../support/start-postgres.ts';
import { startSystem } from '../support/start-system.ts';
import { needsPostgres } from './needs-tool.ts';

const MINUTE_MS = 60_000;
/** With its statements compiled, a process that rests costs ten seconds. */
const AT_MOST_MS = 3_000;

it('a minute of rest costs the oldest Postgres that Debian has, with many open orders, few seconds', async () => {
  const [bin = ''] = needsPostgres();
  const postgres = await startPostgres({
    binaries: { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') },
  });
  try {
    await migrate(postgres.url);
    const system = await startSystem({ databaseUrl: postgres.url });
    await system.query(
      `WITH s AS (SELECT 'order-' || nth AS id, 'place-' || (nth % 100) AS place FROM generate_series(1, 5000) AS nth),
            p AS (INSERT INTO placements (service_order_id, location_id, state, deadline_at, finished_at)
                  SELECT id, place, 'sent', now(), now() FROM s)
       INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence)
       SELECT id, 'K472', place, 'standard', 'pickup', 20, 2 FROM s`,
    );
    await system.query('ANALYZE');
    const before = postgresMs(postgres.pid);
    await sleep(MINUTE_MS);
    const spent = postgresMs(postgres.pid) - before;
    process.stdout.write(`${bin}: ${Math.round(spent)} ms of processor time in a minute of rest\n`);
    expect(spent).toBeLessThan(AT_MOST_MS);
    await system.stop();
  } finally {
    await postgres.stop();
  }
});
