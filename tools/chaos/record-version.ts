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
import { startPos } from '../../world/pos/start-pos.ts';
import { startPostgres } from '../../world/postgres/start-postgres.ts';
import { startSystem } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { startFaultProxy } from './fault-proxy.ts';
import { buildVersion, fileIn, findPrevious, runPrevious } from './previous-version.ts';

process.env['METADATA_SERVER_DETECTION'] = 'none';
const [commit, version] = process.argv.slice(2);
const previous = await buildVersion(
  commit === undefined || version === undefined ? findPrevious() : { commit, name: version },
);
/** @param paths of a file, the newest place first */
const inVersion = (...paths: string[]): string => fileIn(previous.folder, ...paths);
const SECRET = `whsec_${Buffer.from('recorded, and of no use at all').toString('base64')}`;
const OTHER_SECRET = `whsec_${Buffer.from('another one, of no use at all').toString('base64')}`;

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
    PROVIDER_MODULES: inVersion('world/pos/pos-without-deduplication.ts', 'test/support/pos-without-deduplication.ts'),
  },
});

const run = (args: string[], input?: unknown): Promise<string> =>
  runPrevious(previous, { ...system.env, DATABASE_URL: postgres.url }, [...args, '--json'], JSON.stringify(input));
const only = async <Row extends object>(sql: string, values: unknown[] = []): Promise<Row | undefined> =>
  (await direct.query<Row>(sql, values)).rows[0];
const isThere = (sql: string, ...values: unknown[]): Promise<unknown> => until(() => only(sql, values));
const reaches = (id: string, state: string): Promise<unknown> =>
  isThere('SELECT 1 FROM placements WHERE service_order_id = $1 AND state = $2', id, state);

const { ordersUrl, cancelUrl } = pos;
const LOCATIONS: Record<string, [integration: string, settings: object]> = {
  'club-1': ['standard', { ordersUrl, cancelUrl, secret: SECRET }],
  'club-2': ['standard', { ordersUrl: `http://127.0.0.1:${await freePort()}/orders`, secret: SECRET }],
  'club-3': ['blind', { ordersUrl: doubtful.ordersUrl }],
  // It cannot be asked to cancel.
  'club-4': ['standard', { ordersUrl, secret: SECRET }],
};
const tokens: Record<string, string> = {};
for (const [id, [integration, settings]] of Object.entries(LOCATIONS)) {
  await run(['location', 'put', '--location', id, '--integration', integration, '--settings', '-'], settings);
  tokens[id] = (JSON.parse(await run(['token', 'issue', '--location', id])) as { token: string }).token;
}
await run(['operator', 'grant', 'add', '--email', 'anna@example.com', '--role', 'viewer', '--locations', 'club-1']);
const roles = 'viewer,operator,member-data,admin';
const named = ['operator', 'token', 'issue', '--name', 'recorded', '--role', roles, '--expires', 'never'];
const { token: operatorToken } = JSON.parse(await run(named)) as { token: string };
await run(['location', 'pause', 'club-4']);
await run(['location', 'resume', 'club-4']);

const main = await runMain(system.env, undefined, inVersion('src/main.ts'));
system.urls.push(main.url);
const cookie = await logIn(main.operatorUrl, operatorToken);
const webhookUrl = (id: string): string => `${main.url}/webhook/standard/${id}?token=${tokens[id]}`;
const report = async (serviceOrderId: string, status: string, from = 'club-1', sender = pos): Promise<string> => {
  const { body } = await until(async () => {
    const answer = await sender.sendStatus(webhookUrl(from), { serviceOrderId, status });
    return answer.status === 200 && answer;
  });
  return (body as { outcome: string }).outcome;
};
const place = (id: string, locationId: string): Promise<unknown> =>
  system.placeOrder({ serviceOrderId: id, locationId });
const change = async (id: string, fields: object): Promise<void> => {
  system.platform.orders.set(id, { ...(system.platform.orders.get(id) as object), ...fields });
  await until(async () => (await system.signal(id)) === 204);
};
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
for (const status of ['received', 'in_progress', 'ready', 'completed']) await report('completed', status);
for (const status of ['in_progress', 'in_progress', 'received']) await report('open', status);
for (const id of ['cancelled', 'by-phone', 'withdrawn']) await change(id, cancelled);
await change('open', { notes: 'No onions' });
await isThere(`SELECT 1 FROM order_changes WHERE service_order_id = 'open'`);
for (const id of ['failed', 'withdrawn', 'held']) await reaches(id, id);
await reaches('in-doubt', 'in_doubt');
for (const state of ['cancelled', 'by_phone']) await isThere('SELECT 1 FROM cancellations WHERE state = $1', state);
await isThere(`SELECT 1 FROM placements WHERE service_order_id = 'waiting' AND failures > 0`);
await pos.sendStatus(webhookUrl('club-2'), { providerOrderId: 'pos-parked', status: 'received' });
await pos.sendStatus(webhookUrl('club-1'), { serviceOrderId: 'none', status: 'none', eventType: 'menu.changed' });
await report('by-phone', 'received', 'club-4', stranger);
for (const outcome of ['applied', 'duplicate', 'stale', 'parked', 'ignored', 'dropped'])
  await isThere('SELECT 1 FROM webhooks WHERE outcome = $1', outcome);

// A refresh waits, then a live message, and then a webhook in the spill.
system.platform.answer = () => 'down';
await change('open', { notes: 'No onions, no salt' });
await isThere(`SELECT 1 FROM refreshes WHERE failures > 0`);
await until(async () => (await only('SELECT 1 FROM outbox')) === undefined);
Object.assign(system.pubsub.faults, { publishHangs: true });
await report('open', 'ready');
proxy.refuse();
proxy.resetAll();
Object.assign(system.pubsub.faults, { publishHangs: false });
await until(async () => (await report('open', 'completed')) === 'accepted');
const spilled = system.pubsub.published('spill').map(({ data }) => data.toString('base64'));
main.child.kill('SIGKILL');
await main.exited;

const { rows: names } = await direct.query<{ name: string }>('SELECT name FROM schema_migrations ORDER BY id');
const { rows: tables } = await direct.query<{ name: string }>(
  `SELECT relname AS name FROM pg_class WHERE relnamespace = 'expediter'::regnamespace AND relkind IN ('r', 'p')
     AND NOT relispartition AND relname <> 'schema_migrations' ORDER BY relname`,
);
const known = { tokens, operatorToken, cookie, secret: SECRET, otherSecret: OTHER_SECRET, spilled };
const lines: object[] = [{ recordedAt: new Date(), migrations: names.map(({ name }) => name), known }];
for (const { name } of tables) {
  const { rows = [] } = (await only<{ rows: object[] }>(`SELECT json_agg(t) AS rows FROM ${name} t`)) ?? {};
  if ((rows ?? []).length > 0) lines.push({ table: name, rows });
}
const file = fileURLToPath(new URL(`../../test/migrations/recorded/${previous.name}.jsonl`, import.meta.url));
await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
process.stdout.write(`${file}: ${lines.length - 1} tables\n`);

await Promise.all([system.stop(), proxy.stop(), direct.end(), pos.stop(), doubtful.stop(), stranger.stop()]);
await postgres.stop();
await previous.remove();
