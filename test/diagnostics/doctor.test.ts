import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PubSub, type CreateSubscriptionOptions } from '@google-cloud/pubsub';
import { buildSchema, graphql, introspectionFromSchema } from 'graphql';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { MIGRATIONS } from '../../src/database/check-schema.ts';
import { parseSettingsKeys, seal } from '../../src/core/locations/settings-key.ts';
import { NotSent } from '../../src/core/egress/post-signed.ts';
import { resumeEndpoint, statusEndpoint } from '../../src/core/live/status-endpoint.ts';
import { issueToken } from '../../src/core/locations/webhook-tokens.ts';
import { issueSignalToken, revokeSignalToken } from '../../src/core/signals/signal-tokens.ts';
import { API_KEY, servePlatform } from '../../examples/platform-mapper/serve-platform.ts';
import { examine } from '../../src/diagnostics/doctor.ts';
import type { Finding, Part } from '../../src/diagnostics/check.ts';
import { judgeEncryption } from '../../src/diagnostics/examine-database.ts';
import { migrate } from '../../src/database/migrate.ts';
import { readConfig, REMOVED } from '../../src/config/config.ts';
import { startHubrise } from '../../world/pos/hubrise/start-hubrise.ts';
import { startLightspeedK } from '../../world/pos/lightspeed-k/start-lightspeed-k.ts';
import type { Simulator } from '../../world/pos/simulator.ts';
import { asService } from '../../world/system/as-service.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { OPERATOR_TOKEN, askOperator } from '../../world/system/ask-operator.ts';
import { freePort } from '../../world/network/free-port.ts';
import { prepareTls, type Certificates } from '../support/prepare-tls.ts';
import { runCli } from '../support/run-cli.ts';
import { runRefused } from '../support/run-refused.ts';
import { readBody, sendJson, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { startMailServer } from '../../world/mail/start-mail-server.ts';
import { startPooler } from '../../world/postgres/start-pooler.ts';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { sendEndless } from '../../world/network/send-endless.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/platform-mapper', import.meta.url));
const SECRETS = /platform-token|hunter2|whsec_|\?token=|eyJ/;

let postgres: Postgres;
let certificates: Certificates;
let system: System;
let pos: Simulator;
/** Where nobody listens; some ports fetch does not even try. */
let nobody: string;
let folder: string;
/** A deployment with nothing wrong. */
let env: Record<string, string>;
const servers: Pick<HttpServer, 'stop'>[] = [];

beforeAll(async () => {
  certificates = prepareTls('host all expediter all scram-sha-256\nhost all all all trust\n');
  // All tests' Postgres goes without fsync, which the doctor finds.
  postgres = await startPostgres({
    settings: { fsync: 'on', max_prepared_transactions: '1', ...certificates.settings },
  });
  // The service's role is made by it, and has to give its password.
  const DATABASE_URL = as('expediter', 'hunter2');
  await migrate(postgres.url, { serviceUrl: DATABASE_URL });
  // Any free port, which its environment need not name.
  system = await startSystem({
    databaseUrl: postgres.url,
    stepped: ['placements'],
    env: { DATABASE_URL, OPERATOR_TOKEN, OPERATOR_PORT: '0' },
  });
  pos = await startHubrise();
  folder = await mkdtemp(join(tmpdir(), 'doctor-'));
  nobody = `http://127.0.0.1:${await freePort()}`;
  await system.addLocation('club-1', pos.settings, 'hubrise');
  await issueToken(system.pool, { locationId: 'club-1' });
  env = { ...system.env, PUBLIC_URL: `${system.urls[0]}/`, METADATA_SERVER_DETECTION: 'none' };
  // The first time loads what it needs, and others answer too late meanwhile.
  await examine(env);
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const server of servers.splice(0)) await server.stop();
});
afterAll(async () => {
  await rm(folder, { recursive: true });
  await pos?.stop();
  await system?.stop();
  await postgres?.stop();
  certificates?.remove();
});

/** The URL of our Postgres, for another role. */
function as(username: string, password = ''): string {
  return Object.assign(new URL(postgres.url), { username, password }).href;
}

type Handler = Parameters<typeof serveHttp>[0];
async function serve(handle: Handler): Promise<string> {
  const server = await serveHttp(handle);
  servers.push(server);
  return server.url;
}

/** What one part says of the deployment with these variables changed, but for what is fine. */
async function wrong(part: Part, change: Record<string, string> = {}): Promise<Omit<Finding, 'part'>[]> {
  const findings = await examine({ ...env, ...change }, [part]);
  expect(findings.length).toBeGreaterThan(0);
  expect(JSON.stringify(findings)).not.toMatch(SECRETS);
  for (const { state, found, toDo } of findings) {
    // What is to be done follows a full stop.
    expect(found).not.toMatch(/\.(;|$)/);
    if (state === 'failed' || state === 'warning') expect(toDo).toBeTruthy();
  }
  return findings.filter((finding) => finding.state !== 'ok').map(({ part: _part, ...rest }) => rest);
}

const failed = (check: string, found: RegExp, toDo = /./): object => ({
  check,
  state: 'failed',
  found: expect.stringMatching(found),
  toDo: expect.stringMatching(toDo),
});
const warning = (check: string, found: RegExp, toDo = /./): object => ({
  ...failed(check, found, toDo),
  state: 'warning',
});

async function onAdmin(sql: string): Promise<void> {
  const client = new pg.Client(postgres.url);
  await client.connect();
  await client.query(sql);
  await client.end();
}

describe('doctor', () => {
  it('exits 0 for a healthy service, with only ok findings', async () => {
    const { code, out, error } = await runCli(env, ['doctor']);
    expect({ code, error, out }).toEqual({ code: 0, error: '', out: expect.stringMatching(/\n\n\d+ ok\n$/) });
    expect(out).toMatch(/^ok +database +connection +Postgres \d+\.\d+, directly$/m);
    expect(out).toMatch(/^ok .* club-1 +reaches its POS$/m);
    expect(out).not.toMatch(SECRETS);

    const json = await runCli(env, ['doctor', '--json']);
    const said = JSON.parse(json.out) as { ok: boolean; findings: Finding[] };
    expect(said.ok).toBe(true);
    expect(new Set(said.findings.map((each) => each.state))).toEqual(new Set(['ok']));
    expect(pos.requests).toBe(0);
  });

  it('exits 1 for wrong variables, and names each without its value', async () => {
    const broken = { ...env, SETTINGS_KEY: 'id:hunter2', POOL_SIZE: 'hunter2', ORDER_API_URL: '' };
    const { code, out, error } = await runCli(broken, ['doctor', '--json']);
    expect({ code, error }).toEqual({ code: 1, error: '' });
    expect(out).not.toMatch(SECRETS);
    const { ok, findings } = JSON.parse(out) as { ok: boolean; findings: Finding[] };
    expect(ok).toBe(false);
    expect(findings.filter((each) => each.state === 'failed').map((each) => each.check)).toEqual(
      expect.arrayContaining(['SETTINGS_KEY', 'POOL_SIZE', 'ORDER_API_URL']),
    );
    // What needs none of them is looked at all the same.
    expect(findings).toContainEqual(expect.objectContaining({ part: 'topic', state: 'ok' }));
    expect(findings).toContainEqual(expect.objectContaining({ part: 'platform', state: 'skipped' }));
  });

  it('checks only the parts that --only names', async () => {
    const { code, out } = await runCli(env, ['doctor', '--only', 'topic,push', '--json']);
    const { findings } = JSON.parse(out) as { findings: Finding[] };
    expect({ code, parts: findings.map((each) => each.part) }).toEqual({ code: 0, parts: ['topic', 'push'] });
    const refused = await runRefused(2, env, ['doctor', '--only', 'weather']);
    expect(refused).toContain('Use some of environment, database');
    expect(await wrong('platform', { ORDER_API_URL: 'nonsense' })).toEqual([
      failed('ORDER_API_URL', /is not an http or https URL/, /orders\.example\.com/),
    ]);
  });

  it('exits 0 after a warning', async () => {
    const { code, out } = await runCli({ ...env, PUBLIC_URL: '' }, ['doctor', '--only', 'public-url']);
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('1 warning') });
  });
});

describe('doctor on the environment', () => {
  it('warns of a weak OPERATOR_TOKEN and of wide networks in TRUSTED_PROXIES', async () => {
    const change = { OPERATOR_TOKEN: 'x'.repeat(43), TRUSTED_PROXIES: '10.0.0.0/8, 0.0.0.0/1' };
    expect(await wrong('environment', change)).toEqual([
      warning('OPERATOR_TOKEN', /can be guessed/, /openssl rand -base64 32/),
      warning('TRUSTED_PROXIES', /^with 0\.0\.0\.0\/1, any sender can claim any address/, /who-is-in-front/),
    ]);
  });

  it('fails for a removed variable, and names its replacement', async () => {
    const [name = '', instead = ''] = Object.entries(REMOVED)[0] ?? [];
    const found = await wrong('environment', { [name]: 'x' });
    expect(found).toMatchObject([{ check: name, found: `was removed: ${instead}`, toDo: 'remove it' }]);
  });

  it('fails if ORDER_MODULE or PROVIDER_MODULES cannot be loaded', async () => {
    expect(await wrong('environment', { ORDER_MODULE: '/nowhere', PROVIDER_MODULES: 'no-such-provider' })).toEqual([
      failed('ORDER_MODULE', /\/nowhere cannot be loaded/),
      failed('PROVIDER_MODULES', /no-such-provider cannot be loaded/),
    ]);
    expect(await wrong('platform', { ORDER_MODULE: '/nowhere' })).toEqual([
      failed('ORDER_MODULE', /^cannot be loaded: .*\/nowhere/, /map-order\.ts/),
    ]);
  });
});

describe('doctor on the database', () => {
  it('fails if Postgres cannot be reached, and skips the checks that need Postgres', async () => {
    const nowhere = 'postgres://expediter:hunter2@127.0.0.1:9/expediter';
    const findings = await examine({ ...env, DATABASE_URL: nowhere }, ['database', 'clock', 'keys', 'locations']);
    expect(findings.map(({ part, state }) => [part, state])).toEqual([
      ['database', 'failed'],
      ['clock', 'skipped'],
      ['keys', 'skipped'],
      ['locations', 'skipped'],
    ]);
    expect(findings[0]).toMatchObject({ check: 'connection', found: expect.stringContaining('ECONNREFUSED') });
    expect(JSON.stringify(findings)).not.toMatch(SECRETS);
  });

  it("accepts a pooler that drops the connection's settings only if the role has the same settings", async () => {
    const pooler = await startPooler(postgres.url, { options: 'dropped' });
    onTestFinished(() => pooler.stop());
    const DATABASE_URL = pooler.through(env['DATABASE_URL'] ?? '');
    expect(await wrong('database', { DATABASE_URL })).toEqual([]);
    await onAdmin('ALTER ROLE expediter IN DATABASE postgres RESET lock_timeout');
    expect(await wrong('database', { DATABASE_URL })).toEqual([
      failed(
        'connection',
        /^A pooler drops the settings .* role expediter lacks them/,
        /expediter migrate.* RECONNECT/,
      ),
    ]);
    await migrate(postgres.url, { serviceUrl: env['DATABASE_URL'] });
    expect(await wrong('database', { DATABASE_URL })).toEqual([]);
    pooler.options = 'refused';
    expect(await wrong('database', { DATABASE_URL })).toEqual([
      failed('connection', /unsupported startup parameter/, /ignore_startup_parameters/),
    ]);
  });

  it('fails if the schema is missing, and names expediter migrate', async () => {
    await onAdmin('CREATE DATABASE empty');
    const empty = Object.assign(new URL(postgres.url), { pathname: '/empty' }).href;
    expect(await wrong('database', { DATABASE_URL: empty })).toEqual([
      failed('schema', /^The schema lacks 0001/, /expediter migrate/),
    ]);
  });

  it('fails if Postgres runs without fsync', async () => {
    expect(await wrong('database', { DATABASE_URL: asService(await createDatabase()) })).toEqual([
      failed('writing', /fsync/),
    ]);
  });

  it('fails for sequences behind their tables, and for a publication that blocks updates', async () => {
    await onAdmin(`SELECT setval('expediter.schema_migrations_id_seq', 1, false)`);
    await onAdmin(`ALTER TABLE expediter.cases REPLICA IDENTITY DEFAULT; CREATE PUBLICATION everything FOR ALL TABLES`);
    await onAdmin(`BEGIN; LOCK TABLE expediter.kept_days IN ACCESS SHARE MODE; PREPARE TRANSACTION 'left over'`);
    const now = [
      failed('sequences', /behind their tables/, /expediter migrate/),
      failed('publications', /refuses updates of published tables: cases$/, /REPLICA IDENTITY FULL/),
    ];
    // It may be somebody's who is about to end it.
    expect(await wrong('database')).toEqual(now);
    await onAdmin('DROP PUBLICATION everything; ALTER TABLE expediter.cases REPLICA IDENTITY FULL');
    const dir = await mkdtemp(join(folder, 'migrations-'));
    await cp(MIGRATIONS, dir, { recursive: true });
    await writeFile(join(dir, '9001-one.sql'), 'ALTER TABLE kept_days ADD COLUMN one text;');
    await expect(migrate(postgres.url, { dir, lockPatienceMs: 500 })).rejects.toThrow(`ROLLBACK PREPARED 'left over'`);
    await onAdmin(`ROLLBACK PREPARED 'left over'`);
    expect(await wrong('database')).toEqual([]);
  });

  it('fails if the role can only read, and warns if it has too few connections', async () => {
    await onAdmin(`CREATE ROLE reader LOGIN CONNECTION LIMIT 8; GRANT USAGE ON SCHEMA expediter TO reader;
                   GRANT SELECT ON ALL TABLES IN SCHEMA expediter TO reader;
                   ALTER ROLE reader SET search_path = expediter;
                   ALTER ROLE reader SET default_transaction_read_only = on`);
    expect(await wrong('database', { DATABASE_URL: as('reader') })).toEqual([
      failed('writing', /read-only/, /primary/),
      { check: 'sequences', state: 'skipped', found: expect.stringMatching(/may not read them/) },
      warning('connections', /of 8 in use/, /rollout/),
      failed(
        'privileges',
        /^the role lacks INSERT on applications, .* and more$/,
        /expediter migrate with OWNER_DATABASE_URL/,
      ),
    ]);
  });

  it('fails and names each right that the role lacks', async () => {
    await onAdmin(`REVOKE UPDATE (reason) ON status_events FROM expediter;
                   REVOKE EXECUTE ON FUNCTION drop_webhook_partition FROM expediter`);
    expect(await wrong('database')).toEqual([
      failed(
        'privileges',
        /^the role lacks UPDATE \(reason\) on status_events, EXECUTE on drop_webhook_partition\(date\)$/,
      ),
    ]);
    await migrate(postgres.url, { serviceUrl: env['DATABASE_URL'] });
    expect(await wrong('database')).toEqual([]);
  });

  it("warns if the service's role has more rights than the service needs", async () => {
    expect(await wrong('database', { DATABASE_URL: postgres.url })).toEqual([
      warning('least privilege', /^the role is a superuser: /, /another role own the tables/),
    ]);
    await migrate(postgres.url, { serviceUrl: as('more') });
    expect(await wrong('database', { DATABASE_URL: as('more') })).toEqual([]);
    await onAdmin(`ALTER ROLE more CREATEDB REPLICATION; CREATE ROLE makers CREATEROLE; GRANT makers TO more;
                   GRANT CREATE ON SCHEMA expediter TO more; GRANT TRUNCATE ON orders TO more`);
    expect(await wrong('database', { DATABASE_URL: as('more') })).toEqual([
      warning(
        'least privilege',
        /^the role may make roles, may make databases, may replicate, may create in the schema expediter, has TRUNCATE on orders: /,
      ),
    ]);
    await onAdmin(`REVOKE CREATE ON SCHEMA expediter FROM more; REVOKE TRUNCATE ON orders FROM more;
                   ALTER ROLE more NOCREATEDB NOREPLICATION; REVOKE makers FROM more;
                   CREATE ROLE owner; GRANT CREATE ON SCHEMA expediter TO owner; ALTER TABLE webhooks OWNER TO owner;
                   GRANT owner TO more`);
    expect(await wrong('database', { DATABASE_URL: as('more') })).toEqual([
      warning('least privilege', /^the role owns the tables: /),
    ]);
    await onAdmin('ALTER TABLE webhooks OWNER TO postgres');
  });

  it('warns if the connection is not encrypted, or if the certificate is not verified', async () => {
    // This machine, by an address that is none of its own.
    const at = (query = ''): string => `${env['DATABASE_URL']?.replace('127.0.0.1', '0.0.0.0')}${query}`;
    expect(await wrong('database', { DATABASE_URL: at() })).toEqual([
      warning('encryption', /^the connection to 0\.0\.0\.0 is not encrypted/, /sslmode=verify-full/),
    ]);
    expect(await wrong('database', { DATABASE_URL: at('?sslmode=no-verify') })).toEqual([
      warning('encryption', /^the certificate of 0\.0\.0\.0 is not verified/, /sslmode=verify-full/),
    ]);
    vi.stubEnv('PGSSLMODE', 'no-verify');
    expect(await wrong('database', { DATABASE_URL: at() })).toEqual([
      warning('encryption', /^the certificate of .* is not verified/),
    ]);
    vi.unstubAllEnvs();
    const { file } = certificates;
    expect(await wrong('database', { DATABASE_URL: at(`?sslmode=verify-full&sslrootcert=${file}`) })).toEqual([]);
    const unlike = at(`?uselibpqcompat=true&sslmode=verify-ca&sslrootcert=${file}`);
    expect(await wrong('database', { DATABASE_URL: unlike })).toEqual([
      warning('encryption', /^the host name in the certificate of 0\.0\.0\.0 is not checked/),
    ]);
    expect(await wrong('database', { DATABASE_URL: at('?sslmode=verify-full') })).toEqual([
      failed('connection', /self-signed certificate/, /sslrootcert/),
    ]);
  });

  it.each([
    ['/cloudsql/my-project:europe-west1:expediter', 'ok'],
    ['localhost', 'ok'],
    ['::1', 'ok'],
    ['127.0.0.2', 'ok'],
    ['10.0.0.5', 'warning'],
    ['localhost.example.com', 'warning'],
  ])('judges an unencrypted connection to %s as %s', (host, state) => {
    expect(judgeEncryption({ host, ssl: false, encrypted: false }, {})).toMatchObject({ state });
  });

  it('warns if Node verifies no certificates', () => {
    const link = { host: 'db.internal', ssl: true, encrypted: true };
    expect(judgeEncryption(link, {}).state).toBe('ok');
    expect(judgeEncryption(link, { NODE_TLS_REJECT_UNAUTHORIZED: '0' }).state).toBe('warning');
  });

  it('reports missing and old partitions, and orders that should have been erased or moved', async () => {
    await system.query(
      `WITH o AS (
         INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, ended_at, erased_at)
         SELECT id, 'K472', 'club-1', 'pickup', now() - interval '40 days', erased_at
         FROM (VALUES ('long-ago', NULL), ('past', now() - interval '3 days'), ('held', now() - interval '3 days')) AS t (id, erased_at)
       )
       INSERT INTO placements (service_order_id, deadline_at, signalled_at, finished_at)
       SELECT id, now(), now() - interval '40 days', at
       FROM (VALUES ('past', now() - interval '40 days'), ('held', NULL)) AS t (id, at)`,
    );
    await system.query(`SELECT ensure_past_orders_partition('2020-01-01')`);
    await system.query(
      `CREATE TABLE webhooks_20200101 PARTITION OF webhooks FOR VALUES FROM ('2020-01-01') TO ('2020-01-02')`,
    );
    expect(await wrong('database')).toEqual([
      warning('webhook retention', /^days whose webhooks are older than 14 days: 1$/, /dropping of partitions/),
      warning('member retention', /^orders that should have been erased: 1$/, /erasure of member data/),
      warning('past orders', /^orders that should have been moved: 1$/, /move of past orders/),
      warning('history', /^months that should have been dropped: 1$/, /dropping of past orders/),
    ]);
    await system.query(`DROP TABLE webhooks_20200101, past_orders_202001; TRUNCATE orders, placements CASCADE`);

    const days = await system.query(
      `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'webhooks'::regclass ORDER BY 1`,
    );
    for (const { name } of days.slice(2)) await system.query(`DROP TABLE ${String(name)}`);
    expect(await wrong('database')).toEqual([warning('partitions', /today and 0 days ahead/, /migrate/)]);
    await system.query(`DROP TABLE ${String(days[1]?.['name'])}`);
    expect(await wrong('database')).toEqual([failed('partitions', /not today/)]);
    await migrate(postgres.url);
    expect(await wrong('database')).toEqual([]);
  });
});

describe('doctor on the clocks', () => {
  it("warns if this machine's clock is wrong", async () => {
    const now = Date.now.bind(Date);
    vi.spyOn(Date, 'now').mockImplementation(() => now() - 5_000);
    expect(await wrong('clock')).toEqual([warning('this machine', /^[45]\.\d s behind /)]);
  });

  it("warns if the platform's clock is wrong", async () => {
    const url = await serve((_request, response) => {
      response.setHeader('date', new Date(Date.now() + 60_000).toUTCString());
      sendJson(response, 200, { data: { order: null } });
    });
    expect(await wrong('clock', { ORDER_API_URL: url })).toEqual([
      warning('ordering platform', /^(59|60)\.\d s ahead of Postgres/, /NTP/),
    ]);
  });
});

describe('doctor on the keys', () => {
  it('warns of old and unused keys, and fails for a missing key', async () => {
    const key = (id: string): string => `${id}:${Buffer.alloc(32, id).toString('base64')}`;
    const { SETTINGS_KEY = '' } = env;
    expect(await wrong('keys', { SETTINGS_KEY: `${key('new')},${SETTINGS_KEY},${key('idle')}` })).toEqual([
      warning('SETTINGS_KEY', /^texts encrypted with the older key "test": 1$/, /expediter rekey/),
      warning('SETTINGS_KEY', /^nothing is encrypted with the older key "idle"/, /remove the key/),
    ]);
    expect(await wrong('keys', { SETTINGS_KEY: key('new') })).toEqual([
      failed('SETTINGS_KEY', /^texts encrypted with the missing key "test": 1$/, /add the key/),
    ]);
    await system.query(`INSERT INTO credentials (seed_sha256, integration, "grant") VALUES ('\\x01', 'pos', 'no JWE')`);
    expect(await wrong('keys')).toEqual([failed('SETTINGS_KEY', /^texts encrypted with the missing key "": 1$/)]);
    await system.query('DELETE FROM credentials');
  });
});

describe('doctor on the ordering platform', () => {
  const answering = (handle: Handler): Promise<object[]> =>
    serve(handle).then((url) => wrong('platform', { ORDER_API_URL: `${url}/graphql?key=hunter2` }));
  const answeringJson = (status: number, body: unknown): Promise<object[]> =>
    answering((_, response) => sendJson(response, status, body));

  it.each<[string, Handler, object]>([
    [
      'a redirect',
      (_, response) => void response.writeHead(301, { location: 'http://127.0.0.1:9/?token=hunter2' }).end(),
      failed('query', /redirects \(301\)/, /ORDER_API_URL/),
    ],
    ['without end', (_, response) => sendEndless(response), failed('query', /larger than 1048576 bytes/)],
    [
      'an HTML page',
      (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>hunter2</h1>'),
      failed('query', /answers 200 with text\/html, not GraphQL/, /GraphQL endpoint/),
    ],
  ])('reports that the platform answers %s', async (_, handle, finding) => {
    expect(await answering(handle)).toEqual([finding]);
  });

  const order = null;
  const errorOf = (code: string): object => ({ extensions: { code } });
  const invalidId = { message: 'Invalid ID: no base64.', path: ['order'], extensions: { exception: { code: 'X' } } };
  it.each<[string, unknown, object, number?]>([
    ['other JSON', [1], failed('query', /200 with application\/json, not GraphQL/)],
    ['an error without GraphQL', {}, failed('query', /answers 503/), 503],
    [
      'FORBIDDEN',
      { data: { order }, errors: [errorOf('FORBIDDEN')] },
      failed('query', /refuses us/, /ORDER_API_TOKEN/),
    ],
    [
      'an error about the made-up id',
      { errors: [errorOf('BAD_USER_INPUT')] },
      warning('query', /made-up order id invalid/),
    ],
    [
      'an error about the form of the made-up id',
      { data: { order }, errors: [invalidId] },
      warning('query', /accepted the query, .* made-up order id: Invalid ID: no base64$/, /platform check <orderId>/),
    ],
    [
      'that it refuses the query',
      { errors: [{ message: 'Cannot query field "x".' }] },
      failed('query', /refuses the query: Cannot query field "x"$/, /^the default query does not fit/),
    ],
    [
      'that it refuses the query, with null as data',
      { data: null, errors: [{ message: 'too deep' }] },
      failed('query', /refuses the query: too deep$/),
      400,
    ],
    [
      'data without the field "order"',
      { data: { purchase: null } },
      failed('query', /no field "order"/, /ORDER_MODULE/),
    ],
    [
      'with an order for the made-up id',
      { data: { order: { member: { name: 'hunter2' } } } },
      warning('query', /has an order for a made-up id/),
    ],
  ])('reports that the platform answers %s', async (_, body, finding, status = 200) => {
    expect(await answeringJson(status, body)).toEqual([finding]);
  });

  it('accepts the error NOT_FOUND for the made-up order id', async () => {
    const errors = [{ path: ['order'], ...errorOf('NOT_FOUND') }];
    expect(await answeringJson(200, { data: { order }, errors })).toEqual([]);
  });

  it('fails for a refused token, and for a query that does not fit the schema', async () => {
    expect(await wrong('platform', { ORDER_API_TOKEN: 'hunter2' })).toEqual([failed('query', /refuses us \(401\)/)]);
    const wrongQuery = join(folder, 'wrong-query.mjs');
    await writeFile(
      wrongQuery,
      `export const query = 'query Order($id: ID!) { order(id: $id) { orderNumber } }';
       export const toCanonicalOrder = () => null;`,
    );
    expect(await wrong('platform', { ORDER_MODULE: wrongQuery })).toEqual([
      failed('query', /refuses the query: Cannot query field "orderNumber" on type "Order"/, /query of ORDER_MODULE/),
      failed('schema', /Cannot query field "orderNumber" on type "Order"/, /query of ORDER_MODULE/),
    ]);
  });

  it('fails if the schema does not fit the default query, and names platform init', async () => {
    const schema = buildSchema(await readFile(join(EXAMPLE, 'schema.graphql'), 'utf8'));
    const url = await serve(async (request, response) => {
      const { query } = JSON.parse((await readBody(request)).toString()) as { query: string };
      sendJson(response, 200, await graphql({ schema, source: query }));
    });
    expect(await wrong('platform', { ORDER_API_URL: url })).toEqual([
      failed('query', /refuses the query: /, /platform init/),
      failed('schema', /Cannot query field "order" on type "Query"/, /platform init/),
    ]);
  });

  it('compares the query even with an invalid schema', async () => {
    const schema = buildSchema(await readFile(join(EXAMPLE, 'schema.graphql'), 'utf8'));
    const told = JSON.stringify(introspectionFromSchema(schema)).replaceAll('"houseNumber"', '"__reserved"');
    const url = await serve(async (request, response) => {
      const isSchema = (await readBody(request)).toString().includes('__schema');
      sendJson(response, 200, { data: isSchema ? (JSON.parse(told) as object) : { purchase: null } });
    });
    const change = { ORDER_API_URL: url, ORDER_MODULE: join(EXAMPLE, 'map-order.ts') };
    expect(await wrong('platform', change)).toEqual([
      failed('schema', /Cannot query field "houseNumber" on type "Address"/, /ORDER_MODULE/),
    ]);
  });

  it('sends the query and headers of ORDER_MODULE', async () => {
    const feast = await servePlatform();
    servers.push({ url: feast.url, stop: feast.stop } as HttpServer);
    const change = { ORDER_API_URL: feast.url, ORDER_API_TOKEN: API_KEY, ORDER_MODULE: join(EXAMPLE, 'map-order.ts') };
    expect(await wrong('environment', change)).toEqual([]);
    // An installation that only has a platform yet gets no other finding.
    const alone = await examine(change, ['platform']);
    expect(alone.map(({ check, state }) => `${check} ${state}`)).toEqual(['query ok', 'schema ok']);
    expect(await wrong('platform', { ...change, ORDER_API_TOKEN: 'x' })).toEqual([
      failed('query', /refuses us \(200\)/),
    ]);
    const throwing = join(folder, 'throwing.mjs');
    await writeFile(
      throwing,
      `export * from ${JSON.stringify(change.ORDER_MODULE)}; export const errorCode = () => { throw new Error('hunter2'); };`,
    );
    expect(await wrong('platform', { ...change, ORDER_API_TOKEN: 'x', ORDER_MODULE: throwing })).toEqual([
      failed('query', /refuses the query: which key\?/),
      warning('errorCode', /threw Error at throwing\.mjs:1/, /ORDER_MODULE/),
    ]);

    const giving = async (headers: string): Promise<unknown> => {
      const file = join(folder, `headers-${headers.length}.mjs`);
      await writeFile(file, `export * from ${JSON.stringify(change.ORDER_MODULE)}; export const headers = ${headers};`);
      return wrong('platform', { ...change, ORDER_MODULE: file });
    };
    expect(await giving(`async (token) => ({ 'x-api-key': token })`)).toEqual([]);
    expect(await giving(`async () => { throw new Error('hunter2'); }`)).toEqual([
      failed('headers', /^the mapper of ORDER_MODULE threw Error at headers-\d+\.mjs:1$/, /headers of ORDER_MODULE/),
    ]);

    const numbered = join(folder, 'numbered.mjs');
    const headers = `export const headers = (token) => ({ 'x-api-key': token });`;
    await writeFile(
      numbered,
      `export const query = 'query Q($code: String!) { purchase(code: $code) { number } }'; ${headers}
       export const variables = (id) => ({ code: String(BigInt(id)) }); export const toCanonicalOrder = () => null;`,
    );
    expect(await wrong('platform', { ...change, ORDER_MODULE: numbered })).toEqual([
      warning('query', /makes no variables for a made-up order id/, /platform check/),
      failed('schema', /Cannot query field "number" on type "Purchase"/, /ORDER_MODULE/),
    ]);
    expect(await wrong('environment', { ...change, ORDER_MODULE: '/nowhere.ts' })).toEqual([
      failed('ORDER_MODULE', /\/nowhere\.ts cannot be loaded/),
    ]);
  });

  it('tries fetchOrder of ORDER_MODULE with a made-up id', async () => {
    const module = join(folder, 'rest.mjs');
    const text = `export const toCanonicalOrder = ({ order }) => order;
export async function fetchOrder(id, { fetch }) {
  const answer = await fetch('/orders/' + id);
  if (answer.status === 404) return null;
  return { order: (await answer.json()).order.valueOf() };
}`;
    await writeFile(module, text);
    const rest = async (status: number, body: unknown = {}) => {
      const url = await serve((_request, response) => {
        response.setHeader('date', new Date(Date.now() + 60_000).toUTCString());
        sendJson(response, status, body, { location: '/' });
      });
      return { ORDER_API_URL: url, ORDER_MODULE: module };
    };
    const found = async (status: number, body?: unknown) => wrong('platform', await rest(status, body));
    const missing = await rest(404);
    const [fine] = await examine({ ...env, ...missing }, ['platform']);
    expect(fine).toMatchObject({
      check: 'fetchOrder',
      state: 'ok',
      found: expect.stringMatching(/ \(404\) answers: no such order\. A wrong path/),
    });
    expect(await wrong('clock', missing)).toEqual([warning('ordering platform', /^(59|60)\.\d s ahead of Postgres/)]);
    expect(await wrong('environment', missing)).toEqual([]);
    expect(await found(401)).toEqual([
      failed(
        'fetchOrder',
        / \(401\): the ordering platform denies us access/,
        /check ORDER_API_URL and ORDER_API_TOKEN/,
      ),
    ]);
    expect(await found(302)).toEqual([failed('fetchOrder', /redirect/, /ORDER_API_URL/)]);
    expect(await found(503)).toEqual([
      failed('fetchOrder', / \(503\): .* answered 503$/, /operators of the ordering platform/),
    ]);
    expect(await found(200, { order: 'hunter2' })).toEqual([
      warning('fetchOrder', /has an order for a made-up id$/, /by its id/),
    ]);
    expect(await found(200, {})).toEqual([warning('fetchOrder', /threw TypeError at rest\.mjs:5$/, /platform check/)]);
    expect(await wrong('platform', { ORDER_API_URL: nobody, ORDER_MODULE: module })).toEqual([
      failed('fetchOrder', /\(no answer\): .*no service listens there/, /ORDER_API_URL/),
    ]);
  });

  it('fails if no service listens at ORDER_API_URL, or if it does not answer in time', async () => {
    expect(await wrong('platform', { ORDER_API_URL: nobody })).toEqual([failed('query', /no service listens there/)]);
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => timeout(ms / 20));
    expect(await answering(() => {})).toEqual([failed('query', /no answer in 5 s/)]);
  });
});

describe('doctor on the topic', () => {
  it.each(['STATUS_TOPIC', 'KITCHEN_TOPIC'])(
    'fails if %s does not exist, and prints the command that creates it',
    async (name) => {
      expect(await wrong('topic', { [name]: 'elsewhere' })).toEqual([
        failed(name, /there is no "elsewhere"/, /gcloud pubsub topics create elsewhere/),
      ]);
    },
  );

  it('fails if the service may not publish to the topic, and publishes nothing to find out', async () => {
    const before = system.pubsub.published('order-status').length;
    system.pubsub.faults.permissions = [];
    expect(await wrong('topic')).toEqual([failed('STATUS_TOPIC', /may not publish/, /roles\/pubsub\.publisher/)]);
    system.pubsub.faults.permissions = ['pubsub.topics.publish'];
    expect(await wrong('topic')).toEqual([]);
    delete system.pubsub.faults.permissions;
    expect(system.pubsub.published('order-status')).toHaveLength(before);
  });

  it('does not look for Google credentials if an emulator is set', async () => {
    let asked = 0;
    const metadata = await serve((_, response) => {
      asked += 1;
      sendJson(response, 404, {});
    });
    const local = { ...env, METADATA_SERVER_DETECTION: '', GCE_METADATA_HOST: new URL(metadata).host };
    const { code, error } = await runCli(local, ['doctor', '--only', 'topic']);
    expect({ code, error, asked }).toEqual({ code: 0, error: '', asked: 0 });
  });

  it('fails if Pub/Sub cannot be reached, or if there are no valid credentials', async () => {
    const run = async (change: Record<string, string>): Promise<string> => {
      const { code, out, error } = await runCli({ ...env, ...change }, ['doctor', '--only', 'topic']);
      expect(code).toBe(1);
      expect(error).not.toMatch(/^ +at /m);
      return out;
    };
    expect(await run({ PUBSUB_EMULATOR_HOST: '127.0.0.1:9' })).toMatch(/cannot be reached/);
    expect(await run({ PUBSUB_EMULATOR_HOST: '', GOOGLE_APPLICATION_CREDENTIALS: '/nowhere' })).toMatch(
      /Google does not accept our credentials/,
    );
  });
});

describe('doctor on the spill', () => {
  const change = { SPILL_TOPIC: 'spill' };
  /** A subscription with nothing wrong. */
  const fine: CreateSubscriptionOptions = {
    ackDeadlineSeconds: 60,
    messageRetentionDuration: 7 * 86_400,
    deadLetterPolicy: { deadLetterTopic: 'projects/test-project/topics/spill-dead', maxDeliveryAttempts: 100 },
  };
  let pubsub: PubSub;
  let made = 0;
  beforeAll(async () => {
    pubsub = new PubSub({ projectId: 'test-project' });
    await Promise.all(['spill', 'spill-dead'].map((name) => pubsub.createTopic(name)));
    await pubsub.createSubscription('spill', 'spill-drain', fine);
  });
  afterAll(() => pubsub.close());

  /** What is said of a subscription that is made otherwise. */
  async function wrongWith(otherwise: CreateSubscriptionOptions, of?: string): Promise<Omit<Finding, 'part'>[]> {
    made += 1;
    const SPILL_TOPIC = `spill-${made}`;
    await pubsub.createTopic(SPILL_TOPIC);
    await pubsub.createSubscription(of ?? SPILL_TOPIC, `${SPILL_TOPIC}-drain`, { ...fine, ...otherwise });
    return wrong('spill', { SPILL_TOPIC });
  }

  it('says what happens during an outage if SPILL_TOPIC is unset', async () => {
    expect(await examine(env, ['spill'])).toEqual([
      {
        part: 'spill',
        check: 'SPILL_TOPIC',
        state: 'ok',
        found: 'unset: while Postgres is away, webhooks are answered 500',
      },
    ]);
  });

  it('fails if topic and subscription do not exist, and prints the commands that create them', async () => {
    expect(await wrong('spill', change)).toEqual([]);
    expect(await wrong('spill', { SPILL_TOPIC: 'no-spill' })).toEqual([
      failed('SPILL_TOPIC', /there is no "no-spill"/, /gcloud pubsub topics create no-spill/),
      failed(
        'spill subscription',
        /there is no "no-spill-drain"/,
        /subscriptions create no-spill-drain --project test-project --topic no-spill/,
      ),
    ]);
  });

  it('fails without the rights to publish to the topic and to read the subscription', async () => {
    const { faults } = system.pubsub;
    faults.permissions = [];
    expect(await wrong('spill', change)).toEqual([
      failed('SPILL_TOPIC', /may not publish/, /roles\/pubsub\.publisher/),
      failed('spill subscription', /may not read/, /roles\/pubsub\.subscriber/),
    ]);
    faults.permissions = ['pubsub.topics.publish', 'pubsub.subscriptions.consume'];
    expect(await wrong('spill', change)).toEqual([
      {
        check: 'spill subscription',
        state: 'skipped',
        found: expect.stringMatching(/roles\/pubsub\.viewer is missing, so its settings were not checked/),
      },
    ]);
    faults.permissions = [...faults.permissions, 'pubsub.subscriptions.get'];
    expect(await wrong('spill', change)).toEqual([]);
    delete faults.permissions;
    expect(system.pubsub.published('spill')).toEqual([]);
  });

  const fewAttempts = { ...fine.deadLetterPolicy, maxDeliveryAttempts: 5 };
  it.each<[string, CreateSubscriptionOptions, state: string, found: RegExp, toDo?: RegExp]>([
    ['a filter', { filter: 'attributes.club = "1"' }, 'failed', /has a filter/, /another subscription/],
    [
      'a push endpoint',
      { pushConfig: { pushEndpoint: 'http://127.0.0.1:9/' } },
      'failed',
      /pushes to an/,
      /--push-endpoint=/,
    ],
    ['a BigQuery table', { bigqueryConfig: { table: 'p.d.t' } }, 'failed', /pushes to an endpoint/],
    ['too short a deadline', { ackDeadlineSeconds: 10 }, 'warning', /ack deadline is 10 s/, /--ack-deadline 60/],
    ['too long a deadline', { ackDeadlineSeconds: 600 }, 'warning', /ack deadline is 600 s/],
    [
      'too short a retention',
      { messageRetentionDuration: 86_400 },
      'warning',
      /for 86400 s/,
      /--message-retention-duration 7d/,
    ],
    ['no dead letter topic', { deadLetterPolicy: null }, 'warning', /no dead-letter topic/, /--dead-letter-topic/],
    [
      'too few attempts',
      { deadLetterPolicy: fewAttempts },
      'warning',
      /after 5 deliveries/,
      /--max-delivery-attempts 100/,
    ],
  ])('reports a subscription with %s', async (_, otherwise, state, found, toDo) => {
    expect(await wrongWith(otherwise)).toEqual([{ ...failed('spill subscription', found, toDo), state }]);
  });

  it('fails if the subscription belongs to another topic', async () => {
    const found = /belongs to projects\/test-project\/topics\/order-status/;
    expect(await wrongWith({}, 'order-status')).toEqual([
      failed('spill subscription', found, /another subscription on "spill-\d+"/),
    ]);
  });
});

describe('doctor on pushes', () => {
  it.each<[string, Handler, RegExp]>([
    ['JSON that is not a key set', (_, response) => sendJson(response, 200, {}), /200 with other JSON, not a key set/],
    ['404', (_, response) => sendJson(response, 404, { keys: [] }), /404 with other JSON/],
    [
      'no key for RS256',
      (_, response) => sendJson(response, 200, { keys: [{ kty: 'EC' }, { kty: 'RSA', use: 'enc' }] }),
      /keys for RS256: none of 2$/,
    ],
  ])('fails if PUSH_JWKS_URL answers %s', async (_, handle, found) => {
    expect(await wrong('push', { PUSH_JWKS_URL: await serve(handle) })).toEqual([failed('PUSH_JWKS_URL', found)]);
  });

  it('fails if nothing listens at PUSH_JWKS_URL, and warns if PUSH_AUTH is off', async () => {
    expect(await wrong('push', { PUSH_JWKS_URL: nobody })).toEqual([
      failed('PUSH_JWKS_URL', /no service listens there/),
    ]);
    expect(await wrong('push', { PUSH_AUTH: 'off' })).toEqual([warning('PUSH_JWKS_URL', /PUSH_AUTH is "off"/)]);
  });

  it('does not ask for keys of pushes if nothing is pushed', async () => {
    const change = { GOOGLE_CLOUD_PROJECT: '', PUSH_AUDIENCE: '', PUSH_SERVICE_ACCOUNT: '', PUSH_JWKS_URL: nobody };
    expect(await wrong('push', change)).toEqual([]);
  });
});

describe('doctor on live messages', () => {
  const url = 'https://orders.example.com/?key=hunter2';
  const own = { STATUS_WEBHOOK_URL: url, STATUS_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 's').toString('base64')}` };

  it('names the ways in and out that are on', async () => {
    const waysOf = async (change: Record<string, string>): Promise<string | undefined> =>
      (await examine({ ...env, ...change }, ['live'])).find(({ check }) => check === 'ways')?.found;
    expect(await waysOf({})).toMatch(
      /^signals come by Pub\/Sub pushes and POST \/signal; statuses leave by the topic order/,
    );
    const none = { GOOGLE_CLOUD_PROJECT: '', PUSH_AUDIENCE: '', PUSH_SERVICE_ACCOUNT: '', SPILL_TOPIC: '' };
    expect(await waysOf({ ...own, ...none })).toMatch(
      /by POST \/signal; statuses leave by STATUS_WEBHOOK_URL; there is no spill: while Postgres is away, a webhook gets 500/,
    );
  });

  it.each(['STATUS_WEBHOOK_URL', 'ATTENTION_WEBHOOK_URL'] as const)('fails if %s may not be called', async (name) => {
    const change = { [name]: 'http://10.0.0.1/?key=hunter2' };
    const part = name === 'STATUS_WEBHOOK_URL' ? 'live' : 'notify';
    expect(await wrong(part, change)).toEqual([
      failed(name, /^10\.0\.0\.1 must not be called: private/, /ALLOW_PRIVATE_HOSTS/),
    ]);
    expect(await wrong(part, { ...change, ALLOW_PRIVATE_HOSTS: '10.0.0.0/8' })).toEqual([]);
  });

  it('warns if nobody can signal an order, because nothing pushes and no token is valid', async () => {
    const none = { ...own, GOOGLE_CLOUD_PROJECT: '', PUSH_AUDIENCE: '', PUSH_SERVICE_ACCOUNT: '', SPILL_TOPIC: '' };
    expect(await wrong('live', none)).toEqual([
      warning('signal tokens', /no valid one/, /^expediter signal-token issue/),
    ]);
    const keys = readConfig(system.env).SETTINGS_KEY;
    const { tokenId } = await issueSignalToken(system.pool, keys, { kind: 'plain', secrets: [] });
    expect(await wrong('live', none)).toEqual([]);
    await revokeSignalToken(system.pool, tokenId);
    expect(await wrong('live', none)).toHaveLength(1);
  });

  it('warns if signals came, but no order was ever read from the platform', async () => {
    await system.query(`INSERT INTO placements (service_order_id, deadline_at) VALUES ('unread', now())`);
    expect(await wrong('live')).toEqual([warning('orders', /no order was read/, /^expediter platform check/)]);
    await system.query(`DELETE FROM placements WHERE service_order_id = 'unread'`);
    expect(await wrong('live')).toEqual([]);
  });

  it('warns if the receiver fails, and fails with what to do if it is stopped', async () => {
    expect(await wrong('live', own)).toEqual([]);
    const endpoint = statusEndpoint({ pool: system.pool, url, log: { error() {} } });
    await endpoint.failed(new NotSent('the receiver answered 503'));
    expect(await wrong('live', own)).toEqual([
      warning(
        'receiver',
        /^it fails since 20\S+Z?: the receiver answered 503; messages that wait: 0$/,
        /after three days/,
      ),
    ]);
    await endpoint.failed(new NotSent('the receiver says that its URL is gone (410)', { isFinal: true }));
    expect(await wrong('live', own)).toEqual([
      failed('receiver', /^it is stopped since 20\S+: the receiver says .* \(410\); /, /: expediter live resume$/),
    ]);
    // Another URL has no past.
    expect(await wrong('live', { ...own, STATUS_WEBHOOK_URL: 'https://orders.example.com/new' })).toEqual([]);
    await resumeEndpoint(system.pool);
    expect(await wrong('live', own)).toEqual([]);
  });
});

describe('doctor on follow tokens', () => {
  it.each<[string, object[], RegExp]>([
    ['no keys at all', [], /keys for ES256, EdDSA, Ed25519, RS256: none of 0$/],
    [
      'no key for a supported algorithm',
      [{ kty: 'oct' }, { kty: 'EC', crv: 'P-384' }, { kty: 'RSA', use: 'enc' }],
      /none of 3$/,
    ],
  ])('fails if FOLLOW_TOKEN_KEYS has %s', async (_, keys, found) => {
    const FOLLOW_TOKEN_KEYS = await serve((_request, response) => sendJson(response, 200, { keys }));
    expect(await wrong('follow', { FOLLOW_TOKEN_KEYS })).toEqual([failed('FOLLOW_TOKEN_KEYS', found)]);
  });

  it('accepts keys by URL, keys in the variable, and FOLLOW_TOKEN_KEYS unset', async () => {
    const keys = { keys: [{ kty: 'oct', k: 'x'.repeat(43) }] };
    const FOLLOW_TOKEN_KEYS = await serve((_, response) =>
      sendJson(response, 200, { keys: [{ kty: 'EC', crv: 'P-256' }] }),
    );
    expect(await wrong('follow', { FOLLOW_TOKEN_KEYS })).toEqual([]);
    expect(await wrong('follow', { FOLLOW_TOKEN_KEYS: JSON.stringify(keys) })).toEqual([]);
    expect(await wrong('follow')).toEqual([]);
  });

  it('fails if nothing listens at FOLLOW_TOKEN_KEYS, and warns if the URL is not https', async () => {
    const check = 'FOLLOW_TOKEN_KEYS';
    expect(await wrong('follow', { [check]: nobody })).toEqual([failed(check, /no service listens there/)]);
    expect(await wrong('follow', { [check]: 'http://platform.invalid/jwks' })).toEqual([
      failed(check, /name cannot be resolved/),
      warning(check, /not https/),
    ]);
  });
});

describe('doctor on messages to restaurants', () => {
  it('fails for a mail server that does not answer, and for a gateway with a private address', async () => {
    const mail = await startMailServer();
    servers.push(mail);
    const set = { SMTP_URL: mail.url, NOTIFY_WEBHOOK_URL: 'https://sms.example.com' };
    expect(await wrong('notify', set)).toEqual([]);
    const gone = `smtp://127.0.0.1:${await freePort()}`;
    expect(await wrong('notify', { SMTP_URL: gone, NOTIFY_WEBHOOK_URL: 'http://10.0.0.1/?key=hunter2' })).toEqual([
      failed('SMTP_URL', /^the mail server could not be used/, /SMTP_URL/),
      failed('NOTIFY_WEBHOOK_URL', /10\.0\.0\.1 must not be called: private/, /ALLOW_PRIVATE_HOSTS/),
    ]);
  });

  it('warns if a contact wants e-mail and SMTP_URL is unset', async () => {
    const contacts = (value: object[]): Promise<unknown> =>
      system.query(`UPDATE locations SET contacts = $1`, [JSON.stringify(value)]);
    await contacts([{ email: 'kitchen@nord.example', via: 'email' }]);
    expect(await wrong('notify')).toEqual([warning('contacts', /by email at /, /set SMTP_URL/)]);
    await contacts([]);
    expect(await wrong('notify')).toEqual([]);
  });
});

describe('doctor on PUBLIC_URL', () => {
  it('fails if PUBLIC_URL leads to another service or none, and warns if the service is starting', async () => {
    const page = await serve(
      (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('hello'),
    );
    expect(await wrong('public-url', { PUBLIC_URL: page })).toEqual([
      failed('readyz', /text\/html: this is another service/),
    ]);
    expect(await wrong('public-url', { PUBLIC_URL: nobody })).toEqual([failed('readyz', /no service listens/)]);
    const starting = await serve((_, response) => sendJson(response, 503, { ready: false, database: 'down' }));
    expect(await wrong('public-url', { PUBLIC_URL: starting })).toEqual([warning('readyz', /starting or stopping/)]);
  });

  it("fails if PUBLIC_URL leads to the operators' routes although OPERATOR_PORT is set", async () => {
    const change = { PUBLIC_URL: system.operatorUrls[0] ?? '' };
    expect(await wrong('public-url', change)).toEqual([
      failed(
        'operator routes',
        /answers at \/metrics, \/v1\/orders, \/openapi.json, \/console\/session$/,
        /OPERATOR_PORT/,
      ),
    ]);
    expect(await wrong('public-url', { ...change, OPERATOR_PORT: '' })).toEqual([]);
  });

  it('warns of a proxy that is not in TRUSTED_PROXIES', async () => {
    const told = warning('TRUSTED_PROXIES', /a proxy is in front/, /who-is-in-front/);
    const change = { PUBLIC_URL: 'https://expediter.invalid' };
    const unreachable = failed('readyz', /cannot be resolved/);
    expect(await wrong('public-url', change)).toEqual([told, unreachable]);
    expect(await wrong('public-url', { ...change, TRUSTED_PROXIES: '10.0.0.1' })).toEqual([unreachable]);
    const operator = await askOperator(system.operatorUrls[0] ?? '');
    const ask = async (): Promise<unknown[]> => {
      const { body } = await operator.post('/doctor', { only: ['public-url'] });
      return (body['findings'] as Finding[]).filter(({ check }) => check === 'TRUSTED_PROXIES');
    };
    expect(await ask()).toEqual([]);
    for (const url of [...system.urls, ...system.operatorUrls, ...system.urls])
      await fetch(`${url}/healthz`, { headers: { 'x-forwarded-for': '203.0.113.9' } });
    expect(await ask()).toEqual([{ part: 'public-url', ...told }]);
    expect(system.logged.filter((line) => line.includes('a proxy that is not trusted'))).toHaveLength(1);
  });

  it('warns if PUBLIC_URL is not https', async () => {
    expect(await wrong('public-url', { PUBLIC_URL: 'http://expediter.invalid' })).toEqual([
      warning('PUBLIC_URL', /not https/),
      failed('readyz', /cannot be resolved/),
    ]);
  });
});

describe('doctor on operators', () => {
  const CONSOLE_URL = 'https://console.example.com';
  const issuerSaying = async (change: object): Promise<string> => {
    const url = await serve((request, response) =>
      sendJson(response, 200, {
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        jwks_uri: `${url}/keys`,
        response_types_supported: ['code'],
        ...(request.url === '/keys' ? { keys: [{ kty: 'RSA', alg: 'RS256' }] } : change),
      }),
    );
    return url;
  };
  const withoutToken = { OPERATOR_TOKEN: '', OPERATOR_PORT: '8081' };
  const noAdmins = failed('admins', /there is no admin/, /operator token issue .* --role admin/);
  const noGrants = warning('grants', /no one can sign in/, /operator grant add .* --role admin/);

  it('accepts a right OIDC issuer, and prints the callback to register', async () => {
    const OIDC_ISSUER = await issuerSaying({});
    expect(await wrong('operators', { OIDC_ISSUER, CONSOLE_URL })).toEqual([noGrants]);
    const found = await examine({ ...env, OIDC_ISSUER, CONSOLE_URL }, ['operators']);
    expect(found).toContainEqual(
      expect.objectContaining({ found: expect.stringContaining(`${CONSOLE_URL}/console/session/callback`) }),
    );
    expect(await wrong('operators')).toEqual([]);
  });

  it.each<[string, object, RegExp]>([
    ['names another issuer', { issuer: 'https://accounts.google.com' }, /another issuer/],
    ['lacks the code flow', { response_types_supported: ['id_token'] }, /not offer the authorization code flow/],
    ['lacks PKCE', { code_challenge_methods_supported: ['plain'] }, /not offer PKCE with S256/],
    ['is not an OpenID provider', { jwks_uri: undefined }, /not as an OpenID issuer/],
  ])('fails if the issuer %s', async (_what, change, found) => {
    const OIDC_ISSUER = await issuerSaying(change);
    expect(await wrong('operators', { OIDC_ISSUER, CONSOLE_URL })).toContainEqual(failed('OIDC_ISSUER', found));
  });

  it('fails if nothing listens at OIDC_ISSUER, and if CONSOLE_URL is not https', async () => {
    const change = { OIDC_ISSUER: nobody, CONSOLE_URL: 'http://console.example.com' };
    expect(await wrong('operators', change)).toEqual([
      failed('OIDC_ISSUER', /no service listens/),
      failed('CONSOLE_URL', /not https/),
      noGrants,
    ]);
  });

  it('warns if no person has the role admin, and if OPERATOR_TOKEN is refused because a person has that role', async () => {
    const change = { OIDC_ISSUER: await issuerSaying({}), CONSOLE_URL };
    const grant = (roles: string, locations: string): Promise<unknown> =>
      system.query(
        `INSERT INTO operator_grants (grant_id, email, roles, locations)
         VALUES (gen_random_uuid(), 'ada@example.com', $1, $2)`,
        [roles, locations],
      );
    try {
      await grant('{viewer}', '{club-1}');
      expect(await wrong('operators', change)).toEqual([warning('grants', /no grant has the role admin/)]);
      await system.query(`UPDATE operator_grants SET roles = '{admin}', locations = NULL`);
      expect(await wrong('operators', change)).toEqual([warning('OPERATOR_TOKEN', /it is refused/)]);
      expect(await wrong('operators', { ...change, OPERATOR_TOKEN: '' })).toEqual([]);
      // Nobody signs in for it without OIDC.
      const inVain = warning('grants', /^1 to addresses.* nobody can sign in by address/, /operator token issue/);
      expect(await wrong('operators', withoutToken)).toEqual([noAdmins, inVain]);
      expect(await wrong('operators')).toEqual([inVain]);
    } finally {
      await system.query('DELETE FROM operator_grants');
    }
  });

  it('fails without OPERATOR_TOKEN unless a valid token has the role admin at all locations', async () => {
    const change = withoutToken;
    expect(await wrong('operators', change)).toEqual([noAdmins]);
    expect(await wrong('operators', { ...change, OPERATOR_PORT: '' })).toEqual([]);
    try {
      await system.query(`INSERT INTO operator_tokens (token_id, sha256, name, roles, locations)
                          VALUES (gen_random_uuid(), '\\x00', 'ada', '{admin}', '{club-1}')`);
      expect(await wrong('operators', change)).toEqual([noAdmins]);
      await system.query('UPDATE operator_tokens SET locations = NULL');
      expect(await wrong('operators', change)).toEqual([]);
      expect(await wrong('operators')).toEqual([warning('OPERATOR_TOKEN', /although there are named operators/)]);
      await system.query('UPDATE operator_tokens SET expires_at = now()');
      expect(await wrong('operators', change)).toEqual([noAdmins]);
    } finally {
      await system.query('DELETE FROM operator_tokens');
    }
  });
});

describe('doctor on the locations', () => {
  it('reports locations that their POS refuses, that have no webhook token, or whose token expires soon', async () => {
    await system.addLocation('club-2', { ...pos.settings, accessToken: 'hunter2' }, 'hubrise');
    await system.addLocation('club-3', { ordersUrl: 'http://127.0.0.1:9/' });
    const keys = parseSettingsKeys(String(env['SETTINGS_KEY']));
    const unsigned = await seal(keys, { ordersUrl: 'http://127.0.0.1:9/' }, 'locations/club-3');
    await system.query(`UPDATE locations SET settings = $1 WHERE location_id = 'club-3'`, [unsigned]);
    const fromBefore = warning('club-3', /settings would be refused today: secret: is missing/, /location change/);
    await issueToken(system.pool, { locationId: 'club-3', expiresAt: new Date(Date.now() + 3 * 86_400_000) });
    expect(await wrong('locations')).toEqual([
      failed('club-2', /HubRise refuses accessToken/, /location change/),
      failed('club-2', /has no valid token/, /expediter token issue --location club-2/),
      fromBefore,
      warning('club-3', /last token expires on \d{4}-\d\d-\d\d/, /token issue/),
    ]);
    await issueToken(system.pool, { locationId: 'club-3', expiresAt: new Date(Date.now() + 90 * 86_400_000) });
    await issueToken(system.pool, { locationId: 'club-2' });
    await system.query(`UPDATE locations SET paused_at = now() WHERE location_id = 'club-2'`);
    expect(await wrong('locations')).toEqual([warning('club-2', /is paused: HubRise refuses/), fromBefore]);
    await system.query(`DELETE FROM locations WHERE location_id <> 'club-1'`);
  });

  it('judges a location with closed tills as ok, and says that the tills are closed', async () => {
    const closed = await startLightspeedK();
    servers.push(closed);
    closed.tills.salesPeriod = 'CLOSED';
    await system.addLocation('closed', closed.settings, 'lightspeed-k');
    expect(await runCli(env, ['provider', 'connect', 'closed'])).toMatchObject({ code: 0 });
    const findings = await examine(env, ['locations']);
    await system.query(`DELETE FROM locations WHERE location_id = 'closed'`);
    const found = 'reaches its POS; no till takes online orders now: the sales period is closed';
    expect(findings).toContainEqual({ part: 'locations', check: 'closed', state: 'ok', found });
  });

  it('fails for a location whose settings cannot be decrypted', async () => {
    const other = `other:${Buffer.alloc(32, 9).toString('base64')}`;
    expect(await wrong('locations', { SETTINGS_KEY: other })).toEqual([
      failed('club-1', /SETTINGS_KEY has no key with id "test"/, /SETTINGS_KEY/),
    ]);
  });

  it('warns if there are no locations', async () => {
    const DATABASE_URL = asService(await createDatabase());
    expect(await wrong('locations', { DATABASE_URL })).toEqual([
      warning('any', /there are no locations/, /location put/),
    ]);
  });

  it('fails for a location that does not answer in 5 s, and skips locations for which no time is left', async () => {
    const url = await serve(() => {});
    for (let n = 0; n < 9; n++) {
      await system.addLocation(`hangs-${n}`, { ...pos.settings, baseUrl: url }, 'hubrise');
      await issueToken(system.pool, { locationId: `hangs-${n}` });
    }
    const now = performance.now.bind(performance);
    const began = now();
    vi.spyOn(performance, 'now').mockImplementation(() => now() + (now() - began > 2_000 ? 25_000 : 0));
    const findings = await wrong('locations');
    expect(findings).toContainEqual(failed('hangs-0', /no answer in 5 s/));
    expect(findings.filter((each) => each.state === 'skipped').length).toBeGreaterThanOrEqual(1);
    expect(findings).toContainEqual({
      check: 'hangs-8',
      state: 'skipped',
      found: expect.stringMatching(/--only locations/),
    });
    await system.query(`DELETE FROM locations WHERE location_id <> 'club-1'`);
  });
});
