import { cp, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { checkSchema } from '../../src/database/check-schema.ts';
import { migrate } from '../../src/database/migrate.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { createDatabase, createEmptyDatabase } from '../../world/postgres/create-database.ts';
import { queryOnce } from '../support/query-once.ts';
import { runCli } from '../support/run-cli.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url));

async function namesIn(dir: string): Promise<string[]> {
  return (await readdir(dir)).flatMap((file) => (file.endsWith('.sql') ? [file.slice(0, -4)] : [])).sort();
}

it('three processes that migrate an empty database at once all succeed, and each migration runs once', async () => {
  const url = await createEmptyDatabase();
  const done = await Promise.all([migrate(url), migrate(url), migrate(url)]);
  expect(done.flat().sort()).toEqual(await namesIn(MIGRATIONS));
  expect(done).toContainEqual([]);
  const rows = await queryOnce(url, 'SELECT name FROM schema_migrations ORDER BY id');
  expect(rows.map(({ name }) => name)).toEqual(await namesIn(MIGRATIONS));
});

it.each([0, 1])(
  'a database with an encoding that cannot store every text is refused, with %d migrations',
  async (count) => {
    const url = await createEmptyDatabase('LATIN1');
    // As somebody may have migrated it before this was refused.
    for (const name of (await namesIn(MIGRATIONS)).slice(0, count)) {
      await queryOnce(url, 'CREATE SCHEMA expediter');
      await queryOnce(url, `SET search_path = expediter; ${await readFile(join(MIGRATIONS, `${name}.sql`), 'utf8')}`);
      await queryOnce(
        url,
        'CREATE TABLE expediter.schema_migrations (id serial PRIMARY KEY, name text, run_on timestamp)',
      );
      await queryOnce(url, `INSERT INTO expediter.schema_migrations (name, run_on) VALUES ('${name}', now())`);
    }
    const { code, error } = await runCli({ DATABASE_URL: url }, ['migrate']);
    expect({ code, error }).toEqual({
      code: 1,
      error: expect.stringMatching(
        /^error: the database test_\w+ is in LATIN1, .*: create it with CREATE DATABASE test_\w+ ENCODING 'UTF8' TEMPLATE template0$/m,
      ),
    });
  },
);

describe('a migration', () => {
  let url: string;
  let dir: string;
  let client: pg.Client;

  beforeEach(async () => {
    url = await createDatabase();
    dir = await mkdtemp(join(tmpdir(), 'migrations-'));
    await cp(MIGRATIONS, dir, { recursive: true });
    client = new pg.Client(url);
    await client.connect();
  });
  afterEach(async () => {
    await client.end();
    await rm(dir, { recursive: true, force: true });
  });

  const columns = async (): Promise<unknown[]> =>
    (
      await client.query(
        `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'expediter' ORDER BY 1, 2`,
      )
    ).rows;
  const names = async (): Promise<string[]> =>
    (await client.query<{ name: string }>('SELECT name FROM schema_migrations ORDER BY id')).rows.map(
      (row) => row.name,
    );

  const isValid = async (index: string): Promise<unknown> =>
    (await client.query('SELECT indisvalid FROM pg_index WHERE indexrelid = $1::regclass', [index])).rows[0]
      ?.indisvalid;

  it('that fails half-way changes nothing, and runs when it is corrected', async () => {
    const before = await columns();
    const half = 'ALTER TABLE orders ADD COLUMN one text;';
    await writeFile(join(dir, '9001-half.sql'), `${half} ALTER TABLE no_such_table ADD COLUMN two text;`);
    await expect(migrate(url, { dir })).rejects.toThrow(
      /^migration 9001-half failed and changed nothing: relation "no_such_table" does not exist$/,
    );
    expect(await columns()).toEqual(before);
    expect(await names()).not.toContain('9001-half');

    await writeFile(join(dir, '9001-half.sql'), half);
    expect(await migrate(url, { dir })).toEqual(['9001-half']);
    expect(await columns()).toContainEqual({ table_name: 'orders', column_name: 'one' });
  });

  it('is kept if a later migration fails, and does not run again', async () => {
    await writeFile(join(dir, '9001-one.sql'), 'ALTER TABLE orders ADD COLUMN one text;');
    await writeFile(join(dir, '9002-two.sql'), 'SELECT 1 / 0;');
    await expect(migrate(url, { dir })).rejects.toThrow('migration 9002-two failed');
    await writeFile(join(dir, '9002-two.sql'), 'ALTER TABLE orders ADD COLUMN two text;');
    expect(await migrate(url, { dir })).toEqual(['9002-two']);
  });

  it('waits for a lock in short tries, so that webhooks are not delayed for long', async () => {
    await writeFile(join(dir, '9001-column.sql'), 'ALTER TABLE orders ADD COLUMN one text;');
    await client.query('BEGIN; LOCK TABLE orders IN ACCESS SHARE MODE');
    const migrated = migrate(url, { dir });
    const waiting = `SELECT FROM pg_stat_activity WHERE application_name = 'expediter migrate' AND wait_event_type = 'Lock'`;
    // Behind the first try, and behind the next ones.
    for (let round = 0; round < 2; round++) {
      await until(async () => (await queryOnce(url, waiting)).length === 1);
      await queryOnce(url, `UPDATE orders SET reason = NULL WHERE service_order_id = 'none'`);
    }
    await client.query('COMMIT');
    expect(await migrated).toEqual(['9001-column']);
  });

  it('fails with an explanation and changes nothing if the migration never gets the lock', async () => {
    const before = await columns();
    await writeFile(join(dir, '9001-column.sql'), 'ALTER TABLE orders ADD COLUMN one text;');
    await client.query('BEGIN; LOCK TABLE orders IN ACCESS SHARE MODE');
    await expect(migrate(url, { dir, lockPatienceMs: 500 })).rejects.toThrow(
      /^migration 9001-column changed nothing: .* locked for 0\.5 s\..*pg_stat_activity.*run the migration again$/,
    );
    await client.query('COMMIT');
    expect(await columns()).toEqual(before);
  });

  it('builds an index on an old table while others write to the table', async () => {
    await writeFile(join(dir, '9001-index.sql'), 'CREATE INDEX IF NOT EXISTS orders_by_reason ON orders (reason);');
    await client.query(`BEGIN; UPDATE orders SET reason = NULL`);
    const migrated = migrate(url, { dir });
    // It waits for the transaction of the writer, but not for its lock.
    const locks = await until(async () => {
      const rows = await queryOnce(
        url,
        `SELECT l.mode, a.wait_event_type = 'Lock' AS waits FROM pg_locks l JOIN pg_stat_activity a USING (pid)
         WHERE a.application_name = 'expediter migrate' AND l.relation = 'orders'::regclass`,
      );
      return rows[0]?.['waits'] === true && rows;
    });
    expect(locks).toEqual([{ mode: 'ShareUpdateExclusiveLock', waits: true }]);
    await client.query('COMMIT');
    expect(await migrated).toEqual(['9001-index']);
    expect(await isValid('orders_by_reason')).toBe(true);
  });

  it('builds an index again if its build was interrupted', async () => {
    const interrupted = new pg.Client(url);
    await interrupted.connect();
    await client.query(`BEGIN; UPDATE orders SET reason = NULL`);
    await interrupted.query('SET lock_timeout = 1');
    const build = interrupted.query('CREATE INDEX CONCURRENTLY orders_by_reason ON orders (reason)');
    await expect(build).rejects.toThrow('lock timeout');
    await interrupted.end();
    await client.query('COMMIT');
    expect(await isValid('orders_by_reason')).toBe(false);
    await writeFile(join(dir, '9001-index.sql'), 'CREATE INDEX IF NOT EXISTS orders_by_reason ON orders (reason);');
    await migrate(url, { dir });
    expect(await isValid('orders_by_reason')).toBe(true);
  });

  it('ignores the time limits of its role', async () => {
    const { rows } = await client.query<{ database: string }>('SELECT current_database() AS database');
    await client.query(`ALTER DATABASE ${rows[0]?.database} SET statement_timeout = 300`);
    // New in Postgres 17.
    await client.query(`
      DO $$ BEGIN
        IF EXISTS (SELECT FROM pg_settings WHERE name = 'transaction_timeout') THEN
          EXECUTE 'ALTER DATABASE ${rows[0]?.database} SET transaction_timeout = 300';
        END IF;
      END $$`);
    await writeFile(join(dir, '9001-long.sql'), 'SELECT pg_sleep(0.6);');
    expect(await migrate(url, { dir })).toEqual(['9001-long']);
  });
});

describe('a database whose rows came by logical replication, without sequences', () => {
  it('gets correct sequences before the next migration', async () => {
    const url = await createDatabase();
    await queryOnce(
      url,
      `INSERT INTO audit (actor_kind, actor_id, actor_name, action, source, request_id)
       SELECT 'nobody', '', '', 'location remove', '', '' FROM generate_series(1, 3)`,
    );
    await queryOnce(
      url,
      `DO $$ DECLARE each regclass; BEGIN
      FOR each IN SELECT oid FROM pg_class WHERE relkind = 'S' AND relnamespace = 'expediter'::regnamespace
      LOOP PERFORM setval(each, 1, false); END LOOP; END $$`,
    );
    const dir = await mkdtemp(join(tmpdir(), 'migrations-'));
    await cp(MIGRATIONS, dir, { recursive: true });
    await writeFile(join(dir, '9001-one.sql'), 'ALTER TABLE orders ADD COLUMN one text;');
    expect(await migrate(url, { dir })).toEqual(['9001-one']);
    await rm(dir, { recursive: true });
    const [next] = await queryOnce(
      url,
      `SELECT nextval('audit_audit_id_seq')::int AS audit, nextval('notes_note_id_seq')::int AS note`,
    );
    expect(next).toEqual({ audit: 4, note: 1 });
  });
});

it('every table has a replica identity, so that its rows can be changed while the table is published', async () => {
  const url = await createDatabase();
  const lacking = await queryOnce(
    url,
    `SELECT relname FROM pg_class c
     WHERE relnamespace = 'expediter'::regnamespace AND relkind IN ('r', 'p')
       AND relreplident NOT IN ('f', 'i') AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary)`,
  );
  expect(lacking).toEqual([]);
  await queryOnce(url, 'CREATE PUBLICATION everything FOR ALL TABLES');
  await queryOnce(url, 'UPDATE parked_sweep SET swept_until = now()');
  await queryOnce(url, `UPDATE status_events SET reason = NULL`);
});

describe('a version of the service', () => {
  let url: string;
  let pool: pg.Pool;
  beforeEach(async () => {
    url = await createDatabase();
    ({ pool } = openDatabase(url, 5, () => {}));
  });
  afterEach(() => pool.end());

  const record = (name: string): Promise<unknown> =>
    pool.query('INSERT INTO schema_migrations (name, run_on) VALUES ($1, now())', [name]);

  it('starts and works on the schema of the next version', async () => {
    await pool.query('ALTER TABLE orders ADD COLUMN of_the_next text; ALTER TABLE webhooks ADD COLUMN of_it text');
    await record('9999-of-the-next');
    const system = await startSystem({ databaseUrl: url });
    onTestFinished(() => system.stop());
    await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
    await system.seedOrder({ serviceOrderId: 'order-1', locationId: 'club-1' });
    const ready = statusWebhook({ serviceOrderId: 'order-1', status: 'READY' });
    expect(await post(await system.webhookUrl('club-1'), ready)).toMatchObject({ status: 200 });
    expect(await system.order('order-1')).toMatchObject({ status: 'ready' });
    const cli = await runCli({ DATABASE_URL: url }, ['location', 'list', '--json']);
    expect(cli).toMatchObject({ code: 0, out: expect.stringContaining('club-1') });
    // The command of the version before, run by mistake, has nothing to do.
    expect(await migrate(url)).toEqual([]);
  });

  it('refuses a schema that a newer version made incompatible, and says what to deploy', async () => {
    await record('9999-without-something.breaking');
    const refusal = /too new .*\(9999-without-something\.breaking\)\. Deploy the version that made it\./;
    await expect(checkSchema(pool)).rejects.toThrow(refusal);
    const cli = await runCli({ DATABASE_URL: url }, ['location', 'list']);
    expect(cli).toEqual({ code: 1, out: '', error: expect.stringMatching(refusal) });
  });

  it('refuses a schema that lacks a migration of this version, even if the schema has a newer migration', async () => {
    const last = (await namesIn(MIGRATIONS)).at(-1) ?? '';
    await pool.query('DELETE FROM schema_migrations WHERE name = $1', [last]);
    await record('9999-of-the-next');
    await expect(checkSchema(pool)).rejects.toThrow(`The schema lacks ${last}. Run: expediter migrate`);
  });
});

describe('a migration that changes the columns of prepared statements', () => {
  let system: System;
  let pos: Pos;
  let dir: string;
  beforeAll(async () => {
    [system, pos, dir] = await Promise.all([startSystem(), startPos(), mkdtemp(join(tmpdir(), 'migrations-'))]);
    await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
    await cp(MIGRATIONS, dir, { recursive: true });
  });
  afterAll(() => Promise.all([system?.stop(), pos?.stop(), rm(dir, { recursive: true, force: true })]));

  it('lets a running process continue to place orders and to apply webhooks', async () => {
    const url = await system.webhookUrl('club-1');
    const goesItsWay = async (): Promise<void> => {
      const { serviceOrderId } = await system.placeOrder();
      await until(async () => (await system.placement(serviceOrderId))?.['state'] === 'sent');
      const ready = statusWebhook({ serviceOrderId, status: 'READY' });
      await until(async () => (await post(url, ready)).status === 200);
      await until(() => system.live(serviceOrderId).some(({ status }) => status === 'ready'));
    };
    const client = new pg.Client(system.databaseUrl);
    await client.connect();
    onTestFinished(() => client.end());
    const prepared = { name: 'prepared', text: 'SELECT service_order_id FROM orders' };
    await client.query(prepared);
    await goesItsWay();
    await writeFile(join(dir, '9001-other-text.sql'), await otherCollations(system));
    expect(await migrate(system.databaseUrl, { dir })).toEqual(['9001-other-text']);
    await goesItsWay();
    // It was such a migration.
    await expect(client.query(prepared)).rejects.toThrow('cached plan must not change result type');
  });
});

/** Statements that make every indexed text another one to Postgres. */
async function otherCollations(system: System): Promise<string> {
  const columns = await system.query(
    `SELECT DISTINCT format('ALTER TABLE %s ALTER COLUMN %I TYPE text COLLATE "POSIX";', i.indrelid::regclass, a.attname)
              AS change
     FROM pg_index i
     JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) AND a.atttypid = 'text'::regtype
     JOIN pg_class c ON c.oid = i.indrelid AND c.relnamespace = 'expediter'::regnamespace AND NOT c.relispartition
     -- The condition of a trigger fixes the type of this one.
     WHERE (c.relname, a.attname) <> ('placements', 'state')`,
  );
  return columns.map(({ change }) => change).join('\n');
}

/** What the version before would miss, or trip over. */
const TAKES_AWAY =
  /\bDROP\s+(?:TABLE|COLUMN|TYPE|FUNCTION|VIEW|DEFAULT)\b|\bRENAME\b|\bSET\s+NOT\s+NULL\b|\bALTER\s+(?:COLUMN\s+)?\S+\s+(?:SET\s+DATA\s+)?TYPE\b(?!\s+text\s+COLLATE\s+"C")|\bADD\s+(?:CONSTRAINT|CHECK|FOREIGN|UNIQUE|PRIMARY)\b(?![^;]*\bNOT\s+VALID\b)|\bADD\s+COLUMN\s+(?:IF\s+NOT\s+EXISTS\s+)?\S+\s+[^,;]*\bNOT\s+NULL\b(?![^,;]*\bDEFAULT\b)(?<!\bDEFAULT\b[^,;]*)/i;

describe('a migration that removes something', () => {
  it('has a name that ends in .breaking', async () => {
    for (const name of (await namesIn(MIGRATIONS)).filter((name) => !name.endsWith('.breaking'))) {
      const text = (await readFile(join(MIGRATIONS, `${name}.sql`), 'utf8')).replaceAll(/--.*$/gm, '');
      // What a function does when it is called, the migration does not do.
      const sql = text.replaceAll(/\$\$.*?\$\$/gs, '');
      expect(TAKES_AWAY.exec(sql)?.[0], name).toBeUndefined();
    }
  });

  it.each([
    'ALTER TABLE orders DROP COLUMN reason',
    'ALTER TABLE orders RENAME COLUMN reason TO why',
    'ALTER TABLE orders ALTER COLUMN reason SET NOT NULL',
    'ALTER TABLE orders ALTER COLUMN rank TYPE bigint',
    'ALTER TABLE orders ALTER rank TYPE text',
    'ALTER TABLE orders ADD CONSTRAINT ranks CHECK (rank < 9)',
    'ALTER TABLE orders ADD COLUMN kind text NOT NULL',
    'DROP TABLE outbox',
  ])('%s removes something', (sql) => expect(sql).toMatch(TAKES_AWAY));

  it.each([
    'ALTER TABLE orders ADD COLUMN kind text, ADD COLUMN of text',
    "ALTER TABLE orders ADD COLUMN kind text NOT NULL DEFAULT ''",
    "ALTER TABLE orders ADD COLUMN kind text DEFAULT '' NOT NULL",
    'ALTER TABLE orders ADD CONSTRAINT ranks CHECK (rank < 9) NOT VALID',
    'CREATE TABLE new (id text NOT NULL)',
    'DROP INDEX orders_open',
    'ALTER TABLE orders ALTER COLUMN reason TYPE text COLLATE "C"',
  ])('%s removes nothing', (sql) => expect(sql).not.toMatch(TAKES_AWAY));
});
