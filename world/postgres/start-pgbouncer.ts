/** Starts PgBouncer with the configuration that docs/deploy.md shows, on a free port of 127.0.0.1. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { freePort } from '../network/free-port.ts';
import { sharedTmpdir, unprivilegedUser } from './unprivileged-user.ts';
import { until } from '../processes/until.ts';

const PAGE = fileURLToPath(new URL('../../docs/deploy.md', import.meta.url));

export type PgBouncer = {
  /** @returns the URL of the same database and role, by way of PgBouncer */
  through(databaseUrl: string): string;
  /** Has PgBouncer's console do something, such as RECONNECT. */
  command(sql: string): Promise<void>;
  stop(): Promise<void>;
};

/** @param change lines of the configuration to replace; `undefined` removes one */
export async function startPgBouncer(
  program: string,
  databaseUrl: string,
  change: Record<string, string | undefined> = {},
): Promise<PgBouncer> {
  const { hostname, port, pathname, username } = new URL(databaseUrl);
  const user = unprivilegedUser();
  const dir = mkdtempSync(join(sharedTmpdir(user), 'expediter-pgbouncer-'));
  const listenPort = await freePort();
  const name = pathname.slice(1);
  const ini = Object.entries({
    expediter: undefined,
    listen_addr: '127.0.0.1',
    auth_type: 'trust',
    auth_file: join(dir, 'users'),
    ...change,
  }).reduce(
    (text, [key, value]) =>
      text.replace(new RegExp(`^${key} = .*\n`, 'm'), value === undefined ? '' : `${key} = ${value}\n`),
    shownConfiguration(),
  );
  writeFileSync(join(dir, 'users'), `"${username}" ""\n"postgres" ""\n`);
  writeFileSync(
    join(dir, 'pgbouncer.ini'),
    ini
      .replace('[databases]\n', `[databases]\n${name} = host=${hostname} port=${port}\n`)
      .replace(
        '[pgbouncer]\n',
        `[pgbouncer]\nlisten_port = ${listenPort}\nunix_socket_dir =\nadmin_users = postgres\n`,
      ),
  );
  if (user !== undefined)
    for (const each of ['', 'users', 'pgbouncer.ini']) chownSync(join(dir, each), user.uid, user.gid);

  const child = spawn(program, [join(dir, 'pgbouncer.ini')], {
    ...(user === undefined ? {} : { uid: user.uid, gid: user.gid }),
    cwd: dir,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-4_000)));
  const gone = once(child, 'close').catch(() => {});
  const console = `postgres://postgres@127.0.0.1:${listenPort}/pgbouncer`;
  const command = async (sql: string): Promise<void> => {
    const client = new pg.Client(console);
    client.on('error', () => {});
    await client.connect();
    await client.query(sql).finally(() => void client.end());
  };
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`PgBouncer ended: ${said}`);
    return command('SHOW VERSION').then(
      () => true,
      () => false,
    );
  });
  return {
    through: (url) => Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(listenPort) }).href,
    command,
    async stop() {
      child.kill('SIGKILL');
      await gone;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function shownConfiguration(): string {
  const [, ini = ''] = /^```ini\n(.*?)^```$/ms.exec(readFileSync(PAGE, 'utf8')) ?? [];
  return ini;
}
