import { once } from 'node:events';
import { Socket, createServer, type AddressInfo } from 'node:net';
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { SETTINGS, VALUES, WrongSchema, checkSchema, setForRole } from '../../src/database/check-schema.ts';
import { inTransaction, withClient, withSettings } from '../../src/core/postgres/transactions.ts';
import { migrate } from '../../src/database/migrate.ts';
import { WRITER_CONNECTIONS, openDatabase } from '../../src/database/open-database.ts';
import { queryOnce } from '../support/query-once.ts';
import { startPos } from '../../world/pos/start-pos.ts';
import { startPooler } from '../../world/postgres/start-pooler.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { withDatabase } from '../../src/terminal/settings-rules.ts';
import { startSystem } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

/** A Postgres that takes connections at once, but answers the first only after `answer`. */
async function startSlowPostgres(databaseUrl: string) {
  const answering = Promise.withResolvers<void>();
  const sockets = new Set<Socket>();
  const state = { connections: 0 };
  const server = createServer((client) => {
    const upstream = new Socket();
    for (const socket of [client, upstream]) sockets.add(socket.on('error', () => {}));
    // The client has noticed that it is connected, because it has sent its first message.
    client.once('readable', () => {
      state.connections += 1;
      server.emit('asked');
    });
    void answering.promise.then(() => {
      upstream.connect(Number(new URL(databaseUrl).port), '127.0.0.1');
      client.pipe(upstream).pipe(client);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(databaseUrl);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    answer: answering.resolve,
    /** Waits for this many connections. @returns how many were made, also those that have ended */
    async connected(atLeast: number): Promise<number> {
      while (state.connections < atLeast) await once(server, 'asked');
      return state.connections;
    },
    async stop(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** One message of Postgres's protocol: type, length, body. */
function message(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

const AUTHENTICATED = message('R', Buffer.from([0, 0, 0, 0]));
const READY = message('Z', Buffer.from('I'));
const TERMINATED = message(
  'E',
  Buffer.from('SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'),
);

it('a connection that Postgres ends at once fails its query, but does not end the process', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    // In one packet, so that nothing comes between the two.
    socket.once('data', () => socket.end(Buffer.concat([AUTHENTICATED, READY, TERMINATED])));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { pool, flushPool } = openDatabase(`postgres://x@127.0.0.1:${port}/x`, 5, () => {});
  const died: unknown[] = [];
  const onDeath = (error: unknown): void => void died.push(error);
  process.on('uncaughtException', onDeath);
  await expect(withClient(pool, (client) => client.query('SELECT 1'))).rejects.toThrow();
  await expect(pool.query('SELECT 1')).rejects.toThrow();
  await Promise.all([pool.end(), flushPool.end()]);
  await new Promise((resolve) => server.close(resolve));
  process.off('uncaughtException', onDeath);
  expect(died).toEqual([]);
});

describe('a Postgres that takes long to answer a new connection', () => {
  let slow: Awaited<ReturnType<typeof startSlowPostgres>>;
  beforeEach(async () => {
    slow = await startSlowPostgres(await createDatabase());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  });
  afterEach(async () => {
    vi.useRealTimers();
    await slow.stop();
  });

  it.each([
    ['pool', 3_000],
    ['flushPool', 1_000],
  ] as const)('fails who waits at $0, but keeps the connection for the next', async (which, waitMs) => {
    const pools = openDatabase(slow.url, 1 + WRITER_CONNECTIONS, () => {});
    const asks = [(pool: pg.Pool) => pool.connect(), (pool: pg.Pool) => pool.query('SELECT 1')];
    for (const [at, ask] of asks.entries()) {
      const asked = expect(ask(pools[which])).rejects.toThrow('timeout exceeded when trying to connect');
      await slow.connected(which === 'pool' ? 1 : at + 1);
      await vi.advanceTimersByTimeAsync(waitMs);
      await asked;
    }
    const before = await slow.connected(1);
    slow.answer();
    while (pools[which].idleCount < before) await once(pools[which], 'release');
    expect((await pools[which].query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    expect(await slow.connected(1)).toBe(before);
    await Promise.all([pools.pool.end(), pools.flushPool.end()]);
  });

  it('is waited for by a person at a terminal', async () => {
    const asked = withDatabase(slow.url, async () => 'reached');
    await slow.connected(1);
    await vi.advanceTimersByTimeAsync(9_000);
    slow.answer();
    await expect(asked).resolves.toBe('reached');
  });
});

it('a host that does not answer is given up with the one who waits, so that the next attempt may reach another host', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const connect = vi.spyOn(Socket.prototype, 'connect').mockReturnThis();
  onTestFinished(() => {
    connect.mockRestore();
    vi.useRealTimers();
  });
  const pools = openDatabase('postgres://x@127.0.0.1:9/x', 1 + WRITER_CONNECTIONS, () => {});
  for (const [pool, waitMs] of [
    [pools.pool, 3_000],
    [pools.flushPool, 1_000],
  ] as const) {
    const asked = expect(pool.query('SELECT 1')).rejects.toThrow('the host does not answer');
    expect(pool.totalCount).toBe(1);
    await vi.advanceTimersByTimeAsync(waitMs);
    await asked;
    expect(pool.totalCount).toBe(0);
    await pool.end();
  }
});

it('a connection with a prepared statement that a migration made stale fails one query, and is closed', async () => {
  // One of each pool.
  const { pool, flushPool } = openDatabase(await createDatabase(), 1 + WRITER_CONNECTIONS, () => {});
  const ask = (): Promise<unknown> =>
    withClient(pool, (client) => client.query({ name: 'all', text: 'SELECT * FROM credentials' }));
  await ask();
  await pool.query('ALTER TABLE credentials ADD COLUMN of_the_next text');
  await expect(ask()).rejects.toThrow('cached plan must not change result type');
  await ask();
  await Promise.all([pool.end(), flushPool.end()]);
});

it('the service works with a database that has other settings for dates and numbers', async () => {
  const url = await createDatabase();
  const name = new URL(url).pathname.slice(1);
  const theirs = {
    DateStyle: 'German, DMY',
    IntervalStyle: 'sql_standard',
    TimeZone: 'Asia/Kathmandu',
    bytea_output: 'escape',
    extra_float_digits: '-3',
    standard_conforming_strings: 'off',
    default_transaction_isolation: 'serializable',
  };
  expect(Object.keys(theirs)).toEqual(Object.keys(VALUES));
  for (const [setting, value] of Object.entries(theirs)) {
    await queryOnce(url, `ALTER DATABASE ${name} SET ${setting} = ${setting === 'DateStyle' ? value : `'${value}'`}`);
  }
  expect(await queryOnce(url, 'SHOW "DateStyle"')).toEqual([{ DateStyle: 'German, DMY' }]);
  expect(await migrate(url)).toEqual([]);
  const [system, pos] = await Promise.all([
    startSystem({ databaseUrl: url, stepped: ['placements', 'relay'] }),
    startPos(),
  ]);
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  const { serviceOrderId } = await system.placeOrder();
  await system.round('placements');
  expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'sent' });
  const event = { serviceOrderId, providerOrderId: pos.tickets[0]?.providerOrderId ?? '', status: 'READY' } as const;
  expect(await pos.sendStatus(await system.webhookUrl('club-1'), event)).toMatchObject({
    body: { outcome: 'applied' },
  });
  await system.finish('relay');
  expect(system.live(serviceOrderId).map(({ memberState }) => memberState)).toContain('ready_for_pickup');
  await Promise.all([system.stop(), pos.stop()]);
});

it('a process refuses a pooler that drops connection settings, because one of these settings makes a 200 durable', async () => {
  const url = await createDatabase();
  const pooler = await startPooler(url);
  const refused = vi.fn();
  const { pool, flushPool } = openDatabase(pooler.through(url), 2 + WRITER_CONNECTIONS, refused);
  expect(pool.options.options).toMatch(/^-c .*\S$/);
  await expect(checkSchema(pool)).resolves.toBeUndefined();
  const lent = await flushPool.connect();
  // A pooler whose configuration was changed since.
  pooler.options = 'dropped';
  const lacking = /the role postgres lacks them.* Run: expediter migrate, with OWNER_DATABASE_URL set/;
  for (const each of [pool, flushPool]) {
    const other = each === pool ? await pool.connect() : undefined;
    await expect(each.query('SELECT 1')).rejects.toThrow(lacking);
    expect(refused).toHaveBeenLastCalledWith(expect.any(WrongSchema));
    other?.release();
  }
  await lent.query('SELECT 1');
  lent.release();
  await Promise.all([pool.end(), flushPool.end()]);
  await pooler.stop();
});

it('behind a pooler the settings of the role apply, and each batch sets its own settings in its transaction', async () => {
  const url = await createDatabase();
  const pooler = await startPooler(url, { options: 'dropped' });
  await queryOnce(url, setForRole('postgres', new URL(url).pathname.slice(1), SETTINGS));
  const shown = async (client: pg.ClientBase): Promise<unknown> =>
    (
      await client.query(
        `SELECT current_setting('lock_timeout') AS locks, current_setting('plan_cache_mode') AS plans,
                current_setting('synchronous_commit') AS commits`,
      )
    ).rows[0];
  for (const each of [url, pooler.through(url)]) {
    const { pool, flushPool } = openDatabase(each, 1 + WRITER_CONNECTIONS, () => {});
    await checkSchema(pool);
    expect(await withSettings(pool, shown)).toMatchObject({ locks: '4s', plans: 'auto', commits: 'on' });
    const batch = { locks: '150ms', plans: 'force_generic_plan', commits: 'on' };
    expect(await withSettings(flushPool, shown)).toMatchObject(batch);
    expect(await inTransaction(flushPool, shown)).toMatchObject(batch);
    // Nothing of it is left for the next user of the session.
    if (each !== url) expect(await withClient(flushPool, shown)).toMatchObject({ locks: '4s', plans: 'auto' });
    await Promise.all([pool.end(), flushPool.end()]);
  }
  await expect(migrate(pooler.through(url))).rejects.toThrow('let OWNER_DATABASE_URL name Postgres itself');
  await pooler.stop();
});

it('a process stops using a pooler that begins to drop settings, and says why', async () => {
  const url = await createDatabase();
  const pooler = await startPooler(url);
  const system = await startSystem({ databaseUrl: pooler.through(url) });
  const databaseIs = async (state: string): Promise<boolean> => {
    await system.round('check of Postgres');
    const answer = await fetch(`${system.urls[0]}/readyz`);
    return ((await answer.json()) as { database: string }).database === state;
  };
  const refusals = (): string[] =>
    system.logged.filter((line) => line.includes('a new connection to Postgres was refused: A pooler drops'));
  await until(() => databaseIs('up'));
  pooler.options = 'dropped';
  pooler.cut();
  await until(async () => (await databaseIs('down')) && refusals().length > 0);
  pooler.options = undefined;
  await until(() => databaseIs('up'));
  expect(refusals()).toHaveLength(1);
  await system.stop();
  await pooler.stop();
});

it('a process refuses a role whose search_path does not find the tables, and says how to set it', async () => {
  const url = await createDatabase();
  const name = new URL(url).pathname.slice(1);
  const check = async (): Promise<void> => {
    const { pool, flushPool } = openDatabase(url, 1 + WRITER_CONNECTIONS, () => {});
    try {
      await checkSchema(pool);
    } finally {
      await Promise.all([pool.end(), flushPool.end()]);
    }
  };
  await expect(check()).resolves.toBeUndefined();
  await queryOnce(url, `ALTER DATABASE ${name} RESET search_path`);
  await expect(check()).rejects.toThrow(
    'The role postgres does not find its tables: they are in the schema expediter, and its search_path is "$user", public. ' +
      `Run: expediter migrate. Or in psql: ALTER ROLE postgres IN DATABASE ${name} SET search_path = expediter`,
  );
  await migrate(url);
  await expect(check()).resolves.toBeUndefined();
});

it.each([
  ['a value', `SELECT 'x'::int`, 'kept'],
  ['a collision', `DO $$ BEGIN RAISE deadlock_detected; END $$`, 'kept'],
  ['a lock', `DO $$ BEGIN RAISE lock_not_available; END $$`, 'kept'],
  ['a time-out', `DO $$ BEGIN RAISE query_canceled; END $$`, 'kept'],
  ['a server that takes no writes', `DO $$ BEGIN RAISE read_only_sql_transaction; END $$`, 'closed'],
  ['a server that is full', `DO $$ BEGIN RAISE disk_full; END $$`, 'closed'],
  ['a server that ends', `DO $$ BEGIN RAISE admin_shutdown; END $$`, 'closed'],
  ['an error inside Postgres', `DO $$ BEGIN RAISE internal_error; END $$`, 'closed'],
])('after an error about $0, the connection is $2', async (_, sql, result) => {
  const { pool, flushPool } = openDatabase(await createDatabase(), 1 + WRITER_CONNECTIONS, () => {});
  const pid = (): Promise<unknown> =>
    withClient(pool, async (client) => (await client.query('SELECT pg_backend_pid()')).rows[0]);
  const before = await pid();
  await expect(withClient(pool, (client) => client.query(sql))).rejects.toThrow();
  if (result === 'kept') expect(await pid()).toEqual(before);
  else expect(await pid()).not.toEqual(before);
  await Promise.all([pool.end(), flushPool.end()]);
});

it('both sides of a connection have TCP keep-alives that notice a lost peer within 15 s', async () => {
  const keepAlive = vi.spyOn(Socket.prototype, 'setKeepAlive');
  onTestFinished(() => keepAlive.mockRestore());
  const pools = openDatabase(await createDatabase(), 1 + WRITER_CONNECTIONS, () => {});
  for (const pool of Object.values(pools)) {
    keepAlive.mockClear();
    const { rows } = await pool.query(
      `SELECT name, setting::int AS setting FROM pg_settings WHERE name LIKE 'tcp%' ORDER BY name`,
    );
    expect(keepAlive).toHaveBeenCalledWith(true, 5_000);
    expect(rows).toEqual([
      { name: 'tcp_keepalives_count', setting: 10 },
      { name: 'tcp_keepalives_idle', setting: 5 },
      { name: 'tcp_keepalives_interval', setting: 1 },
      { name: 'tcp_user_timeout', setting: process.platform === 'linux' ? 15_000 : 0 },
    ]);
    await pool.end();
  }
});
