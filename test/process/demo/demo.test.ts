import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { purchases } from '../../../examples/platform-mapper/purchases.ts';
import { API_KEY, servePlatform } from '../../../examples/platform-mapper/serve-platform.ts';
import { createDatabase } from '../../../world/postgres/create-database.ts';
import { sendAsIs } from '../../../world/system/ask-operator.ts';
import { logIn } from '../../../world/system/log-in.ts';
import { link } from '../../support/pack-package.ts';
import { freePort } from '../../../world/network/free-port.ts';
import { readBody, sendJson, serveHttp } from '../../../world/network/serve-http.ts';
import { runProgram } from '../../../world/processes/run-program.ts';
import { startPubsub } from '../../../world/pubsub/start-pubsub.ts';
import { until } from '../../../world/processes/until.ts';
import { sharedTmpdir, unprivilegedUser } from '../../../world/postgres/unprivileged-user.ts';
import { runDemo, type Run } from './run-demo.ts';

/** For a start of the demo, which makes a database first. */
const STARTED_MS = 180_000;

const COMPLETE = {
  ok: true,
  orders: [
    {
      serviceOrderId: expect.any(String),
      fulfillment: 'pickup',
      memberStates: ['placed', 'sent', 'confirmed', 'preparing', 'ready_for_pickup', 'picked_up'],
      sequences: [1, 2, 3, 4, 5, 6],
      ticketsAtPos: 1,
    },
    {
      serviceOrderId: expect.any(String),
      fulfillment: 'delivery',
      memberStates: ['placed', 'sent', 'confirmed', 'preparing', 'ready_for_delivery', 'out_for_delivery', 'delivered'],
      sequences: [1, 2, 3, 4, 5, 6, 7],
      ticketsAtPos: 1,
    },
  ],
};

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(sharedTmpdir(unprivilegedUser()), 'expediter-demo-'));
  chmodSync(dir, 0o755);
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const started: Run[] = [];
// A test that fails half-way must not leave its demo to the next one.
afterEach(async () => {
  for (const { child, code } of started.splice(0)) {
    child.kill('SIGTERM');
    await code;
  }
});

function run(args: string[], env: Record<string, string> = {}): Run {
  const result = runDemo([...args, '--dir', dir], { dir, env });
  started.push(result);
  return result;
}

/** @returns the first of so many free ports in a row */
async function freePorts(count: number): Promise<number> {
  for (;;) {
    const first = await freePort();
    const row = Array.from({ length: count }, (_, nth) => serveHttp(() => {}, first + nth));
    const taken = await Promise.allSettled(row);
    for (const each of taken) if (each.status === 'fulfilled') await each.value.stop();
    if (taken.every(({ status }) => status === 'fulfilled')) return first;
  }
}

const resultOf = ({ stdout }: Run): unknown => JSON.parse(stdout().trimEnd().split('\n').at(-1) ?? '');

/** Runs it to its end, after which nothing of it may be left. */
async function runOnce(
  args: string[],
  { code, env = {} }: { code: number; env?: Record<string, string> } = { code: 0 },
): Promise<{ result: unknown; stderr: string }> {
  const demo = run(['--once', '--json', ...args], env);
  expect(await demo.code, demo.stderr()).toBe(code);
  expect(demo.leftBehind()).toEqual([]);
  return { result: resultOf(demo), stderr: demo.stderr() };
}

describe('npm run demo -- --once --json', () => {
  it.each(['on fresh data', 'on the same data again'])('completes both orders %s', async () => {
    const { result, stderr } = await runOnce([]);
    expect(result).toEqual(COMPLETE);
    expect(stderr).toMatch(/pickup +order-\w+ +POS +webhook COMPLETED +200 applied/);
    expect(stderr).toMatch(/delivery +order-\w+ +member +live 7 +delivered/);
    expect(stderr).not.toContain('\u001B[');
    expect(existsSync(join(dir, 'postgres/postmaster.pid'))).toBe(false);
    for (const secret of ['settings-key', 'operators-token', 'expediter.sh'])
      expect(statSync(join(dir, secret)).mode & 0o777).toBe(0o600);
    expect(stderr).toContain(`operator token: ${readFileSync(join(dir, 'operators-token'), 'utf8').trim()})`);
  });

  it('uses a given Postgres and emulator, and removes its subscriptions from the emulator', async () => {
    const [databaseUrl, pubsub] = await Promise.all([createDatabase(), startPubsub()]);
    const client = new PubSub({ projectId: 'shared', apiEndpoint: pubsub.host, emulatorMode: true });
    await client.createTopic('orders');
    const shared = { PUBSUB_EMULATOR_HOST: pubsub.host, GOOGLE_CLOUD_PROJECT: 'shared' };
    const { result } = await runOnce([], { code: 0, env: { DATABASE_URL: databaseUrl, ...shared } });
    expect(result).toEqual(COMPLETE);
    const [topics] = await client.getTopics();
    expect(new Set(topics.map(({ name }) => name.split('/').at(-1)))).toEqual(new Set(['orders', 'order-status']));
    for (const topic of topics) {
      const [subscriptions] = await topic.getSubscriptions();
      expect(subscriptions).toEqual([]);
    }
    const published = pubsub
      .published('order-status')
      .map((each) => `${each.orderingKey} ${each.attributes['sequence']}`);
    expect(new Set(published).size).toBe(13);
    await client.close();
    await pubsub.stop();
  });
});

describe('npm run demo -- --cancel', () => {
  it('cancels an order before it is sent and one after that, and is too late for a third', async () => {
    const { result, stderr } = await runOnce(['--cancel']);
    const serviceOrderId = expect.any(String);
    const cooked = ['placed', 'sent', 'confirmed', 'preparing', 'ready_for_pickup', 'picked_up'];
    expect(result).toEqual({
      ...COMPLETE,
      cancelled: [
        { serviceOrderId, memberStates: ['placed', 'cancelled'], ticketsAtPos: 0, cancelledAtPos: false },
        { serviceOrderId, memberStates: expect.arrayContaining(['cancelled']), ticketsAtPos: 1, cancelledAtPos: true },
        { serviceOrderId, memberStates: cooked, ticketsAtPos: 1, cancelledAtPos: false },
      ],
    });
    expect(stderr).toMatch(/member +live \d+ +ready_for_pickup, cancel refused/);
  });
});

describe('npm run demo -- --without-google', () => {
  it('completes both orders on Postgres alone, and repeats no status', async () => {
    const { result, stderr } = await runOnce(['--without-google']);
    expect(result).toEqual(COMPLETE);
    expect(stderr).not.toMatch(/Pub\/Sub|\(repeat\)/);
    expect(readFileSync(join(dir, 'service.log'), 'utf8')).toContain(
      'signals come by POST /signal; statuses leave by STATUS_WEBHOOK_URL; members follow orders by GET /follow; there is no spill',
    );
  });

  it("sends each status to the user's own receiver by the commands of docs/without-google.md", async () => {
    const [, commands = 'exit 1'] = /```sh\n(.*?)```/s.exec(readFileSync('docs/without-google.md', 'utf8')) ?? [];
    const port = String(await freePort());
    const there = commands
      .replace('127.0.0.1:3000', `127.0.0.1:${port}`)
      .replace('--once', `--once --json --dir ${dir}`)
      // The shell of a test ends, and its jobs with it.
      .replace(/&$/m, '& receiver=$!');
    const ended = await runProgram('bash', ['-eu', '-c', `trap 'kill $receiver' EXIT\n${there}`], { PORT: port }, {});
    expect(ended, ended.error).toMatchObject({ code: 0 });
    const told = [...ended.out.matchAll(/^(order-\w+) (\w+) $/gm)].map(([, id = '', state = '']) => ({ id, state }));
    const statesOf = (end: string): string[] => {
      const of = told.find(({ state }) => state === end)?.id;
      return told.filter(({ id }) => id === of).map(({ state }) => state);
    };
    const [pickup, delivery] = COMPLETE.orders;
    expect([statesOf('picked_up'), statesOf('delivered')]).toEqual([pickup?.memberStates, delivery?.memberStates]);
  });
});

describe('npm run demo -- --platform', () => {
  const module = fileURLToPath(new URL('../../../examples/platform-mapper/map-order.ts', import.meta.url));
  let feast: Awaited<ReturnType<typeof servePlatform>>;
  let env: Record<string, string>;
  beforeEach(async () => {
    feast = await servePlatform();
    env = { ORDER_API_URL: feast.url, ORDER_API_TOKEN: API_KEY };
  });
  afterEach(() => feast.stop());
  const ordered = (...ids: string[]): string[] => ids.flatMap((id) => ['--order', id]);

  it('sends the orders of a platform to a POS, and says why one fails', async () => {
    const args = ['--platform', module, ...ordered('T-2001', 'B-1001'), '--pos', 'toast'];
    const { result, stderr } = await runOnce(args, { code: 1, env });
    // A member without an e-mail address, which Toast wants.
    expect(result).toEqual({
      ok: false,
      error: expect.stringMatching(
        /^the delivery order T-2001 .*\(failed: .*member\.email is missing\)\. .* log is in /,
      ),
      orders: [
        expect.objectContaining({ serviceOrderId: 'T-2001', memberStates: ['placed', 'failed'], ticketsAtPos: 0 }),
        {
          serviceOrderId: 'B-1001',
          fulfillment: 'pickup',
          memberStates: ['placed', 'sent', 'preparing', 'ready_for_pickup', 'picked_up'],
          sequences: [1, 2, 3, 4, 5],
          ticketsAtPos: 1,
        },
      ],
    });
    expect(stderr).toMatch(/T-2001 +platform +signals orderPlaced, for feast-tokyo/);
    expect(stderr).not.toContain('Murasaki');
  });

  it('reports an order as cancelled, withdrawn or held if the mapper cancels, skips or cannot read it', async () => {
    const [table] = purchases;
    feast.byCode.set('D-3001', { ...table, code: 'D-3001', handover: 'DINE_IN' });
    feast.byCode.set('P-4001', { ...table, code: 'P-4001', totals: { ...table?.totals, grand: 'much' } });
    const cancelling = join(dir, 'cancelling.ts');
    writeFileSync(
      cancelling,
      `export * from '${module}'; import { toCanonicalOrder as map } from '${module}';
       export const toCanonicalOrder = (data) =>
         data.purchase.code === 'T-2001' ? { ...map(data), cancelledAt: '2026-11-21T18:00:00Z' } : map(data);`,
    );
    const args = ['--platform', cancelling, ...ordered('B-1001', 'T-2001', 'D-3001', 'P-4001')];
    const origins = { MEMBER_ORIGINS: 'https://order.example.com' };
    const { result, stderr } = await runOnce(args, { code: 0, env: { ...env, ...origins } });
    expect(result).toMatchObject({
      ok: true,
      orders: [
        { serviceOrderId: 'B-1001', ticketsAtPos: 1 },
        { serviceOrderId: 'T-2001', expected: 'cancelled', ticketsAtPos: 0 },
        { serviceOrderId: 'D-3001', expected: 'withdrawn', memberStates: [] },
        { serviceOrderId: 'P-4001', expected: 'held', memberStates: [] },
      ],
    });
    expect(stderr).toMatch(/P-4001 +service +held: .*about grand at map-order\.ts:\d+/);
    expect(stderr).toMatch(/B-1001 +POS +has the order as \S+, code \w+, wanted for [\d-]{10} 18:30 \(\+0[12]:00\)/);
    expect(readFileSync(join(dir, 'own-platform/expediter.sh'), 'utf8')).toMatch(
      /MEMBER_ORIGINS='\S+,https:\/\/order\.ex/,
    );
  });

  it('places a held order after its correction, and an order that is signalled later', async () => {
    const [table] = purchases;
    const [first] = table?.positions ?? [];
    // The only order of its location.
    const held = { ...table, code: 'P-4001', restaurant: { ...table?.restaurant, id: 23 } };
    feast.byCode.set('P-4001', { ...held, totals: { ...table?.totals, grand: 'much' } });
    const product = { ...first?.product, sku: 'soup', title: 'Soup' };
    feast.byCode.set('U-5001', { ...table, code: 'U-5001', positions: [{ ...first, product }] });
    const args = ['--platform', module, ...ordered('B-1001', 'P-4001'), '--pos', 'toast'];
    const { child, code, stdout, stderr, leftBehind } = run(args, env);
    const place = await until(() => /curl -X POST '([^']+)'/.exec(stdout())?.[1], STARTED_MS);
    expect(stdout()).toMatch(/P-4001 +service +held: .*about grand at map-order\.ts:\d+/);
    expect(stdout()).toContain('\nThe order B-1001 is complete: one ticket, and the member');

    feast.byCode.set('P-4001', { ...held, restaurant: { ...held.restaurant, id: 99 } });
    const [, page = '', token = ''] = /The console: +(\S+)\nLog in with: +(\S+)/.exec(stdout()) ?? [];
    const authorization = `Bearer ${token}`;
    await fetch(new URL('/v1/orders/P-4001/retry', page), { method: 'POST', headers: { authorization } });
    await until(() => /P-4001 +service +held: .*location_unmapped/.test(stdout()));
    feast.byCode.set('P-4001', held);
    const [, project = '', apiEndpoint = ''] = / Topic +\S+=(\S+) \S+=(\S+)/.exec(stdout()) ?? [];
    expect(stdout()).toMatch(/^Signals: +publish \{"orderId": "ORDER_ID"\} to the topic orders/m);
    const client = new PubSub({ projectId: project, apiEndpoint, emulatorMode: true });
    await client.topic('orders').publishMessage({ json: { orderId: 'U-5001' } });
    await until(() => /pickup +U-5001 +member +live \d +picked_up/.test(stdout()));
    await until(() => /pickup +P-4001 +member +live \d +picked_up/.test(stdout()));
    expect(stdout()).toMatch(/U-5001 +platform +signals orderPlaced, for feast-berlin/);

    feast.byCode.set('H-6001', { ...held, code: 'H-6001', totals: { ...table?.totals, grand: 'much' } });
    const url = place.replace('ORDER_ID', 'H-6001');
    for (const wanted of [/signals orderPlaced\n/, /signals the order again\n/]) {
      expect(await (await fetch(url, { method: 'POST' })).json()).toMatchObject({ expected: 'held' });
      await until(() => wanted.test(stdout()));
    }
    await client.close();
    child.kill('SIGTERM');
    expect(await code, stderr()).toBe(0);
    expect(leftBehind()).toEqual([]);
  });

  it('keeps its ports, takes the signals of a platform, and does not end when the platform fails', async () => {
    let asked = 0;
    let isDown = false;
    const between = await serveHttp(async (request, response) => {
      const body = (await readBody(request)).toString();
      // The demo asks first, and then the service. Only the service gets answers.
      const fails = isDown || (body.includes('U-5001') && (asked += 1) !== 2);
      if (fails) return sendJson(response, 503, {});
      const headers = { 'content-type': 'application/json', 'x-api-key': API_KEY };
      const answer = await fetch(feast.url, { method: 'POST', headers, body });
      sendJson(response, answer.status, await answer.json());
    });
    const [table] = purchases;
    feast.byCode.set('U-5001', { ...table, code: 'U-5001' });
    feast.byCode.set('U-5002', { ...table, code: 'U-5002' });
    const first = await freePorts(7);
    const file = join(dir, 'token');
    writeFileSync(file, `${API_KEY}\n`);
    const token = { ORDER_API_URL: between.url, ORDER_API_TOKEN: '', ORDER_API_TOKEN_FILE: file };
    const args = ['--platform', module, ...ordered('B-1001'), '--without-google', '--ports', String(first)];
    const { child, code, stdout, stderr } = run(args, token);
    await until(() => stdout().includes('Ctrl-C ends everything'), STARTED_MS);
    const [, url = ''] = /^Signals: +POST \{"orderId": "ORDER_ID"\} to (\S+)$/m.exec(stdout()) ?? [];
    expect(url).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:${first + 2}/signal\\?token=`));
    const places = { 'The console': 1, 'A guest sees': 5, 'Place another': 6, 'The kitchen': 4, 'The service': 0 };
    for (const [place, nth] of Object.entries(places))
      expect(stdout()).toMatch(new RegExp(`^${place}: .*http://127\\.0\\.0\\.1:${first + nth}/`, 'm'));

    const signal = async (orderId: string): Promise<number> =>
      (await fetch(url, { method: 'POST', body: JSON.stringify({ orderId }) })).status;
    expect(await signal('U-5001')).toBe(204);
    await until(() => /U-5001 +member +live \d +picked_up/.test(stdout()));
    isDown = true;
    expect(await signal('U-5002')).toBe(204);
    await until(() => /U-5002 +service +waiting: the ordering platform answered 503/.test(stdout()));
    const place = await fetch(`http://127.0.0.1:${first + 6}/orders?id=B-1001`, { method: 'POST' });
    expect(await place.json()).toMatchObject({ error: expect.stringContaining('is over') });
    isDown = false;
    await until(() => /U-5002 +member +live \d +picked_up/.test(stdout()));
    child.kill('SIGTERM');
    expect(await code, stderr()).toBe(0);
    await between.stop();
  });

  it('fails before anything starts if orders are missing, and names them', async () => {
    const args = ['--platform', module, ...ordered('B-9999', 'B-1001', 'B-8888')];
    const { result, stderr } = await runOnce(args, { code: 1, env });
    expect(result).toMatchObject({ error: expect.stringMatching(/no order B-9999\n.*no order B-8888$/) });
    expect(stderr).not.toContain('Postgres');
  });

  it('fails without ORDER_API_URL', async () => {
    const args = ['--platform', module, ...ordered('B-1001')];
    const { stderr } = await runOnce(args, { code: 1, env: { ORDER_API_URL: '' } });
    expect(stderr).toContain('ORDER_API_URL: is required');
  });
});

describe('npm run demo', () => {
  it('keeps running, takes orders by curl, and leaves nothing after SIGTERM', async () => {
    const { child, code, stdout, stderr, leftBehind } = run([]);
    const url = await until(() => /curl -X POST '([^']+)'/.exec(stdout())?.[1], STARTED_MS);
    const answer = await fetch(url, { method: 'POST' });
    const { serviceOrderId, trackerUrl } = (await answer.json()) as Record<'serviceOrderId' | 'trackerUrl', string>;
    await until(() => new RegExp(`${serviceOrderId} +member +live 7 +delivered`).test(stdout()));

    // The page's reader of the topic, with the variables as they are printed: it has the orders from before its start.
    const guide = readFileSync(new URL('../../../docs/connect-your-platform.md', import.meta.url), 'utf8');
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
      dependencies: Record<string, string>;
    };
    // The newest version cannot be installed.
    expect(guide).toContain(`npm install @google-cloud/pubsub@${dependencies['@google-cloud/pubsub']}\n`);
    writeFileSync(join(dir, 'reader.mts'), /^### TypeScript$.*?```ts\n(.*?)```/ms.exec(guide)?.[1] ?? '');
    link(dir, ['@google-cloud/pubsub']);
    const topic = / Topic +(.*?) {3}/
      .exec(stdout())?.[1]
      ?.split(' ')
      .map((each) => each.split('='));
    const reader = runDemo([], { dir, env: Object.fromEntries(topic ?? []), demo: join(dir, 'reader.mts') });
    started.push(reader);
    await until(() => reader.stdout().includes(`${serviceOrderId} delivered`));
    expect(reader.stderr()).toBe('');

    for (const tracked of [trackerUrl, await until(() => /A guest sees: +(\S+)/.exec(stdout())?.[1])]) {
      // The second leads to the newest guest's order.
      const { headers: to } = await fetch(tracked, { redirect: 'manual' });
      const page = to.get('location') ?? tracked;
      const [, followUrl = ''] = /name="follow-url" content="(.+?)"/.exec(await (await fetch(page)).text()) ?? [];
      const headers = { authorization: `Bearer ${new URL(page).hash.slice(1)}` };
      const stream = await fetch(followUrl, { headers });
      expect(stream.headers.get('content-type')).toContain('text/event-stream');
      await stream.body?.cancel();
    }

    const [, page = '', token = ''] = /The console: +(\S+)\nLog in with: +(\S+)/.exec(stdout()) ?? [];
    const { origin } = new URL(page);
    const cookie = await logIn(origin, token);
    const [, shown = ''] = new RegExp(`The pickup: +${page}orders/(\\S+)`).exec(stdout()) ?? [];
    const order = await sendAsIs(origin, `/console/api/orders/${shown}`, { headers: { cookie } });
    expect(order).toMatchObject({ status: 200, body: { order: { locationId: 'demo-club', status: 'completed' } } });
    // Guests have come, and nobody tells of them here.
    const placed = async (locationId: string): Promise<string[]> => {
      const { body } = await sendAsIs(origin, `/console/api/orders?location=${locationId}`, { headers: { cookie } });
      return (body['orders'] as { serviceOrderId: string }[]).map((order) => order.serviceOrderId);
    };
    const [guest = ''] = await until(async () => {
      const orders = await placed('demo-bistro');
      return orders.length > 0 && orders;
    });
    expect(stdout()).not.toContain(guest);
    const { body } = await until(async () => {
      const story = await sendAsIs(origin, `/console/api/orders/${guest}`, { headers: { cookie } });
      return story.body['order'] !== null && story;
    });
    // As the kitchen can have it ready, not a quarter of an hour before.
    const { requestedAt, createdAt } = body['order'] as Record<'requestedAt' | 'createdAt', string>;
    expect(Date.parse(requestedAt) - Date.parse(createdAt)).toBeLessThan(90_000);

    // Only the restaurant can say whether this order is at its POS, and the order continues when it has.
    const asked = await until(() => /(order-\w+) +staff +get an SMS .*is on your till, then/.exec(stdout())?.[1]);
    await until(() => new RegExp(`${asked} +POS +webhook COMPLETED +200 applied`).test(stdout()));
    expect(stdout()).toMatch(new RegExp(`${asked} +service +in doubt: [^]*${asked} +staff +answer by the link: it is`));
    const [, shell = '', mend = ''] = /\n(\. \S+)\n(expediter location change .*)\n/.exec(stdout()) ?? [];
    const pasted = [
      shell,
      mend,
      'expediter location show demo-terrace',
      'expediter doctor --only database,keys,platform,topic,push',
    ].join(' && ');
    const ended = await runProgram('sh', ['-c', pasted], {}, { cwd: '/' });
    expect(ended).toMatchObject({ code: 0, error: '' });
    expect(ended.out).toMatch(/^demo-terrace is changed\n(.*\n)*.*previousSecret/);
    child.kill('SIGTERM');
    expect(await code, stderr()).toBe(0);
    expect(leftBehind()).toEqual([]);
    await expect(fetch(url, { method: 'POST' })).rejects.toThrow();
  });

  it('stops the service and Postgres when it is killed', async () => {
    const { child, stdout, leftBehind } = run([]);
    await until(() => stdout().includes('signals orderPlaced'), STARTED_MS);
    child.kill('SIGKILL');
    await until(() => leftBehind().length === 0);
  });

  it('fails with a message when the service dies', async () => {
    const demo = run(['--once', '--json']);
    const pid = await until(() => /\(process (\d+)/.exec(demo.stderr())?.[1], STARTED_MS);
    process.kill(Number(pid), 'SIGKILL');
    expect(await demo.code).toBe(1);
    const error = expect.stringContaining('the service ended with SIGKILL');
    expect(resultOf(demo)).toMatchObject({ ok: false, error });
    expect(demo.leftBehind()).toEqual([]);
  });

  it('refuses to share its data with another demo', async () => {
    const first = run([]);
    await until(() => first.stdout().includes('Postgres'), STARTED_MS);
    const second = run(['--once', '--json']);
    expect(await second.code).toBe(1);
    expect(resultOf(second)).toMatchObject({ ok: false, error: expect.stringContaining('another demo uses') });
    first.child.kill('SIGINT');
    expect(await first.code).toBe(0);
    expect(first.leftBehind()).toEqual([]);
  });

  it('prints its usage for wrong arguments', async () => {
    const { code, stdout, stderr } = run(['--nonsense']);
    expect(await code).toBe(2);
    expect(stderr()).toContain("Unknown option '--nonsense'");
    expect(stderr()).toContain('Usage: npm run demo');
    expect(stdout()).toBe('');
  });

  it.each([
    [
      { DATABASE_URL: 'postgres://x@127.0.0.1:1/x' },
      'the database of DATABASE_URL could not be migrated: connect ECONNREFUSED',
    ],
    [{ PROVIDER_MODULES: './nowhere.ts' }, 'PROVIDER_MODULES: ./nowhere.ts cannot be loaded'],
    [{ DATABASE_URL: 'nonsense' }, 'DATABASE_URL: is not a postgres URL'],
    [{ PUBSUB_EMULATOR_HOST: '127.0.0.1:1' }, 'Pub/Sub at 127.0.0.1:1 cannot be used'],
  ])('fails with an explanation for %j', async (env, message) => {
    const { result } = await runOnce([], { code: 1, env });
    expect(result).toMatchObject({ ok: false, error: expect.stringContaining(message) });
  });
});
