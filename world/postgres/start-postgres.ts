/** Starts the real Postgres from npm packages, so tests hold in production and need no installation. */
import {
  spawn,
  type ChildProcess,
  type SpawnOptionsWithStdioTuple,
  type StdioNull,
  type StdioPipe,
} from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { copyDataDirectory } from './copy-data-directory.ts';
import { endWithUs } from '../processes/end-with-us.ts';
import { freePort } from '../network/free-port.ts';
import { locatePostgres, type PostgresBinaries } from './locate-postgres.ts';
import { canEnter, sharedTmpdir, unprivilegedUser, type UnprivilegedUser } from './unprivileged-user.ts';

export type PostgresOptions = {
  /** The directory for the data, across restarts. Without it the data is in a temporary directory until `stop`. */
  dir?: string;
  /** Temporary data is in memory where that has room: a database of a thousand files takes 35 ms there, not 480. */
  inMemory?: boolean;
  /** The port; any free one by default. */
  port?: number;
  /** Settings as in postgresql.conf, such as `{ max_connections: '200' }`. */
  settings?: Record<string, string>;
  /** Gets Postgres's log as it comes. */
  log?: (text: string) => void;
  /** Another Postgres than that of the npm packages. */
  binaries?: PostgresBinaries;
  /** The URL of a primary: new data is a copy of its data, and follows it until `pg_promote()`. */
  standbyOf?: string;
  /** Folders of a base backup and of archived WAL: new data is the backup, and all WAL is applied to it. */
  backup?: { base: string; archive: string };
};

export type Postgres = {
  /** The superuser's URL of the database `postgres`. */
  readonly url: string;
  readonly port: number;
  /** The postmaster's process id. It changes with `restart`. */
  readonly pid: number;
  /** `fast` disconnects everybody and checkpoints; `immediate` is a crash of Postgres's own making. Safe to repeat. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  /** kill -9, a crash without its cooperation. The data stays, temporary or not, for `restart`. */
  kill(): Promise<void>;
  /**
   * Starts again with the same data and port, whether it was killed, has died or still runs.
   * @param standby it takes no writes from then on
   */
  restart(about?: { standby: boolean }): Promise<void>;
};

/** Resolves when it accepts connections. It ends with this process, however that ends. */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const user = unprivilegedUser();
  const binaries = options.binaries ?? (await locatePostgres(user));
  const temporary = options.dir === undefined ? makeTemporary(user, options.inMemory) : undefined;
  const launch: Launch = { binaries, user, temporary, dir: '', settings: {}, log: options.log };
  try {
    launch.dir = temporary === undefined ? dataDirectory(resolve(options.dir ?? '.'), user) : join(temporary, 'data');
    // Temporary data need not survive a power cut; it does survive every crash of Postgres.
    launch.settings = { ...(temporary === undefined ? {} : { fsync: 'off' }), ...options.settings };
    if (options.standbyOf !== undefined) launch.settings['primary_conninfo'] = conninfo(options.standbyOf);
    if (!existsSync(join(launch.dir, 'PG_VERSION'))) {
      if (options.backup !== undefined) restore(launch, options.backup);
      else if (options.standbyOf === undefined) await initialise(launch);
      else await copy(launch, options.standbyOf);
    }
    return await run(launch, options.port);
  } catch (error) {
    if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
}

/** The parameters of a start, kept for the next one. */
type Launch = {
  binaries: PostgresBinaries;
  user: UnprivilegedUser | undefined;
  temporary: string | undefined;
  dir: string;
  settings: Record<string, string>;
  log: ((text: string) => void) | undefined;
};

async function run(launch: Launch, wantedPort: number | undefined): Promise<Postgres> {
  let running = await startPatiently(launch, wantedPort);
  const { port } = running;

  async function end(signal: NodeJS.Signals): Promise<void> {
    running.postmaster.kill(signal);
    await running.gone;
  }

  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    get pid() {
      return running.pid;
    },
    async stop(mode = 'fast') {
      await end(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
      if (launch.temporary !== undefined) rmSync(launch.temporary, { recursive: true, force: true });
    },
    async kill() {
      await end('SIGKILL');
    },
    async restart({ standby } = { standby: false }) {
      await end('SIGINT');
      if (standby) writeFileSync(join(launch.dir, STANDBY), '');
      running = await startPatiently(launch, port);
    },
  };
}

type Running = { postmaster: ChildProcess; pid: number; port: number; gone: Promise<void> };

/** How long each temporary obstacle may last. The backends of a killed postmaster need a moment to notice its death. */
const PATIENCE_MS = { 'shared memory': 10_000, 'lock file': 3_000, port: 2_000 };

async function startPatiently(launch: Launch, wantedPort: number | undefined): Promise<Running> {
  const begun = performance.now();
  for (;;) {
    const attempt = await startOnce(launch, wantedPort ?? (await freePort()));
    if (!('obstacle' in attempt)) return attempt;
    const { obstacle, error } = attempt;
    if (obstacle === 'none') throw error;
    if (obstacle === 'lock file' && removeStaleLock(launch.dir)) continue;
    if (performance.now() - begun > PATIENCE_MS[obstacle]) throw error;
    await sleep(100);
  }
}

type Failure = { obstacle: keyof typeof PATIENCE_MS | 'none'; error: Error };

const READY_WITHIN_MS = 60_000;

async function startOnce(launch: Launch, port: number): Promise<Running | Failure> {
  const { binaries, dir } = launch;
  const settings = { listen_addresses: '127.0.0.1', unix_socket_directories: '', ...launch.settings };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const postmaster = spawn(binaries.postgres, ['-D', dir, '-p', String(port), ...flags], spawnOptions(launch));
  const gone = new Promise<void>((done) => {
    postmaster.once('exit', () => done());
    postmaster.once('error', () => done());
  });

  let tail = '';
  const ready = new Promise<'ready'>((done) => {
    postmaster.stderr.setEncoding('utf8').on('data', (text: string) => {
      launch.log?.(text);
      tail = (tail + text).slice(-4000);
      if (/ready to accept (?:read-only )?connections/.test(tail)) done('ready');
    });
  });
  // 'close' comes after 'exit', when the log is complete.
  const failed = once(postmaster, 'close').then(
    ([code, signal]: unknown[]) => `ended with ${String(code ?? signal)}`,
    (error: unknown) => `could not be started: ${String(error)}`,
  );
  const patience = new AbortController();
  const late = sleep(READY_WITHIN_MS, `was not ready within ${READY_WITHIN_MS} ms`, { signal: patience.signal });
  const outcome = await Promise.race([ready, failed, late]);
  patience.abort();
  late.catch(() => undefined);

  if (outcome === 'ready' && postmaster.pid !== undefined) {
    endWithUs(postmaster, { signal: 'QUIT', remove: launch.temporary, options: spawnOptions(launch) });
    return { postmaster, pid: postmaster.pid, port, gone };
  }
  postmaster.kill('SIGKILL');
  return explain(outcome, tail, dir, port);
}

/** Options for its own process group: a Ctrl-C is for us, and we stop Postgres when nobody needs it any more. */
function spawnOptions({ user, dir }: Launch): SpawnOptionsWithStdioTuple<StdioNull, StdioNull, StdioPipe> {
  return {
    ...(user === undefined ? {} : { uid: user.uid, gid: user.gid }),
    cwd: dir,
    env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C', TZ: 'UTC', HOME: dir },
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  };
}

function explain(outcome: string, tail: string, dir: string, port: number): Failure {
  const log = tail.trim() === '' ? '' : `\n${tail.trim()}`;
  if (tail.includes('pre-existing shared memory block')) {
    return { obstacle: 'shared memory', error: new Error(`what is left of an earlier Postgres holds ${dir}${log}`) };
  }
  if (tail.includes('lock file "postmaster.pid" already exists')) {
    const holder = readLock(dir)?.pid ?? 'unknown';
    const error = new Error(`another Postgres, process ${holder}, already runs in ${dir}: stop it first${log}`);
    return { obstacle: 'lock file', error };
  }
  if (tail.includes('Address already in use')) {
    return { obstacle: 'port', error: new Error(`port ${port} of 127.0.0.1 is taken${log}`) };
  }
  return { obstacle: 'none', error: new Error(`Postgres ${outcome}${hint(outcome + tail)}${log}`) };
}

function hint(text: string): string {
  const library = /error while loading shared libraries: ([^:\s]+)/.exec(text)?.[1];
  if (library !== undefined) return `: this machine lacks the library ${library}; install the package that has it`;
  if (text.includes('ENOENT')) return ': these binaries need a Linux with glibc, so not Alpine';
  return '';
}

/** @returns the process of the Postgres that runs in this directory, or undefined if none does */
export function postgresIn(dir: string): number | undefined {
  const lock = readLock(dir);
  return lock === undefined || removeStaleLock(dir) ? undefined : lock.pid;
}

function readLock(dir: string): { pid: number } | undefined {
  try {
    return { pid: Number.parseInt(readFileSync(join(dir, 'postmaster.pid'), 'utf8'), 10) };
  } catch {
    return undefined;
  }
}

/**
 * Removes a stale lock file. Postgres trusts one whose process id is in use, but after a reboot or in a new container
 * that may be another program's. Only Linux can tell without further tools; elsewhere the error names the process.
 */
function removeStaleLock(dir: string): boolean {
  const lock = readLock(dir);
  if (lock === undefined) return false;
  try {
    if (readFileSync(`/proc/${lock.pid}/cmdline`, 'utf8').includes('postgres')) return false;
  } catch {
    if (!existsSync('/proc/self/cmdline')) return false;
  }
  rmSync(join(dir, 'postmaster.pid'), { force: true });
  return true;
}

const MEMORY = { folder: '/dev/shm', bytes: 2 ** 30 };

function makeTemporary(user: UnprivilegedUser | undefined, inMemory = false): string {
  const { bavail, bsize } = inMemory && existsSync(MEMORY.folder) ? statfsSync(MEMORY.folder) : { bavail: 0, bsize: 0 };
  const folder = bavail * bsize > MEMORY.bytes ? MEMORY.folder : sharedTmpdir(user);
  const temporary = mkdtempSync(join(folder, 'expediter-data-'));
  if (user !== undefined) chownSync(temporary, user.uid, user.gid);
  return temporary;
}

/**
 * Returns the data directory. Root's own directories are closed to the user that Postgres runs as, so there `dir`
 * becomes a link to an open one; removing `dir` still resets the data.
 */
function dataDirectory(dir: string, user: UnprivilegedUser | undefined): string {
  mkdirSync(dirname(dir), { recursive: true });
  if (user === undefined || canEnter(dirname(dir), user)) return dir;
  const entry = lstatSync(dir, { throwIfNoEntry: false });
  if (entry?.isSymbolicLink() === true && existsSync(dir)) return readlinkSync(dir);
  if (entry?.isDirectory() === true) throw new Error(`${dir} cannot be entered by the user ${user.name}: move it`);
  rmSync(dir, { force: true });
  const target = join(makeTemporary(user), 'data');
  symlinkSync(target, dir);
  return target;
}

/** A file in the data directory by which Postgres starts as a standby. */
const STANDBY = 'standby.signal';

async function copy({ dir, user }: Launch, primary: string): Promise<void> {
  await copyDataDirectory(primary, dir);
  writeFileSync(join(dir, STANDBY), '');
  giveTo(user, dir);
}

function restore({ dir, user, settings }: Launch, { base, archive }: { base: string; archive: string }): void {
  cpSync(base, dir, { recursive: true });
  chmodSync(dir, 0o700);
  writeFileSync(join(dir, 'recovery.signal'), '');
  settings['restore_command'] = `cp ${archive}/%f %p`;
  giveTo(user, dir);
}

function giveTo(user: UnprivilegedUser | undefined, dir: string): void {
  if (user === undefined) return;
  for (const entry of ['', ...readdirSync(dir, { recursive: true, encoding: 'utf8' })]) {
    chownSync(join(dir, entry), user.uid, user.gid);
  }
}

function conninfo(primary: string): string {
  const { hostname, port, username } = new URL(primary);
  return `host=${hostname} port=${port} user=${username} application_name=standby`;
}

/** Initialises the data under another name first: an interrupted run must not leave half a database behind. */
async function initialise(launch: Launch): Promise<void> {
  const { binaries, user, dir } = launch;
  const draft = `${dir}.draft`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true, mode: 0o700 });
  if (user !== undefined) chownSync(draft, user.uid, user.gid);
  // Text is sorted as words, as in most real databases.
  const sorting = ['--locale=C', '--locale-provider=icu', '--icu-locale=en-US'];
  const options = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', ...sorting, '--no-sync', '--no-instructions'];
  const initdb = spawn(binaries.initdb, ['-D', draft, ...options], spawnOptions({ ...launch, dir: draft }));
  let said = '';
  initdb.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const outcome = await once(initdb, 'close').then(
    ([code, signal]: unknown[]) => (code === 0 ? undefined : `ended with ${String(code ?? signal)}`),
    (error: unknown) => `could not be started: ${String(error)}`,
  );
  if (outcome !== undefined) throw new Error(`initdb ${outcome}${hint(outcome + said)}\n${said.trim()}`);
  renameSync(draft, dir);
}
