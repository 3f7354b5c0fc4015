/**
 * Records what a released version writes, for test/migrations/recorded.test.ts: orders in every state, webhooks,
 * messages on their way, rights. Usage: npm run record -- [<commit> <version>], by default the last release.
 */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { freePort } from '../../world/network/free-port.ts';
import { logIn } from '../../world/system/log-in.ts';
import { OPERATOR_TOKEN } from '../../world/system/ask-operator.ts';
import { runMain } from '../../world/processes/run-main.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { startPostgres } from '../../world/postgres/start-postgres.ts';
import { startSystem } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { startFaultProxy } from './fault-proxy.ts';
import { buildVersion, fileIn, findPrevious, runPrevious, type Version } from './previous-version.ts';

process.env['METADATA_SERVER_DETECTION'] = 'none';
const SECRET = `whsec_${Buffer.from('recorded, and of no use at all').toString('base64')}`;
const OTHER_SECRET = `whsec_${Buffer.from('another one, of no use at all').toString('base64')}`;

type Scene = Awaited<ReturnType<typeof setScene>>;
type Known = { tokens: Record<string, string>; operatorToken: string };
type Running = Scene & Known & { main: Awaited<ReturnType<typeof runMain>>; cookie: string };

const [commit, version] = process.argv.slice(2);
const scene = await setScene(
  await buildVersion(commit === undefined || version === undefined ? findPrevious() : { commit, name: version }),
);
const known = await recordLocations(scene);
const running = await startMain(scene, known);
await recordOrders(running);
const spilled = await recordWaiting(running);
running.main.child.kill('SIGKILL');
await running.main.exited;
await writeRows(running, spilled);
await stopScene(scene);

/** All that the version needs, and its schema. */
async function setScene(previous: Version) {
  /** @param paths of a file, the newest place first */
  const inVersion = (...paths: string[]): string => fileIn(previous.folder, ...paths);
  const postgres = await startPostgres();
  const direct = new pg.Pool({ connectionString: postgres.url });
  const proxy = await startFaultProxy({ targetPort: postgres.port });
  const pos = await startPos({ secret: SECRET });
  const doubtful = await startPos({ deduplicates: false });
  const stranger = await startPos({ secret: OTHER_SECRET });
  await runPrevious(previous, { DATABASE_URL: postgres.url }, ['migrate']);
  const system = await startSystem({
    processes: 0,
    databaseUrl: proxy.through(postgres.url),
    env: {
      OPERATOR_TOKEN,
      SPILL_TOPIC: 'spill',
      PUBLIC_URL: 'https://expediter.example.com',
      // Of this version: the recorded one can load it.
      ORDER_MODULE: fileURLToPath(new URL('../../examples/order-with-cancels.ts', import.meta.url)),
      PROVIDER_MODULES: inVersion(
        'world/pos/pos-without-deduplication.ts',
        'test/support/pos-without-deduplication.ts',
      ),
    },
  });
  return { previous, inVersion, postgres, direct, proxy, pos, doubtful, stranger, system };
}

/** Records locations, their tokens, and what an operator may do. */
async function recordLocations({ previous, postgres, system, pos, doubtful }: Scene): Promise<Known> {
  const run = (args: string[], input?: unknown): Promise<string> =>
    runPrevious(previous, { ...system.env, DATABASE_URL: postgres.url }, [...args, '--json'], JSON.stringify(input));
  const { ordersUrl, cancelUrl } = pos;
  const locations: Record<string, [integration: string, settings: object]> = {
    'club-1': ['standard', { ordersUrl, cancelUrl, secret: SECRET }],
    'club-2': ['standard', { ordersUrl: `http://127.0.0.1:${await freePort()}/orders`, secret: SECRET }],
    'club-3': ['blind', { ordersUrl: doubtful.ordersUrl }],
    // It cannot be asked to cancel.
    'club-4': ['standard', { ordersUrl, secret: SECRET }],
  };
  const tokens: Record<string, string> = {};
  for (const [id, [integration, settings]] of Object.entries(locations)) {
    await run(['location', 'put', '--location', id, '--integration', integration, '--settings', '-'], settings);
    tokens[id] = (JSON.parse(await run(['token', 'issue', '--location', id])) as { token: string }).token;
  }
  await run(['operator', 'grant', 'add', '--email', 'anna@example.com', '--role', 'viewer', '--locations', 'club-1']);
  const roles = 'viewer,operator,member-data,admin';
  const named = ['operator', 'token', 'issue', '--name', 'recorded', '--role', roles, '--expires', 'never'];
  const { token: operatorToken } = JSON.parse(await run(named)) as { token: string };
  await run(['location', 'pause', 'club-4']);
  await run(['location', 'resume', 'club-4']);
  return { tokens, operatorToken };
}

async function startMain(of: Scene, known: Known): Promise<Running> {
  const main = await runMain(of.system.env, undefined, of.inVersion('src/main.ts'));
  of.system.urls.push(main.url);
  const cookie = await logIn(main.operatorUrl, known.operatorToken);
  return { ...of, ...known, main, cookie };
}

/** Records orders in every state, and webhooks with every outcome. */
async function recordOrders(about: Running): Promise<void> {
  const { system, pos, doubtful, stranger } = about;
  const place = (id: string, locationId: string): Promise<unknown> =>
    system.placeOrder({ serviceOrderId: id, locationId });
  const reaches = (id: string, state: string): Promise<unknown> =>
    isThere(about, 'SELECT 1 FROM placements WHERE service_order_id = $1 AND state = $2', id, state);
  const cancelled = { cancelledAt: new Date().toISOString(), cancelReason: 'Too late' };

  doubtful.behave = () => 'drop-answer';
  pos.behave = ({ order }) =>
    order.serviceOrderId === 'failed' ? { status: 422, body: { reason: 'Closed.' } } : undefined;
  for (const id of ['completed', 'open', 'cancelled', 'failed']) await place(id, 'club-1');
  for (const id of ['waiting', 'withdrawn']) await place(id, 'club-2');
  await place('in-doubt', 'club-3');
  await place('by-phone', 'club-4');
  await place('held', 'club-without-settings');
  for (const id of ['completed', 'open', 'cancelled', 'by-phone']) await reaches(id, 'sent');
  for (const status of ['received', 'in_progress', 'ready', 'completed']) await report(about, 'completed', status);
  for (const status of ['in_progress', 'in_progress', 'received']) await report(about, 'open', status);
  for (const id of ['cancelled', 'by-phone', 'withdrawn']) await change(about, id, cancelled);
  await change(about, 'open', { notes: 'No onions' });
  await isThere(about, `SELECT 1 FROM order_changes WHERE service_order_id = 'open'`);
  for (const id of ['failed', 'withdrawn', 'held']) await reaches(id, id);
  await reaches('in-doubt', 'in_doubt');
  for (const state of ['cancelled', 'by_phone'])
    await isThere(about, 'SELECT 1 FROM cancellations WHERE state = $1', state);
  await isThere(about, `SELECT 1 FROM placements WHERE service_order_id = 'waiting' AND failures > 0`);
  await pos.sendStatus(webhookUrl(about, 'club-2'), { providerOrderId: 'pos-parked', status: 'received' });
  await pos.sendStatus(webhookUrl(about, 'club-1'), {
    serviceOrderId: 'none',
    status: 'none',
    eventType: 'menu.changed',
  });
  await report(about, 'by-phone', 'received', { from: 'club-4', sender: stranger });
  for (const outcome of ['applied', 'duplicate', 'stale', 'parked', 'ignored', 'dropped'])
    await isThere(about, 'SELECT 1 FROM webhooks WHERE outcome = $1', outcome);
}

/** Records what waits: a refresh, then a live message, and then a webhook in the spill. @returns the spilled messages */
async function recordWaiting(about: Running): Promise<string[]> {
  const { system, proxy, direct } = about;
  system.platform.answer = () => 'down';
  await change(about, 'open', { notes: 'No onions, no salt' });
  await isThere(about, `SELECT 1 FROM refreshes WHERE failures > 0`);
  await until(async () => (await first(direct, 'SELECT 1 FROM outbox')) === undefined);
  Object.assign(system.pubsub.faults, { publishHangs: true });
  await report(about, 'open', 'ready');
  proxy.refuse();
  proxy.resetAll();
  Object.assign(system.pubsub.faults, { publishHangs: false });
  await until(async () => (await report(about, 'open', 'completed')) === 'accepted');
  return system.pubsub.published('spill').map(({ data }) => data.toString('base64'));
}

/** Writes the rows of all tables to the file of the version. */
async function writeRows(
  { previous, direct, tokens, operatorToken, cookie }: Running,
  spilled: string[],
): Promise<void> {
  const { rows: names } = await direct.query<{ name: string }>('SELECT name FROM schema_migrations ORDER BY id');
  const { rows: tables } = await direct.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'expediter'::regnamespace AND relkind IN ('r', 'p')
       AND NOT relispartition AND relname <> 'schema_migrations' ORDER BY relname`,
  );
  const known = { tokens, operatorToken, cookie, secret: SECRET, otherSecret: OTHER_SECRET, spilled };
  const lines: object[] = [{ recordedAt: new Date(), migrations: names.map(({ name }) => name), known }];
  for (const { name } of tables) {
    const { rows = [] } = (await first<{ rows: object[] }>(direct, `SELECT json_agg(t) AS rows FROM ${name} t`)) ?? {};
    if ((rows ?? []).length > 0) lines.push({ table: name, rows });
  }
  const file = fileURLToPath(new URL(`../../test/migrations/recorded/${previous.name}.jsonl`, import.meta.url));
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  process.stdout.write(`${file}: ${lines.length - 1} tables\n`);
}

async function stopScene({ previous, postgres, direct, proxy, system, ...poses }: Scene): Promise<void> {
  const { pos, doubtful, stranger } = poses;
  await Promise.all([system.stop(), proxy.stop(), direct.end(), pos.stop(), doubtful.stop(), stranger.stop()]);
  await postgres.stop();
  await previous.remove();
}

async function first<Row extends object>(pool: pg.Pool, sql: string, values: unknown[] = []): Promise<Row | undefined> {
  return (await pool.query<Row>(sql, values)).rows[0];
}

function isThere({ direct }: Scene, sql: string, ...values: unknown[]): Promise<unknown> {
  return until(() => first(direct, sql, values));
}

function webhookUrl({ main, tokens }: Running, id: string): string {
  return `${main.url}/webhook/standard/${id}?token=${tokens[id]}`;
}

/** A POS reports a status. @returns the outcome */
async function report(
  about: Running,
  serviceOrderId: string,
  status: string,
  { from = 'club-1', sender = about.pos }: { from?: string; sender?: Pos } = {},
): Promise<string> {
  const { body } = await until(async () => {
    const answer = await sender.sendStatus(webhookUrl(about, from), { serviceOrderId, status });
    return answer.status === 200 && answer;
  });
  return (body as { outcome: string }).outcome;
}

/** The platform changes an order, and says so. */
async function change({ system }: Running, id: string, fields: object): Promise<void> {
  system.platform.orders.set(id, { ...(system.platform.orders.get(id) as object), ...fields });
  await until(async () => (await system.signal(id)) === 204);
}
