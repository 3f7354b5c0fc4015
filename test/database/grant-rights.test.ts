import { randomUUID } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { examine } from '../../src/diagnostics/doctor.ts';
import { FUNCTIONS, RIGHTS } from '../../src/database/grant-rights.ts';
import { createEmptyDatabase } from '../../world/postgres/create-database.ts';
import { queryOnce as query } from '../support/query-once.ts';
import { runCli } from '../support/run-cli.ts';

const CORE = fileURLToPath(new URL('../../src', import.meta.url));
const PASSWORD = 'hunter2';

/** Roles are the whole server's, so they are named for this run. */
const id = randomUUID().slice(0, 8);
const [owner, service, other, single] = [`owner-${id}`, `service-${id}`, `other-${id}`, `single-${id}`];
let url: string;
const as = (username: string, password = ''): string => Object.assign(new URL(url), { username, password }).href;
const migrateFor = (serviceUrl: string): ReturnType<typeof runCli> =>
  runCli({ OWNER_DATABASE_URL: as(owner), DATABASE_URL: serviceUrl }, ['migrate']);
const migrate = (role: string): ReturnType<typeof runCli> => migrateFor(as(role, PASSWORD));
/** Runs `migrate` with a DATABASE_URL at which nobody listens. */
const unreachable = (): ReturnType<typeof runCli> =>
  migrateFor(`postgres://${service}@127.0.0.1:1/${new URL(url).pathname}`);
let setPath: string;

beforeAll(async () => {
  url = await createEmptyDatabase();
  // As the owner of a database is where nobody is a superuser.
  await query(url, `CREATE ROLE "${owner}" LOGIN; CREATE ROLE "${other}" LOGIN`);
  const name = new URL(url).pathname.slice(1);
  setPath = `ALTER ROLE "${service}" IN DATABASE ${name} SET search_path = expediter`;
  await query(url, `ALTER DATABASE ${name} OWNER TO "${owner}"`);
  await query(url, `ALTER ROLE postgres IN DATABASE ${name} SET search_path = expediter`);
});
afterAll(async () => {
  if (url === undefined) return;
  // What they own, and what they were given, is in this database alone.
  await query(url, `DROP OWNED BY "${owner}", "${service}", "${other}", "${single}" CASCADE`);
  await query(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} OWNER TO postgres`);
  await query(inject('postgresUrl'), `DROP ROLE "${owner}", "${service}", "${other}", "${single}"`);
});

describe('expediter migrate', () => {
  it('fails and names the role to create if the owner may not create roles', async () => {
    expect(await migrate(service)).toEqual({
      code: 1,
      out: '',
      error: expect.stringMatching(
        new RegExp(`^error: the role "${service}" of DATABASE_URL does not exist, .*CREATE ROLE "${service}" LOGIN`),
      ),
    });
  });

  it('creates the role of DATABASE_URL without sending its password, with exactly the rights that the service needs', async () => {
    await query(url, `ALTER ROLE "${owner}" CREATEROLE`);
    expect(await migrate(service)).toEqual({ code: 0, out: 'the schema is up to date\n', error: '' });
    const [kept] = await query(url, 'SELECT rolpassword FROM pg_authid WHERE rolname = $1', [service]);
    expect(kept?.['rolpassword']).toMatch(/^SCRAM-SHA-256\$4096:[\w+/=]{24}\$[\w+/=]{44}:[\w+/=]{44}$/);
    expect(await query(url, 'SELECT what, days FROM kept_days ORDER BY what')).toEqual([
      { what: 'audit', days: 400 },
      { what: 'past_orders', days: 369 },
      { what: 'webhooks', days: 14 },
    ]);
    const findings = await examine({ DATABASE_URL: as(service) }, ['database']);
    // All tests' Postgres goes without fsync.
    expect(findings.filter(({ state, check }) => state !== 'ok' && check !== 'writing')).toEqual([]);
    expect(findings.map(({ check }) => check)).toEqual(expect.arrayContaining(['privileges', 'least privilege']));
  });

  it('needs only one connection as the owner', async () => {
    await query(url, `CREATE ROLE "${single}" LOGIN CONNECTION LIMIT 1 IN ROLE "${owner}"`);
    expect(await runCli({ OWNER_DATABASE_URL: as(single), DATABASE_URL: as(service, PASSWORD) }, ['migrate'])).toEqual({
      code: 0,
      out: 'the schema is up to date\n',
      error: '',
    });
  });

  it('grants the role CONNECT, or names the command for an administrator', async () => {
    const database = new URL(url).pathname.slice(1);
    await query(url, `REVOKE ALL ON DATABASE ${database} FROM PUBLIC`);
    expect(await query(as(owner), 'SELECT')).toHaveLength(1);
    expect(await migrate(service)).toMatchObject({ code: 0, error: '' });
    expect(await query(as(service), 'SELECT')).toHaveLength(1);
    await query(
      url,
      `REVOKE ALL ON DATABASE ${database} FROM "${service}"; ALTER DATABASE ${database} OWNER TO postgres;
                      GRANT CONNECT ON DATABASE ${database} TO "${owner}"`,
    );
    expect(await migrate(service)).toMatchObject({
      code: 1,
      error: expect.stringContaining(`migrate again: GRANT CONNECT ON DATABASE ${database} TO "${service}"`),
    });
    await query(
      url,
      `ALTER DATABASE ${database} OWNER TO "${owner}"; GRANT CONNECT, TEMPORARY ON DATABASE ${database} TO PUBLIC`,
    );
  });

  it('fails and names the owner of the schema if OWNER_DATABASE_URL names another role', async () => {
    const database = new URL(url).pathname;
    const refused = await runCli(
      { OWNER_DATABASE_URL: as(other), DATABASE_URL: `postgres://${service}@127.0.0.1:1${database}` },
      ['migrate'],
    );
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.error).toContain(
      `the role "${other}" may not migrate: let OWNER_DATABASE_URL name the role that owns the schema expediter ("${owner}")`,
    );
  });

  it('sets the search_path of both roles to the schema expediter', async () => {
    for (const role of [owner, service]) {
      expect(await query(as(role), 'SHOW search_path')).toEqual([{ search_path: 'expediter' }]);
    }
    const made = `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
                  UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace`;
    expect(await query(url, made)).toEqual([]);
  });

  it("succeeds without a connection as the service if the owner may set the search_path of the service's role", async () => {
    await query(url, setPath.replace(/SET (.*) = .*/, 'RESET $1'));
    expect(await unreachable()).toEqual({
      code: 0,
      out: 'the schema is up to date\n',
      error: expect.stringMatching(/^warning: it is not known whether the service can use the schema: .*ECONNREFUSED/),
    });
    expect(await query(as(service), 'SHOW search_path')).toEqual([{ search_path: 'expediter' }]);
    // It does not ask again for what is set.
    await query(url, `ALTER ROLE "${owner}" NOCREATEROLE`);
    expect((await unreachable()).code).toBe(0);
  });

  it("lets the service's role set its own search_path, or names the command for an administrator", async () => {
    await query(url, setPath.replace(/SET (.*) = .*/, 'RESET $1'));
    expect(await unreachable()).toEqual({
      code: 1,
      out: '',
      error: expect.stringMatching(
        /OWNER_DATABASE_URL may not set them .* neither could the role itself .* migrate again: ALTER ROLE/,
      ),
    });
    await query(url, `GRANT "${other}" TO "${service}"; ALTER ROLE "${service}" SET role = "${other}"`);
    expect(await migrate(service)).toEqual({ code: 1, out: '', error: expect.stringContaining(`again: ${setPath}\n`) });
    await query(url, `ALTER ROLE "${service}" RESET role; REVOKE "${other}" FROM "${service}"`);
    expect((await migrate(service)).code).toBe(0);
    expect(await query(as(service), 'SHOW search_path')).toEqual([{ search_path: 'expediter' }]);
  });

  it("fails if the service's database has no tables", async () => {
    const empty = Object.assign(new URL(inject('postgresUrl')), { username: service }).href;
    const failed = { code: 1, error: expect.stringMatching(/^error: The schema lacks 0001/) };
    expect(await migrateFor(empty)).toMatchObject(failed);
  });

  it('grants an existing role the missing rights at its next run', async () => {
    await query(url, `REVOKE INSERT ON orders FROM "${service}"`);
    expect((await migrate(service)).code).toBe(0);
    expect(await query(as(service), `SELECT has_table_privilege('orders', 'INSERT') AS may`)).toEqual([{ may: true }]);
  });

  it('revokes rights that an earlier version granted and that are too wide', async () => {
    await query(url, `GRANT INSERT, UPDATE ON audit, audit_outcomes, status_events TO "${service}"`);
    expect((await migrate(service)).code).toBe(0);
    const [may] = await query(
      as(service),
      `SELECT has_table_privilege('audit', 'INSERT') AS ids, has_table_privilege('audit_outcomes', 'INSERT, UPDATE') AS ends,
              has_table_privilege('status_events', 'UPDATE') AS history,
              has_column_privilege('audit', 'action', 'INSERT') AS actions`,
    );
    expect(may).toEqual({ ids: false, ends: false, history: false, actions: true });
  });

  it('fails without OWNER_DATABASE_URL if a migration is missing, and names the variable', async () => {
    const last = (await query(url, 'SELECT max(name) AS name FROM schema_migrations'))[0]?.['name'];
    expect((await runCli({ DATABASE_URL: as(service) }, ['migrate'])).code).toBe(0);
    await query(url, 'DELETE FROM schema_migrations WHERE name = $1', [last]);
    expect(await runCli({ DATABASE_URL: as(service) }, ['migrate'])).toMatchObject({
      code: 1,
      error: expect.stringMatching(/^error: the role "service-\w+" may not migrate: let OWNER_DATABASE_URL name/),
    });
    await query(url, 'INSERT INTO schema_migrations (name, run_on) VALUES ($1, now())', [last]);
  });
});

describe("the service's role", () => {
  it.each([
    ['ALTER TABLE orders ADD COLUMN mine text', /must be owner/],
    ['DROP TABLE outbox', /must be owner/],
    ['CREATE TABLE mine ()', /permission denied for schema/],
    ['TRUNCATE orders', /permission denied for table orders/],
    ['DELETE FROM audit', /permission denied for table audit/],
    [`UPDATE audit SET actor_name = 'nobody'`, /permission denied for table audit/],
    ['TRUNCATE audit', /permission denied for table audit/],
    ['DELETE FROM audit_outcomes', /permission denied for table audit_outcomes/],
    [`UPDATE audit_outcomes SET outcome = 'done'`, /permission denied for table audit_outcomes/],
    // With an id far ahead, `since` would find nothing.
    [
      `INSERT INTO audit (audit_id, actor_kind, actor_id, actor_name, action) OVERRIDING SYSTEM VALUE
       VALUES (9e18, 'person', 'ada', 'ada', 'replay')`,
      /permission denied for table audit/,
    ],
    [
      `INSERT INTO audit (at, actor_kind, actor_id, actor_name, action) VALUES ('2020-01-01', 'person', 'ada', 'ada', 'x')`,
      /permission denied for table audit/,
    ],
    [`INSERT INTO audit_outcomes (audit_id, outcome) VALUES (9e18, 'refused')`, /audit_outcomes_audit_id_fkey/],
    [
      `INSERT INTO audit_outcomes (audit_id, at, outcome) VALUES (1, '2020-01-01', 'done')`,
      /permission denied for table audit_outcomes/,
    ],
    [`SELECT setval('audit_audit_id_seq', 9e18::bigint)`, /permission denied for sequence/],
    ['SELECT delete_old_audit(29)', /kept for 30 days at least/],
    ['DELETE FROM orders', /permission denied for table orders/],
    ['DELETE FROM status_events', /permission denied for table status_events/],
    ['UPDATE status_events SET sequence = 7', /permission denied for table status_events/],
    [
      "INSERT INTO schema_migrations (name, run_on) VALUES ('x', now())",
      /permission denied for table schema_migrations/,
    ],
    ['CREATE ROLE mine', /permission denied to create role/],
    [`SELECT drop_webhook_partition('infinity')`, /no day of webhooks/],
    [`SELECT drop_webhook_partition((now() AT TIME ZONE 'UTC')::date)`, /kept for 14 days at least/],
    [`SELECT drop_webhook_partition((now() AT TIME ZONE 'UTC')::date - 14)`, /kept for 14 days at least/],
    [
      `SELECT drop_past_orders_partition(date_trunc('month', now() AT TIME ZONE 'UTC' - interval '369 days')::date)`,
      /kept for 369 days at least/,
    ],
    ['UPDATE kept_days SET days = 30', /permission denied for table kept_days/],
    [`SELECT ensure_webhook_partition('0044-03-15 BC')`, /no day of webhooks/],
  ])('is refused %s', async (sql, why) => {
    await expect(query(as(service), sql)).rejects.toThrow(why);
  });

  it('cannot shorten the audit below the days that migrate stored', async () => {
    const since = async (kept: string, AUDIT_RETENTION_DAYS?: string): Promise<unknown> => {
      const env = { OWNER_DATABASE_URL: as(owner), DATABASE_URL: as(service, PASSWORD) };
      await runCli({ ...env, ...(AUDIT_RETENTION_DAYS && { AUDIT_RETENTION_DAYS }) }, ['migrate']);
      await query(as(service), `SELECT delete_old_audit($1)`, [kept]);
      const left = `SELECT array_agg(actor_id ORDER BY at) AS left FROM audit WHERE action = 'old'`;
      return (await query(url, left))[0]?.['left'];
    };
    await query(
      url,
      `INSERT INTO audit (at, actor_kind, actor_id, actor_name, action)
       SELECT now() - make_interval(days => days), 'person', days::text, 'ada', 'old' FROM unnest('{410,390,100}'::int[]) AS days`,
    );
    expect(await since('500')).toEqual(['410', '390', '100']);
    expect(await since('30')).toEqual(['390', '100']);
    expect(await since('30', '200')).toEqual(['100']);
    expect(await since('60', '30')).toEqual(null);
    expect(await since('30')).toEqual(null);
  });

  it('can create and drop partitions of webhooks, even if the role has a temporary table named webhooks', async () => {
    const client = new pg.Client(as(service));
    await client.connect();
    await client.query(`CREATE TEMP TABLE webhooks (day date); CREATE TEMP TABLE pg_inherits (inhparent oid);
                        SET search_path = pg_temp, expediter; SET DateStyle = 'SQL, DMY'; SET TimeZone = 'Asia/Tokyo'`);
    const days = async (): Promise<unknown[]> =>
      query(
        url,
        `SELECT pg_get_expr(relpartbound, oid) AS bound, pg_get_userbyid(relowner) AS owner FROM pg_class
         WHERE relname = 'webhooks_20201202' AND relispartition`,
      );
    const make = `SELECT expediter.ensure_webhook_partition('2.12.2020')`;
    await client.query(make);
    await client.query(make);
    expect(await days()).toEqual([{ bound: `FOR VALUES FROM ('2020-12-02') TO ('2020-12-03')`, owner }]);
    const drop = `SELECT expediter.drop_webhook_partition('2.12.2020') AS dropped`;
    expect((await client.query(drop)).rows).toEqual([{ dropped: true }]);
    expect((await client.query(drop)).rows).toEqual([{ dropped: false }]);
    expect(await days()).toEqual([]);
    await client.end();
  });

  it('is the only role that can create and drop partitions of webhooks', async () => {
    await query(url, `GRANT USAGE ON SCHEMA expediter TO "${other}"`);
    for (const each of ['ensure_webhook_partition', 'drop_webhook_partition']) {
      await expect(query(as(other), `SELECT expediter.${each}('2030-12-02')`)).rejects.toThrow(
        'permission denied for function',
      );
    }
  });
});

describe('the list of rights', () => {
  it('covers every table of the schema, and every function that runs as the owner', async () => {
    const tables = await query(
      url,
      `SELECT relname FROM pg_class WHERE relnamespace = 'expediter'::regnamespace AND relkind IN ('r', 'p')
         AND NOT relispartition ORDER BY relname COLLATE "C"`,
    );
    expect(tables.map(({ relname }) => relname)).toEqual(Object.keys(RIGHTS));
    const functions = await query(
      url,
      `SELECT oid::regprocedure::text AS name, prosecdef, proconfig FROM pg_proc
       WHERE pronamespace = 'expediter'::regnamespace ORDER BY 1`,
    );
    expect(functions.map(({ name }) => name)).toEqual(FUNCTIONS.toSorted());
    for (const { prosecdef, proconfig } of functions) {
      expect({ prosecdef, proconfig }).toEqual({
        prosecdef: true,
        proconfig: expect.arrayContaining(['search_path=pg_catalog, pg_temp']),
      });
    }
  });

  it('has only rights that a statement of the service uses', () => {
    const files = readdirSync(CORE, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
    const code = files
      .filter((file) => !file.startsWith('doctor'))
      .map((file) => readFileSync(join(CORE, file), 'utf8'));
    const uses: Record<string, (table: string) => RegExp> = {
      // What is returned is read.
      SELECT: (table) => new RegExp(`(FROM|JOIN) (\\$\\{)?${table}\\b|INTO ${table}\\b[^;\`]*RETURNING`, 'i'),
      INSERT: (table) => new RegExp(`INSERT INTO ${table}\\b`),
      UPDATE: (table) => new RegExp(`UPDATE ${table}\\b|INSERT INTO ${table}\\b[^;]*?DO UPDATE`),
      DELETE: (table) => new RegExp(`DELETE FROM ${table}\\b`),
    };
    const unused = Object.entries(RIGHTS).flatMap(([table, rights]) =>
      rights.filter((right) => {
        if (table === 'schema_migrations') return false;
        const used = uses[right.split(' ', 1)[0] ?? '']?.(table);
        // Of two tables that are alike, the same statement names one or the other.
        const named = (text: string): string =>
          text.includes(`'${table}'`) ? text.replaceAll(/\$\{table\}/g, table) : text;
        return used === undefined || !code.some((text) => used.test(named(text)));
      }),
    );
    expect(unused).toEqual([]);
  });
});
