import { migrate } from '../../src/database/migrate.ts';
import { prepareClock } from '../../world/processes/move-clock.ts';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';

/** Starts a Postgres with our schema, whose clock can be moved. */
export async function startDatabase(): Promise<Postgres> {
  const postgres = await startPostgres();
  await migrate(postgres.url);
  await prepareClock(postgres.url);
  return postgres;
}

/** Starts two processes of the service on a Postgres of their own. `stop` ends all of them. */
export async function startPair(about: Omit<Parameters<typeof startSystem>[0] & {}, 'databaseUrl'>): Promise<System> {
  const postgres = await startDatabase();
  const system = await startSystem({ ...about, databaseUrl: postgres.url, processes: 2, jobs: 'all' });
  return {
    ...system,
    async stop() {
      await system.stop();
      await postgres.stop();
    },
  };
}
