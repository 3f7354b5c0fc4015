import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startPostgres, type Postgres } from '../test/support/start-postgres.ts';
import { startFaultProxy, type FaultProxy } from './fault-proxy.ts';

export type StageDatabase = {
  /** For those who look at it, or disturb it. */
  databaseUrl: string;
  /** For the service. */
  serviceUrl: string;
  stopDatabase(): Promise<void>;
};

export type FaultyPostgres = StageDatabase & {
  /** The primary. */
  postgres: Postgres;
  /** The name that the service knows it by. */
  proxy: FaultProxy;
  /**
   * Kills the primary and promotes a synchronous standby. For `seconds` the name leads to the old primary, which takes
   * no writes any more, and then to the new one; connections to the old stay open.
   */
  failOver(seconds: number): Promise<void>;
};

/** Few, so that a neighbour can take them all. */
const SETTINGS = { fsync: 'off', max_connections: '60' };
/** Time for Postgres's checkpointer, which makes commits wait for the standby, to hear of it. */
const SYNCHRONOUS_AFTER_MS = 1_000;

/** Starts a Postgres that is reached through a fault proxy. */
export async function startFaultyPostgres(): Promise<FaultyPostgres> {
  const postgres = await startPostgres({ settings: SETTINGS });
  const proxy = await startFaultProxy({ targetPort: postgres.port });
  let retired: Postgres | undefined;
  const database: FaultyPostgres = {
    databaseUrl: postgres.url,
    serviceUrl: proxy.through(postgres.url),
    postgres,
    proxy,
    async failOver(seconds) {
      await retired?.stop();
      const old = database.postgres;
      const standby = await startPostgres({ settings: SETTINGS, standbyOf: old.url });
      await makeSynchronous(old);
      retired = old;
      await old.kill();
      await ask(standby, 'SELECT pg_promote()');
      database.postgres = standby;
      database.databaseUrl = standby.url;
      await old.restart({ standby: true });
      await sleep(seconds * 1_000);
      proxy.lead(standby.port);
    },
    async stopDatabase() {
      await proxy.stop();
      await Promise.all([database.postgres.stop(), retired?.stop()]);
    },
  };
  return database;
}

/** From then on every commit that is answered is on the standby's disk, too. */
async function makeSynchronous(primary: Postgres): Promise<void> {
  await ask(primary, `ALTER SYSTEM SET synchronous_standby_names = '*'`);
  await ask(primary, 'SELECT pg_reload_conf()');
  await sleep(SYNCHRONOUS_AFTER_MS);
  // Commits, and so waits for the standby to have all that came before.
  await ask(primary, `SELECT pg_logical_emit_message(true, 'chaos', 'synchronous')`);
}

async function ask(postgres: Postgres, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url, application_name: 'neighbour' });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
