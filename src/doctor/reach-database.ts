import type { Pool } from 'pg';
import { withClient } from '../core/postgres/with-client.ts';
import { SETTINGS_ARRIVED } from '../database.ts';
import { explainDatabaseError } from '../explain-database-error.ts';
import { checkSchema, WrongSchema } from '../check-schema.ts';
import { reporterOf, type Finding } from './finding.ts';
import { judgeEncryption, type Link } from './judge-encryption.ts';

const { ok, failed } = reporterOf('database');

/** Connects and checks the schema. `isUsable` says whether the parts that need the database can be examined. */
export async function reachDatabase(
  pool: Pool,
  env: NodeJS.ProcessEnv,
): Promise<{ findings: Finding[]; isUsable: boolean }> {
  const reached = await reach(pool, env);
  if (reached.some(({ state }) => state === 'failed')) return { findings: reached, isUsable: false };
  const schema = await examineSchema(pool);
  return { findings: [...reached, schema], isUsable: schema.state === 'ok' };
}

async function reach(pool: Pool, env: NodeJS.ProcessEnv): Promise<Finding[]> {
  try {
    return await withClient(pool, async (client) => {
      const { rows } = await client.query<{
        pid: number;
        version: string;
        arrived: boolean;
        encrypted: boolean | null;
      }>(
        `SELECT pg_backend_pid() AS pid, current_setting('server_version') AS version,
                ${SETTINGS_ARRIVED} AND current_setting('enable_seqscan') = 'off' AS arrived,
                (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS encrypted`,
      );
      const { pid, version = '', arrived, encrypted } = rows[0] ?? {};
      // As the connection was made, whether by the URL or by PGSSLMODE. The process id from its start is that of whoever
      // accepted it.
      const { processID, host, ssl } = client as unknown as Omit<Link, 'encrypted'> & { processID: number | null };
      if (pid !== processID || arrived !== true) {
        return [pooler('the settings that a connection asks for are not those of its session')];
      }
      return [
        ok('connection', `Postgres ${version.split(' ', 1)[0]}, directly`),
        judgeEncryption({ host, ssl, encrypted: encrypted === true }, env),
      ];
    });
  } catch (error) {
    const { found, toDo } = explainDatabaseError(error);
    // A pooler refuses settings that it does not know.
    return [/unsupported startup parameter/i.test(found) ? pooler(found) : failed('connection', found, toDo)];
  }
}

function pooler(found: string): Finding {
  return failed(
    'connection',
    `a connection pooler stands between: ${found}`,
    'let DATABASE_URL name Postgres itself; the service keeps few connections, POOL_SIZE a process',
  );
}

async function examineSchema(pool: Pool): Promise<Finding> {
  try {
    await checkSchema(pool);
    return ok('schema', "this version's");
  } catch (error) {
    if (error instanceof WrongSchema) return failed('schema', error.found, error.toDo);
    return failed(
      'schema',
      (error as Error).message,
      'expediter migrate, with OWNER_DATABASE_URL set, gives the role of DATABASE_URL what it needs',
    );
  }
}
