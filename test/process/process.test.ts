import { Agent, request, type RequestOptions } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rankOf } from '../../src/core/domain/lifecycle.ts';
import { parseSettingsKeys, seal } from '../../src/core/locations/settings-key.ts';
import { OPERATOR_TOKEN, scrape } from '../observe/scrape.ts';
import { holdConnections } from '../../world/network/hold-connections.ts';
import { logIn } from '../../world/system/log-in.ts';
import { FOLLOW_ENV, memberToken } from '../../world/members/member-token.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { runMain, spawnMain, type MainProcess } from '../../world/processes/run-main.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import {
  AUDIENCE,
  post,
  SERVICE_ACCOUNT,
  startSystem,
  statusWebhook,
  type System,
} from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

let system: System;
let plain: Pos;
let env: Record<string, string>;

beforeAll(async () => {
  [system, plain] = await Promise.all([startSystem({ processes: 0 }), startPos({ deduplicates: false })]);
  env = {
    ...system.env,
    PROVIDER_MODULES: ['pos-without-deduplication.ts', 'findable-pos.ts']
      .map((file) => fileURLToPath(new URL(`../../world/pos/${file}`, import.meta.url)))
      .join(','),
    DRAIN_DELAY_MS: '300',
  };
  await system.addLocation('club-1', { ordersUrl: plain.ordersUrl });
  // Their providers are known to the child process alone.
  const keys = parseSettingsKeys(String(env['SETTINGS_KEY']));
  for (const name of ['blind', 'findable']) {
    await system.query('INSERT INTO locations (location_id, integration, settings) VALUES ($1, $1, $2)', [
      name,
      await seal(keys, { ordersUrl: plain.ordersUrl }, `locations/${name}`),
    ]);
  }
});
afterAll(() => Promise.all([system?.stop(), plain?.stop()]));

let running: MainProcess | undefined;
/** The one that runs, or the next one in its place: what one test leaves running is the next test's first process. */
const theProcess = async (): Promise<MainProcess> => (running ??= await runMain(env));

/** Signals an order to one process, as if it had been answered and nobody else had heard. */
async function place(main: MainProcess, locationId: string): Promise<string> {
  const order = sampleOrder({ locationId });
  system.platform.orders.set(order.serviceOrderId, order);
  system.urls[0] = main.url;
  expect(await system.signal(order.serviceOrderId)).toBe(204);
  return order.serviceOrderId;
}

/** The URL of `club-1` at a process, with a new token. */
const webhookAt = async ({ url }: MainProcess): Promise<string> =>
  (await system.webhookUrl('club-1')).replace(/^.*?\/webhook/, `${url}/webhook`);

async function kill(main: MainProcess): Promise<void> {
  if (running === main) running = undefined;
  main.child.kill('SIGKILL');
  await main.exited;
}

/** One process begins to send an order. Resolves when the POS has its request. @returns the order's id */
async function beginCall(main: MainProcess, locationId: string): Promise<string> {
  const before = plain.requests;
  const serviceOrderId = await place(main, locationId);
  await until(() => plain.requests > before);
  return serviceOrderId;
}

/** One process begins to send an order and is killed while the POS has not answered. @returns the order's id */
async function dieDuringCall(locationId: string): Promise<string> {
  const main = await theProcess();
  plain.behave = () => 'hang';
  const serviceOrderId = await beginCall(main, locationId);
  await kill(main);
  plain.behave = undefined;
  return serviceOrderId;
}

const attempts = (serviceOrderId: string): Promise<Record<string, unknown>[]> =>
  system.query('SELECT * FROM placement_attempts WHERE service_order_id = $1 ORDER BY attempt', [serviceOrderId]);
const expireLease = (serviceOrderId: string): Promise<unknown> =>
  system.query(`UPDATE placements SET lease_until = now() WHERE service_order_id = $1`, [serviceOrderId]);
const ticketsOf = (serviceOrderId: string): number =>
  plain.tickets.filter((ticket) => ticket.serviceOrderId === serviceOrderId).length;

describe('a process that is killed', () => {
  afterAll(async () => {
    if (running !== undefined) await kill(running);
  });

  it('during its call to the POS: the order is in doubt, and the next process does not repeat it blindly', async () => {
    const serviceOrderId = await dieDuringCall('blind');
    expect(await attempts(serviceOrderId)).toMatchObject([{ outcome: 'started', ended_at: null }]);
    expect(Number((await system.placement(serviceOrderId))?.['lease_until']) - Date.now()).toBeLessThanOrEqual(30_000);

    await expireLease(serviceOrderId);
    await theProcess();
    await until(async () => (await system.placement(serviceOrderId))?.['next_attempt_at'] === Infinity);
    expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'in_doubt' });
    expect(plain.requests).toBe(1);
  });

  it('during its call to a POS with a lookup: the next process sends the order again if it is absent after a minute', async () => {
    const serviceOrderId = await dieDuringCall('findable');
    await expireLease(serviceOrderId);
    await theProcess();
    const calls = async (): Promise<unknown[]> =>
      (await attempts(serviceOrderId)).map(({ call, outcome }) => `${String(call)} ${String(outcome)}`);
    await until(async () => (await calls()).includes('findOrder absent'));
    expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'in_doubt' });
    expect(ticketsOf(serviceOrderId)).toBe(0);
    await system.query(
      `UPDATE placements SET request_ended_at = request_ended_at - interval '61 s', next_attempt_at = now() WHERE service_order_id = $1`,
      [serviceOrderId],
    );
    await until(async () => (await system.placement(serviceOrderId))?.['state'] === 'sent');
    const absent = 'findOrder absent';
    expect(await calls()).toEqual(['createOrder unknown', absent, absent, 'createOrder placed']);
    expect(ticketsOf(serviceOrderId)).toBe(1);
  });

  it('after the signal was recorded: another process places the order', async () => {
    const first = await theProcess();
    system.platform.answer = () => 'hang';
    const serviceOrderId = await place(first, 'club-1');
    await until(() => system.platform.requests.includes(serviceOrderId));
    await kill(first);
    system.platform.answer = undefined;
    await expireLease(serviceOrderId);
    await theProcess();
    await until(async () => (await system.placement(serviceOrderId))?.['state'] === 'sent');
    expect(ticketsOf(serviceOrderId)).toBe(1);
  });

  it('before it published a committed live message: another process publishes it', async () => {
    const first = await theProcess();
    system.pubsub.faults.publishError = () => 14;
    const serviceOrderId = await place(first, 'club-1');
    await until(async () => (await system.placement(serviceOrderId))?.['state'] === 'sent');
    await kill(first);
    system.pubsub.faults.publishError = undefined;
    expect(system.live(serviceOrderId)).toEqual([]);
    await theProcess();
    const sequences = (): number[] => system.live(serviceOrderId).map((message) => message.sequence);
    await until(() => sequences().includes(2));
    // Pub/Sub may get one twice, if its answer came too late.
    expect([...new Set(sequences())]).toEqual([1, 2]);
  });
});

describe('a process with 300 file descriptors', () => {
  const FILES = 300;
  const ANONYMOUS = 1_500;
  /** Linux has all of 127.0.0.0/8. */
  const ELSEWHERE = process.platform === 'linux' ? '127.0.0.2' : undefined;
  const HALF_A_HEAD = 'POST /webhook/standard/club-1?token=x HTTP/1.1\r\nHost: x\r\nX-Half: ';
  let main: MainProcess;
  let port: number;
  let operatorUrl: string;
  let webhookUrl: string;

  beforeAll(async () => {
    main = await runMain({ ...env, ...FOLLOW_ENV, OPERATOR_TOKEN, OPERATOR_PORT: '0' }, FILES);
    port = Number(new URL(main.url).port);
    ({ operatorUrl } = main);
    webhookUrl = await newToken();
  });
  afterAll(() => kill(main));

  const newToken = (): Promise<string> => webhookAt(main);

  const ask = (url: string, options: RequestOptions): Promise<{ status: number; connection: string; from: number }> =>
    new Promise((resolve, reject) => {
      const sending = request(url, options, (answer) => {
        const { statusCode: status = 0, headers, socket } = answer;
        const { localPort: from = 0 } = socket;
        answer.resume().on('end', () => resolve({ status, connection: headers.connection ?? '', from }));
      });
      sending.on('error', reject).end(options.method === 'POST' ? '{"eventType":"ping"}' : undefined);
    });
  /** @param localAddress another of the machine's own, as if it were elsewhere */
  const agent = (localAddress?: string): Agent => new Agent({ keepAlive: true, maxSockets: 1, localAddress });
  /**
   * Where a slow machine does not open a connection in time, or has no file for it at that moment, any client tries
   * again. A test that means a connection that is open already compares its port.
   */
  const unlessFull = <Answer>(answer: Promise<Answer>): Promise<Answer | undefined> =>
    answer.catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ETIMEDOUT' || error.code === 'ECONNRESET') return undefined;
      throw error;
    });
  /** Sends a webhook over the agent's connection. @returns the port that it came from */
  const send = async (by: Agent, url = webhookUrl): Promise<number> => {
    // A slow machine answers 500 where Postgres takes its time. A POS sends it again.
    const { status, from } = await until(async () => {
      const answer = await unlessFull(ask(url, { method: 'POST', agent: by }));
      return answer?.status !== 500 && answer;
    });
    expect(status).toBe(200);
    return from;
  };
  const valueOf = async (name: string, of: string): Promise<number> =>
    (await scrape(operatorUrl)).value(`expediter_http_connections${name}`, { of }) ?? NaN;

  it.each([
    ['that are idle', {}, undefined],
    ['that send half a request header', { says: HALF_A_HEAD }, undefined],
    // From one address. From as many as they like, they could leave nobody the time to say who he is.
    ['that come again at once', { againMs: 0 }, ELSEWHERE],
  ])('answers every webhook despite 1,500 connections without a token %s', async (_what, about, address) => {
    const pos = agent(address);
    const before = await send(pos);
    const anonymous = await holdConnections(port, ANONYMOUS, about);
    try {
      for (let nth = 0; nth < 8; nth += 1) {
        await send(agent(address));
        expect(await send(pos), 'the connection of a POS is never closed for them').toBe(before);
      }
      expect(anonymous.closed).toBeGreaterThan(ANONYMOUS - FILES);
      expect(await valueOf('', 'anonymous')).toBeGreaterThan(FILES / 4);
      expect(await valueOf('_closed_total', 'authenticated')).toBe(0);
    } finally {
      anonymous.stop();
      pos.destroy();
    }
    expect(main.output()).toContain('those that never authenticated are closed first');
  });

  it.each([
    ['follow token', async () => `GET /follow HTTP/1.1\r\nAuthorization: Bearer ${await memberToken('one-order')}\r\n`],
    [
      'webhook token',
      async () => `POST ${(await newToken()).slice(main.url.length)} HTTP/1.1\r\nContent-Length: 0\r\n`,
    ],
  ])('answers every webhook and /readyz despite 1,500 connections of one %s', async (_what, head) => {
    const says = `${await head()}Host: x\r\n\r\n`;
    // If they came again at once, they would leave a slow machine no time to answer anybody.
    const ofOne = await holdConnections(port, ANONYMOUS, { says, againMs: 1_000 });
    try {
      for (let nth = 0; nth < 16; nth += 1) {
        await send(agent(ELSEWHERE));
        const readyz = await until(() => unlessFull(ask(`${main.url}/readyz`, { agent: agent(ELSEWHERE) })));
        expect(readyz.status).toBe(200);
      }
      expect(await valueOf('', 'authenticated')).toBeLessThan(FILES / 4);
    } finally {
      ofOne.stop();
    }
  });

  it('lets 700 senders connect while it is busy, more than wait by default', async () => {
    main.child.kill('SIGSTOP');
    try {
      for (const url of [main.url, operatorUrl]) (await holdConnections(Number(new URL(url).port), 700)).stop();
    } finally {
      main.child.kill('SIGCONT');
    }
    expect(await until(() => unlessFull(ask(`${main.url}/readyz`, { agent: agent() })))).toMatchObject({ status: 200 });
  });

  it('closes the least recently used connections when more POS systems send webhooks than it can keep', async () => {
    const agents = Array.from({ length: FILES }, agent);
    const urls = await Promise.all(Array.from({ length: 20 }, newToken));
    for (const [nth, each] of agents.entries()) await send(each, urls[nth % urls.length]);
    expect(await valueOf('_closed_total', 'authenticated')).toBeGreaterThan(FILES / 4);
    expect(await valueOf('', 'authenticated')).toBeGreaterThan(FILES / 4);
    for (const each of agents) each.destroy();
  });

  it('keeps connections alive only for callers with a valid token', async () => {
    const connectionOf = async (url: string, headers = {}): Promise<string> =>
      (await ask(url, { agent: agent(), headers })).connection;
    for (const url of [
      `${main.url}/readyz`,
      `${main.url}/nowhere`,
      `${operatorUrl}/console/`,
      `${operatorUrl}/v1/orders`,
    ]) {
      expect(await connectionOf(url), url).toBe('close');
    }
    expect(await connectionOf(`${operatorUrl}/v1/orders`, { authorization: `Bearer ${OPERATOR_TOKEN}` })).toBe(
      'keep-alive',
    );
    expect((await ask(webhookUrl, { method: 'POST', agent: agent() })).connection).toBe('keep-alive');
    const token = await system.pubsub.signPushToken({ aud: AUDIENCE, email: SERVICE_ACCOUNT, email_verified: true });
    const push = { method: 'POST', agent: agent(), headers: { authorization: `Bearer ${token}` } };
    expect((await ask(`${main.url}/pubsub/push`, push)).connection).toBe('keep-alive');
    const cookie = await logIn(operatorUrl, OPERATOR_TOKEN);
    expect(await connectionOf(`${operatorUrl}/console/api/orders`, { cookie })).toBe('keep-alive');
  });

  it("keeps a load balancer's connection although a wrong token came through it", async () => {
    const balancer = agent();
    const from = await send(balancer);
    const wrong = { method: 'POST', agent: balancer };
    expect(await ask(`${webhookUrl}x`, wrong)).toEqual({ status: 401, connection: 'keep-alive', from });
    expect(await send(balancer)).toBe(from);
    // Of an end that nobody has announced it waits for none.
    const endless = { ...wrong, headers: { 'transfer-encoding': 'chunked' } };
    expect(await ask(`${webhookUrl}x`, endless)).toEqual({ status: 401, connection: 'close', from });
  });

  it("has no operator routes at the webhooks' port, and no webhook route at the operators'", async () => {
    const authorization = `Bearer ${OPERATOR_TOKEN}`;
    const statusOf = async (url: string): Promise<number> => (await fetch(url, { headers: { authorization } })).status;
    for (const path of ['/metrics', '/v1/orders', '/openapi.json', '/v1/live', '/console/', '/console/session']) {
      expect(await statusOf(main.url + path), path).toBe(404);
    }
    expect((await post(webhookUrl.replace(main.url, operatorUrl), {})).status).toBe(404);
    expect((await post(`${operatorUrl}/pubsub/push`, {})).status).toBe(404);
    // A path that cannot be decoded is answered as any other of its port.
    expect([await statusOf(`${main.url}/v1/orders/%zz`), await statusOf(`${operatorUrl}/webhook/%zz`)]).toEqual([
      401, 400,
    ]);
    for (const url of [main.url, operatorUrl]) {
      expect([await statusOf(`${url}/healthz`), await statusOf(`${url}/readyz`)]).toEqual([200, 200]);
    }
    expect([await statusOf(`${operatorUrl}/openapi.json`), await statusOf(`${operatorUrl}/console/session`)]).toEqual([
      200, 401,
    ]);
  });

  it('closes both ports and the streams to operators when it stops', async () => {
    const authorization = `Bearer ${OPERATOR_TOKEN}`;
    const stream = await fetch(`${operatorUrl}/v1/live`, { headers: { authorization } });
    const chunks = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    const read = async (): Promise<boolean> => {
      const { value = '', done = true } = (await chunks?.read()) ?? {};
      text += value;
      return done;
    };
    while (!text.includes('event: complete')) expect(await read()).toBe(false);
    main.child.kill('SIGTERM');
    while (!(await read()));
    expect(await main.exited).toBe(0);
    for (const url of [main.url, operatorUrl]) await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed');
  });
});

describe('a process that gets SIGTERM', () => {
  it('is not ready at once, still answers webhooks, loses none and exits 0', async () => {
    // Long enough to ask it while it drains, however busy the machine is; the webhooks go on beyond it.
    const main = await runMain({ ...env, DRAIN_DELAY_MS: '10000' });
    const url = await webhookAt(main);
    const orders = Array.from({ length: 300 }, (_, i) => `drain-${i}`);
    for (const serviceOrderId of orders) await system.seedOrder({ serviceOrderId, locationId: 'club-1' });
    const sent = orders.map(async (serviceOrderId, i) => {
      await sleep(i * 40);
      return post(url, statusWebhook({ serviceOrderId, status: 'READY' })).catch(() => undefined);
    });
    // Some are answered by then, and most are still to come.
    await sent[15];
    main.child.kill('SIGTERM');
    await until(() => main.output().includes('draining'));
    expect((await fetch(`${main.url}/readyz`)).status).toBe(503);
    expect((await fetch(`${main.url}/healthz`)).status).toBe(200);
    const ping = await fetch(url, { method: 'POST', body: '{"eventType":"ping"}' });
    expect([ping.status, ping.headers.get('connection')]).toEqual([200, 'close']);
    expect(await main.exited).toBe(0);
    const answers = await Promise.all(sent);
    const accepted = orders.filter((_, i) => answers[i]?.status === 200);
    expect(accepted.length).toBeGreaterThan(20);
    expect(answers.every((answer) => answer === undefined || answer.status === 200)).toBe(true);
    const moved = await system.query(
      'SELECT service_order_id FROM orders WHERE rank = $1 AND service_order_id = ANY ($2)',
      [rankOf('ready'), accepted],
    );
    expect(moved).toHaveLength(accepted.length);
  });

  it('finishes a slow call to a POS within the grace period', async () => {
    const main = await runMain({ ...env, DRAIN_FINISH_MS: '60000' });
    const isClosed = (): Promise<boolean> =>
      fetch(`${main.url}/healthz`).then(
        () => false,
        () => true,
      );
    plain.onTicket = () => until(isClosed).then(() => {});
    const serviceOrderId = await beginCall(main, 'club-1');
    main.child.kill('SIGTERM');
    expect(await main.exited).toBe(0);
    plain.onTicket = undefined;
    expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'sent' });
  });

  it('exits 0 in time during a call to a POS that hangs, and the call stays recorded as begun', async () => {
    const main = await runMain({ ...env, DRAIN_FINISH_MS: '1500' });
    plain.behave = () => 'hang';
    const serviceOrderId = await beginCall(main, 'club-1');
    main.child.kill('SIGTERM');
    expect(await main.exited).toBe(0);
    expect(main.output()).toContain('abandoned at shutdown');
    plain.behave = undefined;
    expect(await attempts(serviceOrderId)).toMatchObject([{ outcome: 'started' }]);
  });

  it('exits 0 although nothing reads its log', async () => {
    const main = await runMain({ ...env, DRAIN_FINISH_MS: '1500' });
    // A call that is left behind makes two last words, of which one has to wait for the other.
    plain.behave = () => 'hang';
    await beginCall(main, 'club-1');
    main.child.kill('SIGTERM');
    await until(() => main.output().includes('draining'));
    main.child.stdout?.destroy();
    main.child.stderr?.destroy();
    await until(() => main.child.exitCode !== null);
    expect(main.child.exitCode).toBe(0);
    plain.behave = undefined;
  });
});

describe('a process', () => {
  it('with a wrong environment prints every fault, with examples and without values, and exits 1', async () => {
    const main = spawnMain({
      DATABASE_URL: 'mysql://user:hunter2@db/x',
      PORT: 'eighty',
      SETTINGS_KEY: 'k1:hunter2',
      HOST: '0.0.0.0',
      PUSH_AUTH: 'off',
      LOG_LEVEL: 'loud',
    });
    expect(await main.exited).toBe(1);
    const wrong = 'DATABASE_URL PORT SETTINGS_KEY ORDER_API_URL GOOGLE_CLOUD_PROJECT LOG_LEVEL PUSH_AUTH'.split(' ');
    for (const name of wrong) expect(main.output()).toMatch(new RegExp(`^  ${name}: .*Example: `, 'm'));
    expect(main.output()).not.toContain('hunter2');
  });

  it('logs an uncaught error without the details of Postgres, drains and exits 1', async () => {
    const module = join(mkdtempSync(join(tmpdir(), 'throws-')), 'throws.ts');
    const findable = new URL('../../world/pos/findable-pos.ts', import.meta.url).href;
    writeFileSync(
      module,
      `export { default } from '${findable}';
       process.once('SIGUSR2', () => { throw Object.assign(new Error('no'), { detail: 'Key (name)=(Ada)' }); });`,
    );
    const main = await runMain({ ...env, PROVIDER_MODULES: module });
    main.child.kill('SIGUSR2');
    expect(await main.exited).toBe(1);
    expect(main.output()).toMatch(/"severity":"CRITICAL".*draining/s);
    expect(main.output()).not.toContain('Ada');
  });

  it('with a module that is not a provider names the module and exits 1', async () => {
    const main = spawnMain({ ...env, PORT: '0', PROVIDER_MODULES: 'node:os' });
    expect(await main.exited).toBe(1);
    expect(main.output()).toMatch(/PROVIDER_MODULES: node:os/);
  });
});

describe('a process whose database does not exist yet', () => {
  it('logs one line with the problem and the remedy, and continues when the database exists', async () => {
    const name = `not_yet_${process.pid}`;
    const url = Object.assign(new URL(env['DATABASE_URL'] ?? ''), { pathname: `/${name}` }).href;
    const main = spawnMain({ ...env, PORT: '0', DATABASE_URL: url });
    const told = (): string[] =>
      main
        .output()
        .split('\n')
        .filter((line) => line.includes('Postgres cannot be used'));
    await until(() => told().length > 0);
    await sleep(2_500);
    const what = `database "${name}" does not exist; run CREATE DATABASE "${name}" ENCODING 'UTF8' TEMPLATE template0`;
    const message = expect.stringContaining(what);
    expect(told().map((line) => JSON.parse(line) as unknown)).toMatchObject([{ level: 50, message }]);
    expect(main.output()).not.toContain('"stack"');
    await system.query(`CREATE DATABASE ${name}`);
    await main.exited;
    expect(main.output()).toMatch(/^The schema lacks 0001-\w+ and \d+ more\. Run: expediter migrate\n/m);
    await system.query(`DROP DATABASE ${name}`);
  });
});

describe.each([
  ['behind', -600_000],
  ['ahead', 600_000],
])('a machine whose clock is ten minutes %s', (_, offMs) => {
  it("uses Postgres's time: pushes, signed orders and signed webhooks are accepted", async () => {
    const secret = `whsec_${Buffer.alloc(24, 5).toString('base64')}`;
    const pos = await startPos({ secret });
    const locationId = `club-${offMs}`;
    await system.addLocation(locationId, { ordersUrl: pos.ordersUrl, secret });
    const clock = new URL('../../world/processes/shift-clock.ts', import.meta.url).href;
    const main = await runMain({ ...env, NODE_OPTIONS: `--import ${clock}`, CLOCK_OFF_MS: String(offMs) });
    try {
      const serviceOrderId = await place(main, locationId);
      await until(() => pos.tickets.some((ticket) => ticket.serviceOrderId === serviceOrderId));
      const answer = await pos.sendStatus(await system.webhookUrl(locationId), { serviceOrderId, status: 'received' });
      expect(answer).toMatchObject({ status: 200, body: { outcome: 'applied' } });
    } finally {
      await kill(main);
      await pos.stop();
    }
  });
});

describe('a process without credentials for Pub/Sub', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'expediter-'));
  });
  afterAll(async () => {
    if (running !== undefined) await kill(running);
    rmSync(folder, { recursive: true });
  });

  it('accepts webhooks, logs what is missing, and a process with credentials publishes the live messages', async () => {
    const { PUBSUB_EMULATOR_HOST: _, ...others } = env;
    const credentials = join(folder, 'credentials.json');
    const main = (running = await runMain({ ...others, GOOGLE_APPLICATION_CREDENTIALS: credentials }));
    system.urls[0] = main.url;
    const report = async (status: 'RECEIVED' | 'READY'): Promise<unknown> =>
      post(await system.webhookUrl('club-1'), statusWebhook({ serviceOrderId: 'unnotified', status }));
    await system.seedOrder({ serviceOrderId: 'unnotified', locationId: 'club-1' });
    expect(await report('RECEIVED')).toMatchObject({ status: 200, body: { outcome: 'applied' } });
    await until(() => main.output().includes('live message not published'));
    expect(main.output()).toContain('credentials.json does not exist');
    writeFileSync(credentials, '{}');
    await until(() => main.output().includes('does not contain a client_email field'));
    expect(await report('READY')).toMatchObject({ status: 200, body: { outcome: 'applied' } });
    main.child.kill('SIGTERM');
    expect(await main.exited).toBe(0);

    running = undefined;
    await theProcess();
    await until(() => system.live('unnotified').length === 2);
    expect(system.live('unnotified').map((message) => message.status)).toEqual(['received', 'ready']);
  });
});
