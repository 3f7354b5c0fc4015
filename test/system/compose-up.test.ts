/**
 * `deploy/compose` with a real Docker engine: the commands of docs/deploy.md as they stand on the page, in a copy of this
 * checkout. The platform, the POS and the receivers run in this process. Each test continues where the one before it ended.
 */
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:https';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readBody, sendJson, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { startOrderingPlatform, type OrderingPlatform } from '../../world/platform/start-ordering-platform.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { statusWebhook } from '../../world/pos/status-webhook.ts';
import { runProgram, type Ended } from '../../world/processes/run-program.ts';
import { until } from '../../world/processes/until.ts';
import { liveOf, startReceiver, type Receiver } from '../../world/receiver/start-receiver.ts';
import { readCompose, readDotEnv } from '../support/read-compose.ts';
import { CLI } from '../support/run-cli.ts';
import { read, ROOT } from '../support/read-project.ts';
import { docker, DOCKER_ENV, needsEngine, provideImages } from './compose-engine.ts';

/** These only protect against hanging. */
const LONG_MS = 600_000;
const TOGETHER_MS = 1_500_000;
const PER_SECOND = 20;
const DISK_BYTES = 2 ** 30;
const OUR_IMAGE = 'localhost/expediter:system-test';

const [, section = ''] = /^## On one machine\n([^]*?)^## /m.exec(read('docs/deploy.md')) ?? [];
const shown = [...section.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = '']) => block);
/** The blocks of the page that a test has run. */
const hasRun = new Set<string>();
const blockWith = (words: string): string => {
  const block = shown.find((each) => each.includes(words));
  if (block === undefined) throw new Error(`docs/deploy.md shows no commands with ${words}`);
  hasRun.add(block);
  return block;
};
const EXPEDITER = /^expediter\(\) .*\n/m.exec(section)?.[0] ?? '';

const compose = readCompose({ ...readDotEnv(read('deploy/compose/.env.example')), ...required() });
const SERVICES = Object.keys(compose.services).filter((name) => name !== 'migrate');
const imageOf = (service: string): string => compose.services[service]?.image ?? '';
const IMAGES = [...new Set(SERVICES.map(imageOf))].filter((name) => !name.startsWith('localhost/'));

function required(): Record<string, string> {
  const names = ['SETTINGS_KEY', 'OWNER_PASSWORD', 'SERVICE_PASSWORD', 'GRAFANA_PASSWORD', 'ORDER_API_URL'];
  return Object.fromEntries(names.map((name) => [name, 'x']));
}

/** Has the clone and the disk of Postgres. */
let folder: string;
/** The folder of compose.yaml in the clone. */
let here: string;
let platform: OrderingPlatform;
let pos: Pos;
let receiver: Receiver;
/** What Alertmanager is told to call. */
let onCall: HttpServer;
type Alert = { status: string; labels: Record<string, string> };
const alerts: Alert[] = [];
const doors: Server[] = [];
let webhook: string;
let signals: string;

/** Runs commands in the folder of compose.yaml, in a new shell. */
const run = (commands: string, about: { env?: Record<string, string>; cwd?: string } = {}): Promise<Ended> =>
  runProgram(
    'bash',
    ['--norc', '-euo', 'pipefail', '-c', commands],
    { ...DOCKER_ENV, ...about.env },
    { cwd: about.cwd ?? here },
  );
/** @throws if a command fails */
async function succeed(commands: string, about?: Parameters<typeof run>[1]): Promise<string> {
  const { code, out, error } = await run(commands, about);
  expect(code, `${commands}\n${out.slice(-4_000)}${error.slice(-4_000)}`).toBe(0);
  return out;
}
const expediter = (args: string): Promise<string> => succeed(`${EXPEDITER}expediter ${args}`);
const dotEnv = (): Record<string, string> => readDotEnv(readFileSync(join(here, '.env'), 'utf8'));
const setEnv = (about: Record<string, string>): void => {
  let text = readFileSync(join(here, '.env'), 'utf8');
  for (const [name, value] of Object.entries(about)) {
    text = text.replace(new RegExp(`^(# )?${name}=.*$`, 'm'), () => `${name}=${value}`);
    expect(readDotEnv(text)).toHaveProperty(name, value);
  }
  writeFileSync(join(here, '.env'), text);
};
/** As `git checkout` does it: another file under the same name. */
const edit = (file: string, change: (text: string) => string): void => {
  const path = join(folder, 'clone', file);
  const before = readFileSync(path, 'utf8');
  expect(change(before), file).not.toBe(before);
  writeFileSync(`${path}.new`, change(before));
  renameSync(`${path}.new`, path);
};

type Request = { method?: string; headers?: Record<string, string>; body?: unknown };
/** Sends a request to Caddy on a connection of its own. Caddy's own authority must have signed the certificate. */
async function ask(port: number, path: string, { method = 'GET', headers = {}, body }: Request = {}) {
  const ca = readFileSync(join(here, 'root.crt'));
  const sent = request({ host: '127.0.0.1', servername: 'localhost', port, path, method, ca, agent: false });
  for (const [name, value] of Object.entries({ host: 'localhost', 'content-type': 'application/json', ...headers })) {
    sent.setHeader(name, value);
  }
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [answer] = (await once(sent, 'response')) as [import('node:http').IncomingMessage];
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: await textOf(answer) };
}
const atPublic = (path: string, about?: Request) => ask(443, path, about);
const atOperators = (path: string, about?: Request) => ask(8443, path, about);
const asOperator = (): Record<string, string> => ({ authorization: `Bearer ${dotEnv()['OPERATOR_TOKEN']}` });
const report = (serviceOrderId: string) => ({
  method: 'POST',
  body: statusWebhook({ serviceOrderId, status: 'READY' }),
});

/** The status of an answer and the id of the stored webhook, or the error of the connection. */
type Answer = { status: number | string; id?: string; at: string };
const sendWebhook = (): Promise<Answer> => {
  const at = new Date().toISOString();
  return atPublic(webhook, report('unknown')).then(
    ({ status, text }) => {
      if (status === 200) return { status, id: (JSON.parse(text) as { webhookId: string }).webhookId, at };
      return { status, at: `${at} ${text === '' ? 'by Caddy' : 'by the service'}` };
    },
    (error: NodeJS.ErrnoException) => ({ status: error.code ?? error.message, at }),
  );
};

/** Sends webhooks at a constant rate until the work has ended, and at least this many. */
async function whileSending(work: () => Promise<unknown>, atLeast = PER_SECOND): Promise<Answer[]> {
  const done = new AbortController();
  const send = async (): Promise<Answer[]> => {
    const answers: Promise<Answer>[] = [];
    for (let due = Date.now(); !done.signal.aborted || answers.length < atLeast; due += 1_000 / PER_SECOND) {
      await sleep(Math.max(0, due - Date.now()));
      answers.push(sendWebhook());
    }
    return Promise.all(answers);
  };
  const [answers] = await Promise.all([send(), work().finally(() => done.abort())]);
  return answers;
}

function countOf(answers: Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** A webhook is answered 200 only if it is stored, and otherwise 500 or, while Caddy restarts, not at all. */
async function expectKept(answers: Answer[], about: { of: string; mayRefuse?: boolean }): Promise<void> {
  const counts = countOf(answers);
  const [first, ...others] = answers.filter(({ status }) => status !== 200);
  const failed = first === undefined ? '' : `, from ${first.at} to ${(others.at(-1) ?? first).at}`;
  process.stdout.write(`${about.of}: ${JSON.stringify(counts)}${failed}\n`);
  const answered = Object.keys(counts).filter((status) => about.mayRefuse !== true || /^\d+$/.test(status));
  expect(answered.filter((status) => status !== '200' && status !== '500')).toEqual([]);
  const ids = await succeed(
    `docker compose exec -T postgres psql -U postgres -d expediter -Atc 'SELECT id FROM expediter.webhooks'`,
  );
  const stored = new Set(ids.split('\n'));
  expect(answers.filter(({ id }) => id !== undefined && !stored.has(id))).toEqual([]);
}

/** Waits until all services are healthy and a webhook is answered 200. */
async function untilHealthy(): Promise<void> {
  let states: string[] = [];
  await until(async () => {
    const { out } = await run(`docker compose ps --format '{{.Service}} {{.State}} {{.Health}}'`);
    states = out.trim().split('\n').toSorted();
    return JSON.stringify(states) === JSON.stringify(SERVICES.toSorted().map((name) => `${name} running healthy`));
  }, LONG_MS).catch(async (error: unknown) => {
    const { out } = await run('docker compose logs --tail 20 --no-color');
    throw new Error(`${states.join('\n')}\n${out}`, { cause: error });
  });
  await until(async () => (await sendWebhook()).status === 200, LONG_MS);
}

/** Opens a port of this process to containers, which know this machine as host.docker.internal. */
async function openToContainers(url: string, gateway: string): Promise<string> {
  const { port } = new URL(url);
  const door = createServer((caller) => {
    const service = connect(Number(port), '127.0.0.1');
    for (const [one, other] of [
      [caller, service],
      [service, caller],
    ] as const) {
      one.pipe(other);
      one.on('error', () => other.destroy());
    }
  }).listen(Number(port), gateway);
  doors.push(door);
  await once(door, 'listening');
  return url.replace('127.0.0.1', 'host.docker.internal');
}

beforeAll(async () => {
  await needsEngine();
  // What a run that was killed has left.
  await run('docker compose --project-name "$COMPOSE_PROJECT_NAME" down --volumes', { cwd: tmpdir() });
  const override = await provideImages(IMAGES);
  folder = mkdtempSync(join(tmpdir(), 'compose-'));
  // Other users read what containers mount.
  chmodSync(folder, 0o755);
  const [clone, disk] = [join(folder, 'clone'), join(folder, 'disk')];
  const listed = 'git -c safe.directory=* ls-files -z --cached --others --exclude-standard';
  const files = (await succeed(listed, { cwd: ROOT })).split('\0').filter(Boolean);
  for (const file of files.filter((each) => existsSync(join(ROOT, each)))) cpSync(join(ROOT, file), join(clone, file));
  here = join(clone, 'deploy/compose');

  [platform, pos, receiver] = await Promise.all([startOrderingPlatform(), startPos(), startReceiver()]);
  onCall = await serveHttp(async (asked, response) => {
    const told = JSON.parse((await readBody(asked)).toString()) as { alerts: Alert[] };
    alerts.push(...told.alerts);
    sendJson(response, 200, {});
  });
  const gateway = await docker(['network', 'inspect', 'bridge', '--format', '{{(index .IPAM.Config 0).Gateway}}']);
  const [orders = '', kitchen = '', statuses = '', pager = ''] = await Promise.all(
    [platform.url, pos.ordersUrl, receiver.url, onCall.url].map((url) => openToContainers(url, gateway)),
  );

  // A disk that is small enough to be filled.
  mkdirSync(disk);
  await succeed(`mount -t tmpfs -o size=${DISK_BYTES} tmpfs ${disk}`);
  const volumes = { 'postgres-data': { driver_opts: { type: 'none', o: 'bind', device: disk } } };
  writeFileSync(join(here, 'compose.override.yaml'), JSON.stringify({ ...override, volumes }));

  await succeed(blockWith('install -m 600 .env.example'), { cwd: clone });
  setEnv({
    ORDER_API_URL: orders,
    STATUS_WEBHOOK_URL: statuses,
    STATUS_WEBHOOK_SECRET: receiver.secret,
    ALLOW_PRIVATE_HOSTS: 'host.docker.internal',
    ALERT_RECEIVER: `'webhook_configs: [{url: "${pager}"}]'`,
    IMAGE: OUR_IMAGE,
  });
  // Compose builds only an image that is missing.
  await run(`docker image rm --force ${OUR_IMAGE}`);
  await succeed(blockWith('operator token issue'));

  const location = 'id: club-1\nintegration: standard\nsettings:\n  ordersUrl: stdin:ORDERS_URL\n  unsigned: true\n';
  writeFileSync(join(here, 'locations/club-1.yaml'), location);
  const [make = '', ...others] = blockWith('locations/secrets').split('\n');
  const secret = `echo "ORDERS_URL='${kitchen}'" >locations/secrets`;
  // The plan exits 2 if there is something to do, and `doctor` 1: see below.
  const applied = await run(['set +e', EXPEDITER, make, secret, ...others].join('\n'));
  expect(applied.out, applied.error).toContain('1 created');
  // The first line of the block. Its login is a test of its own.
  await succeed(blockWith('root.crt').split('\n', 1).join(''));
  const pathOf = async (command: string): Promise<string> =>
    (JSON.parse(await expediter(`${command} --json`)) as { url: string }).url.slice('https://localhost'.length);
  webhook = await pathOf('token issue --location club-1');
  signals = await pathOf('signal-token issue --label platform');
  await untilHealthy();
}, TOGETHER_MS);

afterAll(async () => {
  if (here !== undefined) await run('docker compose down --volumes --timeout 5');
  for (const door of doors) door.close();
  await Promise.all([platform?.stop(), pos?.stop(), receiver?.stop(), onCall?.stop()]);
  if (folder === undefined) return;
  await runProgram('umount', [join(folder, 'disk')], {});
  rmSync(folder, { recursive: true, force: true });
}, LONG_MS);

describe('an installation by the commands of the page', () => {
  it('places an order that the platform signals by HTTP, and sends its statuses to the receiver in order', async () => {
    platform.orders.set('order-1', sampleOrder({ serviceOrderId: 'order-1' }));
    expect(await atPublic(signals, { method: 'POST', body: { orderId: 'order-1' } })).toMatchObject({ status: 204 });
    await until(() => liveOf(receiver, 'order-1').length === 2, LONG_MS);
    expect(pos.tickets.map(({ serviceOrderId }) => serviceOrderId)).toEqual(['order-1']);
    expect(await atPublic(webhook, report('order-1'))).toMatchObject({ status: 200 });
    const statuses = (): (string | null)[] => liveOf(receiver, 'order-1').map(({ status }) => status);
    await until(() => statuses().includes('ready'), LONG_MS);
    expect(statuses()).toEqual([null, null, 'ready']);
    expect(receiver.refused()).toBe(0);
  });

  it('passes `expediter doctor`, except for the public URL, which is the container itself', async () => {
    type Finding = { part: string; check: string; state: string };
    const { out } = await run(`${EXPEDITER}expediter doctor --json`);
    const { findings } = JSON.parse(out) as { findings: Finding[] };
    const failed = findings.filter(({ state }) => state === 'failed').map(({ part, check }) => `${part}: ${check}`);
    expect(failed).toEqual(['public-url: readyz']);
    const roles = findings.filter(({ check }) => /privilege|encryption/.test(check)).map(({ state }) => state);
    expect(roles).toEqual(['ok', 'ok', 'ok']);
  });

  it('lets an operator of this machine log in, once Caddy is trusted', async () => {
    const programs = join(folder, 'programs');
    mkdirSync(programs);
    const script = `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`;
    writeFileSync(join(programs, 'expediter'), script, { mode: 0o755 });
    writeFileSync(join(here, 'token'), dotEnv()['OPERATOR_TOKEN'] ?? '');
    const PATH = `${programs}:${process.env['PATH']}`;
    const env = { PATH, HOME: folder, DOCKER_CONFIG: process.env['DOCKER_CONFIG'] ?? join(folder, '.docker') };
    const out = await succeed(`${blockWith('root.crt')}expediter location list`, { env });
    expect(out).toContain('club-1');
  });

  it('lets Prometheus read the metrics of each process, and no order', async () => {
    type Targets = { data: { activeTargets: { health: string; labels: { instance: string } }[] } };
    const up = async (): Promise<string[]> => {
      const answer = (await (await fetch('http://127.0.0.1:9090/api/v1/targets')).json()) as Targets;
      return answer.data.activeTargets.filter(({ health }) => health === 'up').map(({ labels }) => labels.instance);
    };
    await until(async () => (await up()).length === 2, LONG_MS);
    expect((await up()).toSorted()).toEqual(['expediter-1.internal:8081', 'expediter-2.internal:8081']);
    const headers = { authorization: `Bearer ${dotEnv()['METRICS_TOKEN']}` };
    expect((await atOperators('/v1/orders', { headers })).status).toBe(403);
  });
});

describe('Caddy', () => {
  it('answers only with TLS', async () => {
    const plain = await fetch('http://127.0.0.1/readyz', { redirect: 'manual' });
    expect(plain.status).not.toBe(200);
    expect((await atPublic('/readyz')).status).toBe(200);
  });

  it('forwards only the public paths at port 443', async () => {
    expect((await atPublic('/webhook/standard/club-1?token=wrong', report('unknown'))).status).toBe(401);
    expect((await atPublic('/signal?token=wrong', { method: 'POST', body: {} })).status).toBe(401);
    // Nothing is pushed here.
    expect((await atPublic('/pubsub/push', { method: 'POST', body: {} })).status).toBe(404);
    const paths = ['/', '/console/', '/v1/orders', '/metrics', '/healthz', '/openapi.json', '/webhook/../v1/orders'];
    for (const path of paths) expect((await atPublic(path, { headers: asOperator() })).status, path).toBe(404);
  });

  it('answers a request for another host with an error, although its certificate is right', async () => {
    for (const port of [443, 8443]) {
      const about = { ...report('unknown'), headers: { host: 'other.test' } };
      expect((await ask(port, webhook, about)).status).toBe(421);
    }
  });

  it("forwards only the console and the API at the operators' port", async () => {
    expect(await atOperators('/console/')).toMatchObject({ status: 200, text: expect.stringContaining('<title>') });
    expect((await atOperators('/v1/orders')).status).toBe(401);
    const orders = await atOperators('/v1/orders', { headers: asOperator() });
    expect(orders).toMatchObject({ status: 200, text: expect.stringContaining('order-1') });
    expect((await atOperators(webhook, report('unknown'))).status).toBe(404);
  });

  it("gives the service the caller's address, and ignores the caller's X-Forwarded-For", async () => {
    const headers = { ...asOperator(), 'x-forwarded-for': '203.0.113.9' };
    const about = { method: 'POST', headers, body: {} };
    expect((await atOperators('/v1/locations/club-1/resume', about)).status).toBe(200);
    const out = await expediter('audit list --location club-1 --json');
    // This machine, as the containers see it.
    expect(out).toMatch(/"source":"10\.213\.7\.\d+"/);
    expect(out).not.toContain('203.0.113.9');
  });
});

it(
  'while both processes are stopped, webhooks get 500, and an alert is delivered',
  { timeout: TOGETHER_MS },
  async () => {
    const count = PER_SECOND * 5;
    const answers = await whileSending(async () => {
      await succeed('docker compose stop expediter-1 expediter-2');
      const away = await atPublic(webhook, report('unknown'));
      expect([away.status, away.headers['retry-after']]).toEqual([500, '10']);
    }, count);
    await expectKept(answers, { of: 'both stopped' });
    expect((await atPublic('/answer/exa_of-a-contact')).status).toBeGreaterThanOrEqual(502);
    expect((await atOperators('/v1/orders', { headers: asOperator() })).status).toBeGreaterThanOrEqual(502);
    const log = await succeed('docker compose logs --no-color caddy');
    expect(log).toContain('"level":"error"');
    expect(log).not.toMatch(/token=|exa_/);
    expect(log).not.toContain(dotEnv()['OPERATOR_TOKEN']);

    const isGone = ({ status, labels }: Alert) => status === 'firing' && labels['alertname'] === 'ExpediterGone';
    await until(() => alerts.some(isGone), LONG_MS);
    await succeed('docker compose start expediter-1 expediter-2');
    await untilHealthy();
  },
);

describe('all services are healthy again, and no webhook that was answered 200 is lost, after', () => {
  it.each(SERVICES)('a restart of %s', { timeout: LONG_MS }, async (service) => {
    const answers = await whileSending(async () => {
      await succeed(`docker compose restart ${service}`);
      await untilHealthy();
    });
    await expectKept(answers, { of: `restart ${service}`, mayRefuse: service === 'caddy' });
    // The other process takes them.
    if (service.startsWith('expediter-')) expect(countOf(answers)).toEqual({ 200: answers.length });
  });

  it.each(SERVICES)('a kill -9 of %s', { timeout: LONG_MS }, async (service) => {
    const answers = await whileSending(async () => {
      const container = await succeed(`docker compose ps --quiet ${service}`);
      const pid = () => docker(['inspect', '--format', '{{.State.Pid}}', container.trim()]);
      const killed = await pid();
      // `docker kill` would count as a wish that it stays away.
      const inside = ['--rm', '--privileged', '--pid', 'host', '--user', '0', '--entrypoint', 'sh'];
      await docker(['run', ...inside, imageOf('postgres'), '-c', `kill -9 ${killed}`]);
      await until(async () => !['0', killed].includes(await pid()), LONG_MS);
      await untilHealthy();
    });
    await expectKept(answers, { of: `kill ${service}`, mayRefuse: service === 'caddy' });
  });

  // After a restart of the machine, the engine knows nothing of `depends_on`.
  it.each([
    ['in the order of compose.yaml', SERVICES],
    ['in the opposite order', SERVICES.toReversed()],
  ])('the end of all containers, which start again %s', { timeout: LONG_MS }, async (of, services) => {
    const answers = await whileSending(async () => {
      const containers: string[] = [];
      for (const service of services) containers.push((await succeed(`docker compose ps --quiet ${service}`)).trim());
      await docker(['kill', ...containers]);
      await docker(['start', ...containers]);
      await untilHealthy();
    });
    await expectKept(answers, { of: `all, ${of}`, mayRefuse: true });
  });

  it('a change of .env', { timeout: LONG_MS }, async () => {
    setEnv({ OPERATOR_TOKEN: 'e'.repeat(64), BACKUP_KEEP_DAYS: '13' });
    const answers = await whileSending(async () => {
      await succeed('docker compose up --detach');
      await untilHealthy();
    });
    await expectKept(answers, { of: '.env' });
    expect((await atOperators('/v1/orders', { headers: asOperator() })).status).toBe(200);
  });

  it('a full disk of Postgres', { timeout: LONG_MS }, async () => {
    const filler = join(folder, 'disk/filler');
    const answers = await whileSending(async () => {
      await run(`dd if=/dev/zero of=${filler} bs=1M status=none; true`);
      expect(statfsSync(filler).bavail).toBe(0);
      await until(async () => (await sendWebhook()).status === 500, LONG_MS);
      await sleep(10_000);
      rmSync(filler);
      await untilHealthy();
    });
    expect(countOf(answers)).toHaveProperty('500');
    await expectKept(answers, { of: 'disk full' });
  });
});

describe('the upgrade of the page', () => {
  const caddysConfig = () =>
    succeed('docker compose exec -T caddy wget --quiet --output-document=- http://127.0.0.1:2019/config/');
  const processes = () => succeed('docker compose ps --quiet expediter-1 expediter-2');

  it('refuses none of 1,500 webhooks, and every service has its new files', { timeout: TOGETHER_MS }, async () => {
    edit('src/main.ts', (text) => `${text}\nprocess.env['NEXT_VERSION'] = '1';\n`);
    edit('deploy/compose/Caddyfile', (text) => text.replace('Retry-After 10', 'Retry-After 11'));
    edit('deploy/monitoring/alerts.yaml', (text) => text.replaceAll('ExpediterGone', 'ExpediterAway'));
    edit('deploy/monitoring/alertmanager.yaml', (text) => text.replaceAll('Gone', 'Away'));
    const before = await processes();
    const began = Date.now();
    const answers = await whileSending(async () => {
      await succeed(blockWith('docker compose build'));
      process.stdout.write(`the upgrade took ${Math.round((Date.now() - began) / 1_000)} s\n`);
      await untilHealthy();
    }, 1_500);
    await expectKept(answers, { of: 'upgrade' });
    expect(countOf(answers)).toEqual({ 200: answers.length });
    const after = await processes();
    for (const id of before.trim().split('\n')) expect(after).not.toContain(id);
    expect(await caddysConfig()).toContain('"11"');
    const rules = await fetch('http://127.0.0.1:9090/api/v1/rules');
    expect(await rules.text()).toContain('ExpediterAway');
    const routes = await succeed('docker compose exec -T alertmanager cat /run/alertmanager/config.yaml');
    expect(routes).toContain('Away');
  });

  it('with a new image of Caddy refuses webhooks only while no Caddy listens', { timeout: TOGETHER_MS }, async () => {
    const next = 'localhost/caddy:next';
    await succeed(`docker build --quiet --tag ${next} - <<< $'FROM ${imageOf('caddy')}\nLABEL next=1'`);
    edit('deploy/compose/compose.yaml', (text) => text.replace(imageOf('caddy'), next));
    const answers = await whileSending(async () => {
      await succeed(blockWith('docker compose build'));
      await untilHealthy();
    }, 1_500);
    await expectKept(answers, { of: 'upgrade of Caddy', mayRefuse: true });
    expect(await succeed('docker compose ps --format "{{.Service}} {{.Image}}"')).toContain(`caddy ${next}`);
    expect(countOf(answers)[500] ?? 0).toBe(0);
  });
});

describe('the backup', () => {
  const inBackup = (command: string) => succeed(`docker compose exec -T backup ${command}`);
  const dumps = async (): Promise<string[]> => (await inBackup('ls /var/lib/postgresql/data')).trim().split('\n');

  it('deletes only dumps older than BACKUP_KEEP_DAYS', async () => {
    const [dump = ''] = await dumps();
    expect(dump).toMatch(/^expediter-\d{4}-\d\d-\d\dT\d{6}Z\.dump$/);
    for (const days of [12, 15]) {
      const file = `/var/lib/postgresql/data/expediter-${days}.dump`;
      await inBackup(`sh -c 'echo damaged >${file} && touch -d "${days} days ago" ${file}'`);
    }
    await inBackup('backup.sh now');
    expect(await dumps()).toContain('expediter-12.dump');
    expect(await dumps()).not.toContain('expediter-15.dump');
  });

  it('leaves the database as it is if the dump is damaged', async () => {
    expect((await run('docker compose exec -T backup backup.sh restore expediter-12.dump')).code).not.toBe(0);
    expect(await expediter('location list')).toContain('club-1');
  });

  it('can be copied and restored, without a second ticket', { timeout: LONG_MS }, async () => {
    const dump = (await dumps()).toSorted().findLast((name) => name.endsWith('Z.dump')) ?? '';
    // Such as expediter-2026-11-21T020000Z.dump
    const at = dump.slice('expediter-'.length, -'.dump'.length).replace(/T(..)(..)(..)Z/, 'T$1:$2:$3Z');
    const copy = /`(docker compose cp backup:[^`]*)`/.exec(section)?.[1] ?? 'exit 1';
    await succeed(`${copy}; test -s dumps/${dump} || test -s dumps/data/${dump}`);

    platform.orders.set('order-2', sampleOrder({ serviceOrderId: 'order-2' }));
    await atPublic(signals, { method: 'POST', body: { orderId: 'order-2' } });
    await until(() => pos.tickets.some(({ serviceOrderId }) => serviceOrderId === 'order-2'), LONG_MS);
    writeFileSync(join(here, 'ids.txt'), 'order-1\norder-2\n');
    const block = blockWith('backup.sh restore')
      .replaceAll('expediter-2026-11-21T020000Z.dump', dump)
      .replaceAll('2026-11-21T02:00:00Z', at)
      // As the page says, without Pub/Sub.
      .replaceAll('--signals order-placed-replay --live order-status-replay', '--orders - <ids.txt');
    const again = /^recover (.*?) +# again/m.exec(block)?.[1] ?? '';
    const began = Date.now();
    // Before the start, and while an order is in doubt, `recover` exits 1.
    const restored = await run(`set +e\n${block}`);
    expect(restored.out, restored.error).toMatch(/^restored expediter-/m);
    const recover = /^recover\(\) .*\n/m.exec(block)?.[0] ?? '';
    await until(async () => (await run(`${recover}recover ${again}`)).code === 0, LONG_MS);
    process.stdout.write(`the restore took ${Math.round((Date.now() - began) / 1_000)} s\n`);
    await untilHealthy();
    expect(pos.tickets.map(({ serviceOrderId }) => serviceOrderId).toSorted()).toEqual(['order-1', 'order-2']);
    expect(await expediter('order show order-2 --json')).not.toContain('in_doubt');
  });
});

it('all commands of the page have run', () => {
  expect(shown.filter((block) => !hasRun.has(block))).toEqual([]);
});
