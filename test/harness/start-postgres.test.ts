import { randomBytes } from 'node:crypto';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ask } from '../../tools/chaos/neighbour.ts';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import { sharedTmpdir, unprivilegedUser } from '../../world/postgres/unprivileged-user.ts';

/** These tests start Postgres, some twice, on machines that may be busy. */
vi.setConfig({ testTimeout: 30_000 });

const query = ({ url }: Pick<Postgres, 'url'>, sql: string): Promise<object[]> => ask(url, sql);

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** A new path for a data directory, removed after the test. */
function newDir(): string {
  const user = unprivilegedUser();
  const parent = mkdtempSync(join(sharedTmpdir(user), 'expediter-test-'));
  if (user !== undefined) chownSync(parent, user.uid, user.gid);
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  return join(parent, 'data');
}

async function started(options: Parameters<typeof startPostgres>[0] = {}): Promise<Postgres> {
  const postgres = await startPostgres(options);
  onTestFinished(() => postgres.stop('immediate'));
  return postgres;
}

test('the started Postgres has the requested settings, and leaves nothing after its stop', async () => {
  const postgres = await started({ settings: { work_mem: '5MB' } });
  const rows = await query(
    postgres,
    "SELECT current_setting('data_directory') AS dir, current_setting('synchronous_commit') AS sync, current_setting('work_mem') AS work",
  );
  expect(rows).toEqual([{ dir: expect.any(String), sync: 'on', work: '5MB' }]);
  const { dir } = rows[0] as { dir: string };
  expect(existsSync(dir)).toBe(true);

  await postgres.stop();
  expect(isRunning(postgres.pid)).toBe(false);
  expect(existsSync(dir)).toBe(false);
  await postgres.stop();
});

test('a directory keeps its data, and a second Postgres there is refused', async () => {
  const dir = newDir();
  const first = await started({ dir });
  const word = randomBytes(4).toString('hex');
  await query(first, `CREATE TABLE kept AS SELECT '${word}' AS word`);
  await expect(startPostgres({ dir })).rejects.toThrow(
    `another Postgres, process ${first.pid}, already runs in ${dir}`,
  );
  await first.kill();

  const second = await started({ dir, port: first.port });
  expect(await query(second, 'SELECT word FROM kept')).toEqual([{ word }]);
  await second.stop();
  expect(existsSync(dir)).toBe(true);
});

test.runIf(process.getuid?.() === 0)('a directory that other users cannot open works for root', async () => {
  const parent = mkdtempSync(join(sharedTmpdir(unprivilegedUser()), 'expediter-test-'));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  const dir = join(parent, 'data');
  const first = await started({ dir });
  onTestFinished(() => rmSync(dirname(realpathSync(dir)), { recursive: true, force: true }));
  await query(first, 'CREATE TABLE kept ()');
  await first.stop();
  expect(await query(await started({ dir }), 'SELECT * FROM kept')).toEqual([]);
});

test('a lock file with the process id of another program does not prevent a start', async () => {
  const dir = newDir();
  const first = await started({ dir });
  await first.kill();
  const lock = join(dir, 'postmaster.pid');
  const user = unprivilegedUser();
  const bystander = spawn('sleep', ['60'], user === undefined ? {} : { uid: user.uid, gid: user.gid });
  onTestFinished(() => void bystander.kill());
  writeFileSync(lock, readFileSync(lock, 'utf8').replace(/^\d+/, String(bystander.pid)));
  expect(await query(await started({ dir }), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

test('Postgres ends with the process that started it, even after kill -9', async () => {
  const script = `
    const { startPostgres } = await import(${JSON.stringify(new URL('../../world/postgres/start-postgres.ts', import.meta.url).href)});
    const postgres = await startPostgres();
    console.log(postgres.url);
    process.kill(process.pid, 'SIGKILL');
  `;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [printed] = (await once(parent.stdout, 'data')) as [Buffer];
  const url = printed.toString().trim();
  expect(url).toMatch(/^postgres:/);
  await vi.waitFor(() => expect(query({ url }, 'SELECT 1')).rejects.toThrow('ECONNREFUSED'), 5000);
});

test("a failed start throws Postgres's own message", async () => {
  await expect(startPostgres({ settings: { nonsense: '1' } })).rejects.toThrow(
    'unrecognized configuration parameter "nonsense"',
  );
});
