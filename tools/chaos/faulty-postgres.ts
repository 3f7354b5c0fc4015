import { setTimeout as sleep } from 'node:timers/promises';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import { startFaultProxy, type FaultProxy } from './fault-proxy.ts';
import { ask } from './neighbour.ts';

export type StageDatabase = {
  /** The direct URL, for checks and for faults. */
  databaseUrl: string;
  /** The URL for the service. */
  serviceUrl: string;
  stopDatabase(): Promise<void>;
};

export type FaultyPostgres = StageDatabase & {
  /** The primary. */
  postgres: Postgres;
  /** The proxy whose address the service uses. */
  proxy: FaultProxy;
  /**
   * Kills the primary and promotes a synchronous standby. For `seconds`, the proxy leads to the old primary, which
   * accepts no writes any more, then to the new primary. Connections to the old primary stay open.
   */
  failOver(seconds: number): Promise<void>;
};

/** There are few connections, so that a neighbour can take all of them. */
const SETTINGS = { fsync: 'off', max_connections: '60' };
/** Time for Postgres's checkpointer to apply the setting. Only then do commits wait for the standby. */
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
      await ask(standby.url, 'SELECT pg_promote()');
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

/** Makes commits synchronous: after this, every answered commit is also on the standby's disk. */
export async function makeSynchronous({ url }: Postgres): Promise<void> {
  await ask(url, `ALTER SYSTEM SET synchronous_standby_names = '*'`);
  await ask(url, 'SELECT pg_reload_conf()');
  await sleep(SYNCHRONOUS_AFTER_MS);
  // This commits, so it waits until the standby has all earlier changes.
  await ask(url, `SELECT pg_logical_emit_message(true, 'chaos', 'synchronous')`);
}
