/**
 * What `deploy/compose` starts, without containers: its Caddyfile, its scripts and its variables, the commands of the
 * image, and Debian's Caddy and Postgres. Only addresses and ports are others.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endWithUs } from '../../world/processes/end-with-us.ts';
import { freePort } from '../../world/network/free-port.ts';
import { read } from '../support/read-project.ts';
import { COMPOSE, readCompose, readDotEnv } from '../support/read-compose.ts';
import { CLI } from '../support/run-cli.ts';
import { spawnMain } from '../../world/processes/run-main.ts';
import { runProgram, runToEnd, type Ended } from '../../world/processes/run-program.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { startOrderingPlatform, type OrderingPlatform } from '../../world/platform/start-ordering-platform.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import { liveOf, startReceiver, type Receiver } from '../../world/receiver/start-receiver.ts';
import { statusWebhook } from '../../world/pos/status-webhook.ts';
import { sharedTmpdir, unprivilegedUser } from '../../world/postgres/unprivileged-user.ts';
import { until } from '../../world/processes/until.ts';
import { needsPostgres, needsTool } from './needs-tool.ts';

const [PUBLIC_HOST, OPERATOR_HOST] = ['gateway.test', 'operators.test'];
const OPERATOR_TOKEN = 'ac0d22bc1f198e4c4a49a206894204f065863ef50ed961eb26eeb264654010ba';

let folder: string;
let postgres: Postgres;
let receiver: Receiver;
let platform: OrderingPlatform;
let pos: Pos;
let caddy: Running;
/** The environment of a service of compose.yaml, with addresses of this machine. */
let environmentOf: (service: string) => Record<string, string>;
let ports: Record<'http' | 'https' | 'operators' | 'admin' | 'first' | 'second', number>;
let [first, second] = [undefined, undefined] as (ReturnType<typeof spawnMain> | undefined)[];
/** The path and query of the location's webhook. */
let webhook: string;
/** The path and query by which the platform signals orders. */
let signals: string;
const running: ChildProcess[] = [];

type Running = { child: ChildProcess; output: () => string };

function run(program: string, args: string[], env: Record<string, string>): Running {
  const child = spawn(program, args, { env: { PATH: process.env['PATH'], ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  endWithUs(child);
  running.push(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (words: string) => {
      output += words;
    });
  }
  return { child, output: () => output };
}

/** As the user of Postgres's image, with Debian's programs of Postgres and the socket in `folder`. */
function asPostgres(script: string, args: string[] = [], env: Record<string, string> = {}): Promise<Ended> {
  const bin = needsPostgres().at(-1);
  return runProgram('runuser', ['-u', 'postgres', '--', join(folder, 'postgres', script), ...args], {
    ...env,
    PATH: `${bin}:${process.env['PATH']}`,
    PGHOST: folder,
    PGPORT: String(postgres.port),
  });
}

const expediter = (args: string[], input = ''): Promise<Ended> =>
  runToEnd(CLI, environmentOf('expediter-1'), args, input);

type Request = { method?: string; headers?: Record<string, string>; body?: unknown; localAddress?: string };

/** Sends a request by TLS, and verifies the certificate of `host`. */
async function ask(host: string, port: number, path: string, about: Request = {}) {
  const ca = readFileSync(join(folder, 'caddy/caddy/pki/authorities/local/root.crt'));
  const { method = 'GET', headers = {}, body, localAddress } = about;
  const sent = request({ host: '127.0.0.1', port, path, method, ca, servername: host, agent: false, localAddress });
  for (const [name, value] of Object.entries({ host, 'content-type': 'application/json', ...headers })) {
    sent.setHeader(name, value);
  }
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [answer] = (await once(sent, 'response')) as [import('node:http').IncomingMessage];
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: await textOf(answer) };
}
const atPublic = (path: string, about?: Request) => ask(PUBLIC_HOST, ports.https, path, about);
const atOperators = (path: string, about?: Request) => ask(OPERATOR_HOST, ports.operators, path, about);
const report = (serviceOrderId: string) => ({
  method: 'POST',
  body: statusWebhook({ serviceOrderId, status: 'READY' }),
});

async function startProcess(nth: 1 | 2): Promise<ReturnType<typeof spawnMain>> {
  const service = spawnMain(environmentOf(`expediter-${nth}`));
  running.push(service.child);
  const port = nth === 1 ? ports.first : ports.second;
  await until(async () => {
    if (service.child.exitCode !== null) throw new Error(service.output());
    return fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  });
  return service;
}

/** Waits until Caddy, which asks each process once a second, has found more processes alive than these. */
async function untilUp(port: number, before = 0): Promise<void> {
  await until(() => upsOf(port) > before).catch((error: unknown) => {
    throw new Error(caddy.output(), { cause: error });
  });
}
const upsOf = (port: number): number =>
  caddy
    .output()
    .split('\n')
    .filter((line) => line.includes('"host is up"') && line.includes(`:${port}"`)).length;

beforeAll(async () => {
  for (const tool of ['caddy', 'runuser']) needsTool(tool, tool === 'runuser' ? 'util-linux' : tool);
  const bin = needsPostgres().at(-1) ?? '';
  const names = ['http', 'https', 'operators', 'admin', 'first', 'second', 'firstOperators', 'secondOperators'];
  const free = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await freePort()] as const)));
  ports = free as typeof ports;
  folder = mkdtempSync(join(sharedTmpdir(unprivilegedUser()), 'compose-'));
  chmodSync(folder, 0o777);
  mkdirSync(join(folder, 'dumps'));
  chmodSync(join(folder, 'dumps'), 0o777);
  cpSync(join(COMPOSE, 'postgres'), join(folder, 'postgres'), { recursive: true });
  [platform, pos, receiver] = await Promise.all([startOrderingPlatform(), startPos(), startReceiver()]);
  postgres = await startPostgres({
    binaries: { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') },
    settings: {
      unix_socket_directories: folder,
      listen_addresses: '',
      hba_file: join(folder, 'postgres/pg_hba.conf'),
      fsync: 'on',
    },
  });

  const { services } = readCompose({
    ...readDotEnv(readFileSync(join(COMPOSE, '.env.example'), 'utf8')),
    PUBLIC_HOST,
    OPERATOR_HOST,
    OPERATOR_TOKEN,
    ORDER_API_URL: platform.url,
    STATUS_WEBHOOK_URL: receiver.url,
    STATUS_WEBHOOK_SECRET: receiver.secret,
    ALLOW_PRIVATE_HOSTS: '127.0.0.1',
    SETTINGS_KEY: `test:${Buffer.alloc(32, 'k').toString('base64')}`,
    OWNER_PASSWORD: 'a'.repeat(64),
    SERVICE_PASSWORD: 'b'.repeat(64),
    GRAFANA_PASSWORD: 'c'.repeat(64),
  });
  environmentOf = (name) => {
    const nth = name === 'expediter-2' ? 'second' : 'first';
    const here: Record<string, string> = {
      HOST: '127.0.0.1',
      PORT: String(free[nth]),
      OPERATOR_PORT: String(free[`${nth}Operators`]),
      TRUSTED_PROXIES: '127.0.0.1',
    };
    const written = Object.entries(services[name]?.environment ?? {}).map(([variable, value]): [string, string] => [
      variable,
      value.replace('host=/var/run/postgresql', `host=${folder}&port=${postgres.port}`),
    ]);
    return { ...Object.fromEntries(written), ...here };
  };

  const { OWNER_PASSWORD = '', SERVICE_PASSWORD = '' } = environmentOf('postgres');
  const roles = await asPostgres('create-roles.sh', [], { OWNER_PASSWORD, SERVICE_PASSWORD });
  expect(roles, roles.error).toMatchObject({ code: 0 });
  const migrated = await runToEnd(CLI, environmentOf('migrate'), services['migrate']?.command?.slice(1) ?? []);
  expect(migrated, migrated.error).toMatchObject({ code: 0 });
  [first, second] = await Promise.all([startProcess(1), startProcess(2)]);

  caddy = run('caddy', ['run', '--config', join(COMPOSE, 'Caddyfile'), '--adapter', 'caddyfile'], {
    ...environmentOf('caddy'),
    HOME: folder,
    XDG_DATA_HOME: join(folder, 'caddy'),
    XDG_CONFIG_HOME: join(folder, 'caddy'),
    HTTP_PORT: String(ports.http),
    HTTPS_PORT: String(ports.https),
    OPERATOR_HTTPS_PORT: String(ports.operators),
    ADMIN_PORT: String(ports.admin),
    // Debian's is 2.6.
    BUFFER_REQUESTS: 'buffer_requests',
    PUBLIC_UPSTREAMS: `127.0.0.1:${ports.first} 127.0.0.1:${ports.second}`,
    OPERATOR_UPSTREAMS: `127.0.0.1:${free['firstOperators']} 127.0.0.1:${free['secondOperators']}`,
  });
  await until(() =>
    atPublic('/readyz').then(
      ({ status }) => status === 200,
      () => false,
    ),
  ).catch((error: unknown) => {
    throw new Error(caddy.output(), { cause: error });
  });

  const locations = join(folder, 'locations');
  mkdirSync(locations);
  for (const nth of [1, 2, 3]) {
    const how = nth === 1 ? 'unsigned: true' : `secret: stdin:SECRET_${nth}`;
    const file = `id: club-${nth}\nintegration: standard\nsettings:\n  ordersUrl: stdin:ORDERS_URL\n  ${how}\n`;
    writeFileSync(join(locations, `club-${nth}.yaml`), file);
  }
  const keys = [2, 3].map((nth) => `SECRET_${nth}=whsec_${Buffer.alloc(32, nth).toString('base64')}\n`);
  const secrets = [`ORDERS_URL=${pos.ordersUrl}\n`, ...keys].join('');
  const applied = await expediter(['apply', '-f', locations, '--yes'], secrets);
  expect(applied, applied.error).toMatchObject({ code: 0, out: expect.stringContaining('3 created') as string });
  expect(await expediter(['apply', '-f', locations], secrets)).toMatchObject({ code: 0 });
  const [issued] = await Promise.all(
    ['club-1', 'club-2', 'club-3'].map(async (id) => {
      const { out } = await expediter(['token', 'issue', '--location', id, '--json']);
      return JSON.parse(out) as { url: string };
    }),
  );
  const { url = '' } = issued ?? {};
  expect(url).toMatch(`https://${PUBLIC_HOST}/webhook/standard/club-1?token=`);
  webhook = url.slice(`https://${PUBLIC_HOST}`.length);
  const { out } = await expediter(['signal-token', 'issue', '--label', 'platform', '--json']);
  signals = (JSON.parse(out) as { url: string }).url.slice(`https://${PUBLIC_HOST}`.length);
  expect(signals).toMatch(/^\/signal\?token=/);
});

afterAll(async () => {
  for (const child of running) child.kill('SIGKILL');
  await Promise.all([postgres?.stop(), platform?.stop(), pos?.stop(), receiver?.stop()]);
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

describe('an installation by compose.yaml', () => {
  it('places an order that the platform signals by HTTP, and sends its statuses to the receiver in order', async () => {
    platform.orders.set('order-1', sampleOrder({ serviceOrderId: 'order-1' }));
    expect(await atPublic(signals, { method: 'POST', body: { orderId: 'order-1' } })).toMatchObject({ status: 204 });
    await until(() => pos.tickets.some(({ serviceOrderId }) => serviceOrderId === 'order-1'));
    expect(await atPublic(webhook, report('order-1'))).toMatchObject({ status: 200 });
    const statuses = (): (string | null)[] => liveOf(receiver, 'order-1').map(({ status }) => status);
    await until(() => statuses().includes('ready'));
    expect(statuses()).toEqual([null, null, 'ready']);
    expect(receiver.refused()).toBe(0);
  });

  it('passes `expediter doctor`, except for the public URL of this test', async () => {
    type Finding = { part: string; check: string; state: string };
    const doctor = async (): Promise<Finding[]> =>
      (JSON.parse((await expediter(['doctor', '--json'])).out) as { findings: Finding[] }).findings;
    const failedOf = (findings: Finding[]): string[] =>
      findings.filter(({ state }) => state === 'failed').map(({ part, check }) => `${part}: ${check}`);
    // Its patience is short, and this machine may be slow.
    const findings = await until(async () => {
      const found = await doctor();
      return !failedOf(found).includes('database: connection') && found;
    });
    expect(failedOf(findings)).toEqual(['public-url: readyz']);
    const roles = findings.filter(({ check }) => /privilege|encryption/.test(check)).map(({ state }) => state);
    expect(roles).toEqual(['ok', 'ok', 'ok']);
  });
});

describe('Caddy', () => {
  it('answers only with TLS', async () => {
    const plain = await fetch(`http://127.0.0.1:${ports.http}/readyz`, {
      headers: { host: PUBLIC_HOST },
      redirect: 'manual',
    });
    expect(plain.status).not.toBe(200);
    expect((await atPublic('/readyz')).status).toBe(200);
  });

  it('forwards only the public paths from the public host', async () => {
    expect((await atPublic(webhook, report('unknown'))).status).toBe(200);
    expect((await atPublic('/webhook/standard/club-1?token=wrong', report('unknown'))).status).toBe(401);
    expect((await atPublic('/signal?token=wrong', { method: 'POST', body: {} })).status).toBe(401);
    // Nothing is pushed here.
    expect((await atPublic('/pubsub/push', { method: 'POST', body: {} })).status).toBe(404);
    const authorization = `Bearer ${OPERATOR_TOKEN}`;
    const paths = ['/', '/console/', '/v1/orders', '/metrics', '/healthz', '/openapi.json', '/webhook/../v1/orders'];
    for (const path of paths) {
      expect((await atPublic(path, { headers: { authorization } })).status, path).toBe(404);
    }
    // Another name in the header leads no further.
    const asked = await atPublic('/v1/orders', { headers: { authorization, host: OPERATOR_HOST } });
    expect(asked.text).not.toContain('order-1');
  });

  it("forwards only the console and the API from the operators' host", async () => {
    const page = await atOperators('/console/');
    expect(page).toMatchObject({ status: 200, text: expect.stringContaining('<title>') });
    expect(page.headers['strict-transport-security']).toBe('max-age=31536000');
    expect((await atOperators('/v1/orders')).status).toBe(401);
    const orders = await atOperators('/v1/orders', { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } });
    expect(orders).toMatchObject({ status: 200, text: expect.stringContaining('order-1') });
    expect((await atOperators(webhook, report('unknown'))).status).toBe(404);
  });

  it('lets the token of Prometheus read the metrics of each process, and no order', async () => {
    const command = /expediter (operator token issue --name prometheus .*) \| grep/.exec(read('docs/deploy.md'))?.[1];
    const { out } = await expediter(command?.split(' ') ?? []);
    const token = /exo_[\w-]*/.exec(out)?.[0] ?? '';
    const headers = { authorization: `Bearer ${token}` };
    for (const name of ['expediter-1', 'expediter-2']) {
      const url = `http://127.0.0.1:${environmentOf(name)['OPERATOR_PORT']}`;
      expect((await fetch(`${url}/metrics`, { headers })).status).toBe(200);
    }
    expect((await atOperators('/v1/orders', { headers })).status).toBe(403);
  });

  it("gives the service the caller's address, and ignores the caller's X-Forwarded-For", async () => {
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}`, 'x-forwarded-for': '203.0.113.9' };
    const about = { method: 'POST', headers, body: {}, localAddress: '127.0.0.2' };
    expect((await atOperators('/v1/locations/club-1/resume', about)).status).toBe(200);
    const { out } = await expediter(['audit', 'list', '--location', 'club-1', '--json']);
    expect(out).toContain('"source":"127.0.0.2"');
    expect(out).not.toContain('203.0.113.9');
  });

  it('fails no request while the processes are replaced one after the other', async () => {
    const replaced = new AbortController();
    const statuses: number[] = [];
    const load = (async () => {
      while (!replaced.signal.aborted) statuses.push((await atPublic(webhook, report('unknown'))).status);
    })();
    for (const nth of [1, 2] as const) {
      const old = nth === 1 ? first : second;
      const port = nth === 1 ? ports.first : ports.second;
      const before = upsOf(port);
      old?.child.kill('SIGTERM');
      expect(await old?.exited).toBe(0);
      const fresh = await startProcess(nth);
      if (nth === 1) first = fresh;
      else second = fresh;
      await untilUp(port, before);
    }
    replaced.abort();
    await load;
    expect(statuses.length).toBeGreaterThan(20);
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  it('sends requests to the other process when one is killed', async () => {
    first?.child.kill('SIGKILL');
    await first?.exited;
    for (let nth = 0; nth < 20; nth += 1) {
      const { status } = await atPublic(webhook, report(`unknown-${nth}`));
      expect(status, caddy.output().slice(-2_000)).toBe(200);
      expect((await atOperators('/readyz')).status).toBe(200);
    }
  });

  it('logs no token when no process answers', async () => {
    const errors = (): number => caddy.output().match(/"level":"error".*"request":/g)?.length ?? 0;
    const before = errors();
    for (const each of [first, second]) each?.child.kill('SIGKILL');
    await Promise.all([first?.exited, second?.exited]);
    const away = await atPublic(webhook, report('unknown'));
    expect([away.status, away.headers['retry-after']]).toEqual([500, '10']);
    expect((await atPublic('/answer/exa_of-a-contact')).status).toBeGreaterThanOrEqual(502);
    const authorization = `Bearer ${OPERATOR_TOKEN}`;
    expect((await atOperators('/v1/orders', { headers: { authorization } })).status).toBeGreaterThanOrEqual(502);
    // Caddy logs no error that its configuration answers itself: those at the public address.
    await until(() => errors() === before + 1);
    expect(caddy.output()).not.toMatch(/token=|exa_/);
    expect(caddy.output()).not.toContain(OPERATOR_TOKEN);
  });
});

describe('backup.sh', () => {
  const env = (): Record<string, string> => ({
    BACKUP_FOLDER: join(folder, 'dumps'),
    BACKUP_EVERY_H: '24',
    BACKUP_KEEP_DAYS: '14',
  });
  const dumps = (): string[] => readdirSync(join(folder, 'dumps'));
  const DAY_S = 86_400;

  it('writes a dump that it can restore, and deletes only dumps older than BACKUP_KEEP_DAYS', async () => {
    expect(await asPostgres('backup.sh', ['check'], env())).toMatchObject({ code: 1 });
    expect(await asPostgres('backup.sh', ['now'], env())).toMatchObject({ code: 0, error: '' });
    const [dump = '', ...others] = dumps();
    expect(others).toEqual([]);
    expect(dump).toMatch(/^expediter-\d{4}-\d\d-\d\dT\d{6}Z\.dump$/);
    expect(await asPostgres('backup.sh', ['check'], env())).toMatchObject({ code: 0 });

    const age = (file: string, days: number): void => {
      const then = Date.now() / 1_000 - days * DAY_S;
      cpSync(join(folder, 'dumps', dump), join(folder, 'dumps', file));
      utimesSync(join(folder, 'dumps', file), then, then);
    };
    age('expediter-13.dump', 13);
    age('expediter-15.dump', 15);
    const gone = await expediter(
      ['location', 'put', '--location', 'club-4', '--integration', 'standard', '--settings', '-'],
      JSON.stringify({ ordersUrl: pos.ordersUrl, unsigned: true }),
    );
    expect(gone).toMatchObject({ code: 0 });
    expect((await expediter(['location', 'list'])).out).toContain('club-4');

    const restored = await asPostgres('backup.sh', ['restore', dump], env());
    expect(restored, restored.error).toMatchObject({ code: 0 });
    const migrated = await runToEnd(CLI, environmentOf('migrate'), ['migrate']);
    expect(migrated, migrated.error).toMatchObject({ code: 0 });
    const { out } = await expediter(['location', 'list']);
    expect(out).toContain('club-1');
    expect(out).not.toContain('club-4');
    first = await startProcess(1);
    await until(async () => (await atPublic(webhook, report('order-1'))).status === 200);

    expect(await asPostgres('backup.sh', ['now'], env())).toMatchObject({ code: 0 });
    expect(dumps()).toContain('expediter-13.dump');
    expect(dumps()).not.toContain('expediter-15.dump');
  });

  it('leaves the database as it is if the dump is damaged', async () => {
    cpSync(join(COMPOSE, 'Caddyfile'), join(folder, 'dumps/expediter-damaged.dump'));
    expect((await asPostgres('backup.sh', ['restore', 'expediter-damaged.dump'], env())).code).not.toBe(0);
    expect((await expediter(['location', 'list'])).out).toContain('club-1');
  });
});
