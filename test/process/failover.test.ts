import { afterAll, beforeAll, expect, it } from 'vitest';
import { startFaultProxy, type FaultProxy } from '../../tools/chaos/fault-proxy.ts';
import { ask } from '../../tools/chaos/neighbour.ts';
import { migrate } from '../../src/database/migrate.ts';
import { OPERATOR_TOKEN, scrape } from '../observe/scrape.ts';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import { post, startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

let primary: Postgres;
let standby: Postgres;
/** What the service knows Postgres by. */
let name: FaultProxy;
let system: System;
let webhook: string;

beforeAll(async () => {
  primary = await startPostgres();
  await migrate(primary.url);
  [standby, name] = await Promise.all([
    startPostgres({ standbyOf: primary.url }),
    startFaultProxy({ targetPort: primary.port }),
  ]);
  system = await startSystem({ databaseUrl: name.through(primary.url), env: { OPERATOR_TOKEN }, jobs: 'all' });
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  webhook = await system.webhookUrl('club-1');
});
afterAll(async () => {
  await system?.stop();
  await Promise.all([name?.stop(), standby?.stop(), primary?.stop()]);
});

const send = async (): Promise<number> => (await post(webhook, { eventType: 'menu.changed' })).status;
const answers = async (): Promise<number[]> => [...new Set(await Promise.all(Array.from({ length: 20 }, send)))];
const readyz = async (): Promise<unknown> => {
  const response = await fetch(`${system.urls[0]}/readyz`);
  return [response.status, await response.json()];
};
/** Waits until the service has noticed what Postgres can do now. */
const seen = (database: string): Promise<unknown> =>
  until(async () => JSON.stringify(await readyz()) === JSON.stringify([200, { ready: true, database }]));
const readOnly = async (): Promise<number | undefined> =>
  (await scrape(system.urls[0] ?? '')).value('expediter_database_read_only');

it('webhooks are answered 500 while the database host leads to the old primary, and 200 when it has changed', async () => {
  // A batch writer waits one second for its first connection, which is short on a busy machine.
  await until(async () => (await answers()).join() === '200');
  expect(await readOnly()).toBe(0);
  await until(async () => {
    const rows = await ask(primary.url, 'SELECT FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()');
    return rows.length === 1;
  });
  await primary.kill();
  await ask(standby.url, 'SELECT pg_promote()');
  await primary.restart({ standby: true });

  await seen('read_only');
  expect(await readOnly()).toBe(1);
  expect(await answers()).toEqual([500]);
  // Nothing opened meanwhile is used again.
  name.lead(standby.port);
  expect(await answers()).toEqual([200]);
  await seen('up');
  expect(await readOnly()).toBe(0);
});

it('an idle connection is replaced before a webhook needs it if its server has become read-only', async () => {
  expect(await answers()).toEqual([200]);
  const backends = async (): Promise<unknown[]> => {
    const sql = `SELECT pid FROM pg_stat_activity WHERE application_name = 'expediter'`;
    return (await ask<{ pid: number }>(standby.url, sql)).map(({ pid }) => pid);
  };
  const before = await backends();
  await ask(standby.url, 'ALTER SYSTEM SET default_transaction_read_only = on');
  await ask(standby.url, 'SELECT pg_reload_conf()');
  await until(async () => {
    const now = await backends();
    return before.every((pid) => !now.includes(pid));
  });
  await ask(standby.url, 'ALTER SYSTEM RESET default_transaction_read_only');
  await ask(standby.url, 'SELECT pg_reload_conf()');
  await seen('up');
  expect(await answers()).toEqual([200]);
});
