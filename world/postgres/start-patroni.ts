/**
 * Starts a cluster as many run their Postgres: two nodes that Patroni keeps, synchronously replicated, with etcd for
 * who leads, behind HAProxy, which leads to the primary. All of Debian's packages, on free ports of 127.0.0.1.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, openSync, closeSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from '../network/free-port.ts';
import { sharedTmpdir, unprivilegedUser } from './unprivileged-user.ts';
import { until } from '../processes/until.ts';

/** Absolute paths. */
export type PatroniPrograms = { patroni: string; etcd: string; haproxy: string; postgresBin: string };

export type PatroniCluster = {
  /** By way of HAProxy. */
  url: string;
  /**
   * Kills the leader, Patroni and Postgres, by kill -9. Resolves when the other node takes writes, which it was asked
   * directly.
   */
  killLeader(): Promise<void>;
  /** Brings a killed node back with nothing, and waits until commits wait for it. */
  mend(): Promise<void>;
  stop(): Promise<void>;
};

type Node = { name: string; port: number; rest: number; data: string; patroni: ChildProcess | undefined };

/** Time to begin, to elect and to copy, on a machine that may be busy. */
const PATIENCE_MS = 90_000;
/** Seconds after which a leader that says nothing is one no more. */
const TTL_S = 8;

export async function startPatroni(programs: PatroniPrograms): Promise<PatroniCluster> {
  const user = unprivilegedUser();
  const dir = mkdtempSync(join(sharedTmpdir(user), 'expediter-patroni-'));
  if (user !== undefined) chownSync(dir, user.uid, user.gid);
  const [etcdPort, peerPort, haproxyPort, ...ofNodes] = await freePorts(7);
  const nodes: Node[] = [0, 1].map((nth) => ({
    name: `n${nth}`,
    port: ofNodes[nth * 2] ?? 0,
    rest: ofNodes[nth * 2 + 1] ?? 0,
    data: join(dir, `data${nth}`),
    patroni: undefined,
  }));

  const run = (name: string, program: string, args: string[]): ChildProcess => {
    const log = openSync(join(dir, `${name}.log`), 'a');
    const child = spawn(program, args, {
      ...(user === undefined ? {} : { uid: user.uid, gid: user.gid }),
      cwd: dir,
      env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C', HOME: dir },
      detached: true,
      stdio: ['ignore', log, log],
    });
    child.on('error', () => {}); // then nothing answers, and the wait for it says so
    closeSync(log);
    if (child.pid !== undefined) writeFileSync(join(dir, `${name}.pid`), `${child.pid}\n`);
    return child;
  };

  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  const client = ['--listen-client-urls', etcdUrl, '--advertise-client-urls', etcdUrl];
  const peer = ['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl];
  const cluster = ['--name', 'e', '--initial-cluster', `e=${peerUrl}`, '--data-dir', join(dir, 'etcd')];
  const watchdog = watch(dir);
  const others = [run('etcd', programs.etcd, [...cluster, ...client, ...peer])];

  writeFileSync(join(dir, 'haproxy.cfg'), haproxyConfig(haproxyPort ?? 0, nodes));
  others.push(run('haproxy', programs.haproxy, ['-f', join(dir, 'haproxy.cfg')]));

  const begin = (node: Node): void => {
    const { name } = node;
    const config = patroniConfig(node, { dir, etcdPort, postgresBin: programs.postgresBin });
    // JSON is YAML as well.
    writeFileSync(join(dir, `${name}.yml`), JSON.stringify(config));
    node.patroni = run(name, programs.patroni, [join(dir, `${name}.yml`)]);
  };

  const kill = async (node: Node): Promise<void> => {
    const { patroni } = node;
    node.patroni = undefined;
    await end(patroni, 'SIGKILL');
    killPostgres(node.data);
  };

  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map(kill));
    await Promise.all(others.map((child) => end(child, 'SIGKILL')));
    watchdog.kill();
    rmSync(dir, { recursive: true, force: true });
  };

  const explained = async (what: string, came: () => Promise<boolean>): Promise<void> => {
    await until(() => came().catch(() => false), PATIENCE_MS).catch((cause: unknown) => {
      throw new Error(`${what} did not come:\n${lastWords(dir)}`, { cause });
    });
  };

  /** Both nodes run, and the leader's commits wait for the other one. */
  const whole = (): Promise<void> =>
    explained('a synchronous standby', async () => {
      const members = await Promise.any(nodes.map(membersSeenBy));
      return members.some(({ role }) => role === 'leader') && members.some(({ role }) => role === 'sync_standby');
    });

  try {
    for (const node of nodes) begin(node);
    await whole();
    await explained('HAProxy', () => takesWrites(haproxyPort ?? 0));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url: `postgres://postgres@127.0.0.1:${haproxyPort}/postgres`,
    async killLeader() {
      const leads = await Promise.all(nodes.map(({ port }) => takesWrites(port).catch(() => false)));
      const leader = nodes[leads.indexOf(true)];
      const other = nodes[leads.indexOf(false)];
      if (leader === undefined || other === undefined) throw new Error('there is no leader with a standby');
      await kill(leader);
      await explained('a new primary', () => takesWrites(other.port));
    },
    async mend() {
      for (const node of nodes.filter(({ patroni }) => patroni === undefined)) {
        rmSync(node.data, { recursive: true, force: true });
        begin(node);
      }
      await whole();
    },
    stop,
  };
}

function patroniConfig(
  { name, port, rest, data }: Node,
  { dir, etcdPort, postgresBin }: { dir: string; etcdPort: number | undefined; postgresBin: string },
): object {
  return {
    scope: 'expediter',
    name,
    restapi: { listen: `127.0.0.1:${rest}`, connect_address: `127.0.0.1:${rest}` },
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: { ttl: TTL_S, loop_wait: 1, retry_timeout: 3, synchronous_mode: true },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }],
      pg_hba: ['host replication replicator 127.0.0.1/32 trust', 'host all all 127.0.0.1/32 trust'],
    },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: data,
      bin_dir: postgresBin,
      pgpass: join(dir, `pgpass-${name}`),
      authentication: { replication: { username: 'replicator' }, superuser: { username: 'postgres' } },
      parameters: { unix_socket_directories: dir, fsync: 'off' },
    },
  };
}

async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freePort());
  return [...ports];
}

function haproxyConfig(port: number, nodes: readonly Node[]): string {
  const servers = nodes.map((node) => `  server ${node.name} 127.0.0.1:${node.port} check port ${node.rest}`);
  return `defaults
  mode tcp
  timeout connect 1s
  timeout client 30m
  timeout server 30m
  timeout check 1s
listen primary
  bind 127.0.0.1:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`;
}

async function takesWrites(port: number): Promise<boolean> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', connectionTimeoutMillis: 1_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    const { rows } = await client.query<{ read_only: string }>(
      "SELECT current_setting('transaction_read_only') AS read_only",
    );
    return rows[0]?.read_only === 'off';
  } finally {
    await client.end();
  }
}

async function membersSeenBy({ rest }: Node): Promise<{ role: string }[]> {
  const response = await fetch(`http://127.0.0.1:${rest}/cluster`, { signal: AbortSignal.timeout(1_000) });
  return ((await response.json()) as { members: { role: string }[] }).members;
}

async function end(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill(signal);
  await gone;
}

/** Kills the Postgres of a data directory. It is no child of ours, and Patroni's death leaves it. */
function killPostgres(data: string): void {
  try {
    const [pid = ''] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(data)) process.kill(Number(pid), 'SIGKILL');
  } catch {
    // It does not run.
  }
}

/** A shell that waits for the end of our pipe, which comes even if this process is killed with -9, and ends all. */
const WATCHDOG = `
  read -r _
  for file in "$1"/*.pid "$1"/*/postmaster.pid; do
    pid=$(head -n 1 "$file" 2>/dev/null) && grep -q "$1" "/proc/$pid/cmdline" && kill -KILL "$pid"
  done
  rm -rf -- "$1"
`;

function watch(dir: string): ChildProcess {
  const watchdog = spawn('/bin/sh', ['-c', WATCHDOG, 'watchdog', dir], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watchdog.unref();
  return watchdog;
}

function lastWords(dir: string): string {
  const logs = readdirSync(dir).filter((name) => name.endsWith('.log'));
  return logs.map((name) => `${name}: ${readFileSync(join(dir, name), 'utf8').slice(-1_500)}`).join('\n');
}
