/**
 * One database of a real Postgres, whose statements run one at a time when the schedule says so, and whose clock is the
 * schedule's. A session whose statement waits for a lock is parked while others go on. Between transactions, sessions
 * share the few connections to it, so that Postgres plans a statement once and not in each session.
 */
import { mkdtempSync, openSync, rmSync, chmodSync, closeSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import pg from 'pg';
import { migrate } from '../../src/database/migrate.ts';
import { rebindDefaults } from '../../world/processes/move-clock.ts';
import { NOTE_SQL } from './order-histories.ts';
import { asSimulator, type Schedule } from './schedule.ts';
import { postgresTime } from './virtual-globals.ts';

/** The class before it is replaced. */
const RealPool = pg.Pool;

const TEMPLATE = 'simulated_template';

/** The clock, and what else of Postgres would differ from run to run, in a schema before `pg_catalog`. */
const prepareSql = (clockFile: string): string => `
  CREATE SCHEMA clock;
  CREATE SEQUENCE clock.drawn;
  CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE plpgsql AS
    $$ BEGIN RETURN pg_read_file('${clockFile}')::timestamptz; END $$;
  -- The same during a transaction. BEGIN sets it; a statement alone reads it once.
  CREATE FUNCTION clock.now() RETURNS timestamptz STABLE LANGUAGE plpgsql AS $$
    DECLARE began text := current_setting('clock.began', true);
    BEGIN
      IF began IS NULL OR began = '' THEN
        began := pg_read_file('${clockFile}');
        PERFORM set_config('clock.began', began, true);
      END IF;
      RETURN began::timestamptz;
    END $$;
  CREATE FUNCTION clock.transaction_timestamp() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT clock.now()';
  CREATE FUNCTION clock.statement_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql AS 'SELECT clock.clock_timestamp()';
  CREATE FUNCTION clock.digits() RETURNS text VOLATILE LANGUAGE sql AS
    $$ SELECT md5(current_setting('clock.seed', true) || '/' || nextval('clock.drawn')) $$;
  CREATE FUNCTION clock.gen_random_uuid() RETURNS uuid VOLATILE LANGUAGE sql AS 'SELECT clock.digits()::uuid';
  CREATE FUNCTION clock.random() RETURNS float8 VOLATILE LANGUAGE sql AS
    $$ SELECT ('x' || left(clock.digits(), 8))::bit(32)::bigint / 4294967296.0::float8 $$;`;

/** Settings of a session that would make it depend on real time, or on other sessions. */
const SETTINGS =
  '-c search_path=expediter,clock,pg_catalog -c statement_timeout=0 -c lock_timeout=3600000 ' +
  '-c idle_in_transaction_session_timeout=0 -c deadlock_timeout=3600000 -c synchronize_seqscans=off ' +
  '-c plan_cache_mode=force_generic_plan -c max_parallel_workers_per_gather=0 -c synchronous_commit=on ' +
  '-c client_min_messages=error -c TimeZone=UTC';

export type Query = { name?: string | undefined; text: string; values?: unknown[] | undefined };
export type Outcome = { result: pg.QueryResult } | { error: Error };

export type Session = {
  /** True between BEGIN and the end of the transaction. */
  isOpen(): boolean;
  /**
   * Runs a statement. Calls `onOutcome` now, or, if the statement waits for a lock, when another session ends the wait.
   * @returns what became of it so far; `ended`: it did not run, because the session has ended
   */
  run(query: Query, onOutcome: (outcome: Outcome) => void): Promise<'over' | 'waits' | 'ended'>;
  /** Ends the wait of a parked statement with an error. */
  cancel(): Promise<void>;
  /** Lets the session only read from now on. @returns false if it is in a transaction */
  demote(): Promise<boolean>;
  /**
   * Ends the session, and its transaction without a commit. Resolves when its locks are free. A statement that waits for
   * a lock goes on, because Postgres looks for its client only between statements.
   */
  end(): Promise<void>;
};

export type SimulatedPostgres = {
  readonly pool: pg.Pool;
  connect(settings: string): Promise<Session>;
  close(): Promise<void>;
};

export type PostgresServer = {
  /** Makes the database of a run. */
  open(schedule: Schedule, onDeadlock: (sessions: number) => void): Promise<SimulatedPostgres>;
  close(): Promise<void>;
};

const urlOf = (server: string, name: string): string => {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
};

/** Prepares a server for many runs. @param url the superuser's URL of any of its databases. Autovacuum must be off */
export async function prepareServer(url: string): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'simulate-'));
  chmodSync(folder, 0o755);
  const file = join(folder, 'clock');
  const clock = openSync(file, 'w', 0o644);
  writeSync(clock, postgresTime(0), 0);
  const suffix = `${process.pid}_${threadId}`;
  const template = `${TEMPLATE}_${suffix}`;
  const admin = new RealPool({ connectionString: url, max: 1 });
  admin.on('error', () => {});
  await admin.query(`CREATE DATABASE ${template}`);
  await migrate(urlOf(url, template));
  const preparing = new pg.Client(urlOf(url, template));
  await preparing.connect();
  await preparing.query(prepareSql(file));
  await preparing.query(NOTE_SQL);
  await preparing.query('SET search_path = expediter, clock, pg_catalog');
  await preparing.query(rebindDefaults('now|clock_timestamp|gen_random_uuid|random'));
  await preparing.end();
  let made = 0;
  return {
    async open(schedule, onDeadlock) {
      made += 1;
      const name = `simulated_${suffix}_${made}`;
      await admin.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);
      return openRun({ schedule, onDeadlock }, urlOf(url, name), clock, () =>
        admin.query(`DROP DATABASE ${name} WITH (FORCE)`),
      );
    },
    async close() {
      await admin.query(`DROP DATABASE ${template} WITH (FORCE)`);
      await admin.end();
      closeSync(clock);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A real connection. A session has one during a transaction. */
type Backend = { client: pg.Client; pid: number; options: string };
type Running = {
  backend: Backend;
  done: Promise<unknown>;
  isDone: () => boolean;
  /** Passes on the outcome. It is called in the order of the schedule, which the order of real answers is not. */
  pass: () => Promise<void>;
};

const pause = (ms: number): Promise<'late'> => new Promise((resolve) => setTimeout(resolve, ms, 'late'));
/** Most statements take less. After this time, Postgres is asked whether the statement waits for a lock. */
const SOON_MS = 3;

/** The database of a run. */
type Database = {
  readonly schedule: Schedule;
  readonly onDeadlock: (sessions: number) => void;
  readonly url: string;
  /** The file of the clock. */
  readonly clock: number;
  readonly pool: pg.Pool;
  readonly backends: Set<Backend>;
  /** Connections that no session has now. */
  readonly free: Backend[];
  /** Statements that wait for a lock. */
  readonly parked: Running[];
  /** The name of each text that was prepared. */
  readonly names: Map<string, string>;
};

function openRun(
  { schedule, onDeadlock }: { schedule: Schedule; onDeadlock: (sessions: number) => void },
  url: string,
  clock: number,
  drop: () => Promise<unknown>,
): SimulatedPostgres {
  const pool = new RealPool({
    connectionString: url,
    max: 2,
    options: `${SETTINGS} -c clock.seed=${schedule.seed}`,
  });
  pool.on('error', () => {});
  const backends = new Set<Backend>();
  const database: Database = {
    schedule,
    onDeadlock,
    url,
    clock,
    pool,
    backends,
    free: [],
    parked: [],
    names: new Map(),
  };
  return {
    pool,
    connect: async (settings) => openSession(database, settings),
    async close() {
      // Postgres itself would look only every 100 ms whether they have gone.
      await Promise.all([...backends].map(({ client }) => client.end().catch(() => {})));
      await pool.end();
      await drop();
    },
  };
}

/** The name of a prepared statement. Two versions of the service may give one name to two texts. */
const nameOf = (database: Database, text: string): string => {
  const name = database.names.get(text) ?? `statement_${database.names.size + 1}`;
  database.names.set(text, name);
  return name;
};

const backendOf = async (database: Database, options: string): Promise<Backend> => {
  const at = database.free.findLastIndex((each) => each.options === options);
  const [first] = at < 0 ? [] : database.free.splice(at, 1);
  if (first !== undefined) return first;
  const client = new pg.Client({ connectionString: database.url, options });
  client.on('error', () => {});
  await client.connect();
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const backend = { client, pid: rows[0]?.pid ?? 0, options };
  database.backends.add(backend);
  return backend;
};

const isBlocked = async (database: Database, pid: number): Promise<boolean> => {
  const { rows } = await database.pool.query<{ blocked: boolean }>({
    name: 'is-blocked',
    text: 'SELECT cardinality(pg_blocking_pids($1)) > 0 AS blocked',
    values: [pid],
  });
  return rows[0]?.blocked === true;
};

/** Resolves when a statement is over, or waits for a lock. @returns whether it waits */
const watch = async (database: Database, { backend, done, isDone }: Running): Promise<boolean> => {
  for (let wait = SOON_MS; ; wait = Math.min(50, wait * 2)) {
    if ((await Promise.race([done, pause(wait)])) !== 'late' || isDone()) return false;
    if ((await isBlocked(database, backend.pid)) && !isDone()) return true;
  }
};

/** Postgres itself would look for a cycle of waits a second of real time later. */
const findDeadlock = async (database: Database): Promise<void> => {
  const pids = database.parked.map(({ backend }) => backend.pid);
  const { rows } = await database.pool.query<{ pid: number; by: number[] }>({
    name: 'who-blocks',
    text: 'SELECT pid, pg_blocking_pids(pid) AS by FROM unnest($1::int[]) AS pid',
    values: [pids],
  });
  const byOf = new Map(rows.map(({ pid, by }) => [pid, by]));
  const reached = new Set<number>();
  const reach = (pid: number): void => {
    for (const by of byOf.get(pid) ?? []) {
      if (reached.has(by)) continue;
      reached.add(by);
      reach(by);
    }
  };
  const last = pids.at(-1) ?? 0;
  reach(last);
  if (reached.has(last)) database.onDeadlock(reached.size);
};

/** After a statement that may have freed a lock: lets every statement go on that waits no longer, one at a time. */
const unpark = async (database: Database): Promise<void> => {
  for (let nth = 0; nth < database.parked.length;) {
    const running = database.parked[nth];
    if (running === undefined) return;
    if (!running.isDone() && (await isBlocked(database, running.backend.pid))) {
      nth += 1;
    } else if (await watch(database, running)) {
      nth += 1;
    } else {
      database.parked.splice(database.parked.indexOf(running), 1);
      await running.pass();
      // It may have freed locks too.
      nth = 0;
    }
  }
};

function openSession(database: Database, settings: string): Session {
  let options = `${settings} ${SETTINGS} -c clock.seed=${database.schedule.seed}`;
  let own: Backend | undefined;
  let isOpen = false;
  let isEnded = false;
  const ofOwn = (): number => database.parked.findIndex(({ backend }) => backend === own);
  const letGo = (): void => {
    // A ROLLBACK may be sent while the statement before it still waits.
    if (own === undefined || ofOwn() >= 0) return;
    database.free.push(own);
    own = undefined;
  };
  return {
    isOpen: () => isOpen,
    run: (query, onOutcome) =>
      asSimulator(async () => {
        if (isEnded) return 'ended';
        const time = postgresTime(database.schedule.now());
        writeSync(database.clock, time, 0);
        const backend = own ?? (await backendOf(database, options));
        own = backend;
        const sent = /^\s*BEGIN\b/i.test(query.text)
          ? { text: `${query.text}; SET LOCAL clock.began = '${time}'` }
          : { ...query, name: query.values && nameOf(database, query.text) };
        let outcome: Outcome | undefined;
        const done = backend.client.query(sent as pg.QueryConfig).then(
          (result: pg.QueryResult | pg.QueryResult[]) => {
            outcome = { result: Array.isArray(result) ? (result[0] as pg.QueryResult) : result };
          },
          (error: Error) => {
            outcome = { error };
          },
        );
        const pass = async (): Promise<void> => {
          isOpen = backend.client.getTransactionStatus() !== 'I';
          if (isOpen && isEnded) await backend.client.query('ROLLBACK');
          if (!isOpen || isEnded) letGo();
          if (!isEnded && outcome !== undefined) onOutcome(outcome);
        };
        const running = { backend, done, isDone: () => outcome !== undefined, pass };
        if (await watch(database, running)) {
          database.parked.push(running);
          if (database.parked.length > 1) await findDeadlock(database);
          return 'waits';
        }
        await pass();
        if (database.parked.length > 0) await unpark(database);
        return 'over';
      }),
    cancel: () =>
      asSimulator(async () => {
        const at = ofOwn();
        const [running] = at < 0 ? [] : database.parked.splice(at, 1);
        if (running === undefined) return;
        await database.pool.query('SELECT pg_cancel_backend($1)', [running.backend.pid]);
        await running.done;
        await running.pass();
        await unpark(database);
      }),
    async demote() {
      if (own !== undefined || isEnded) return false;
      options += ' -c default_transaction_read_only=on';
      return true;
    },
    end: () =>
      asSimulator(async () => {
        if (isEnded) return;
        isEnded = true;
        if (own === undefined || ofOwn() >= 0) return;
        await own.client.query('ROLLBACK');
        letGo();
        if (database.parked.length > 0) await unpark(database);
      }),
  };
}
