/** A pool of connections as `pg` has it, to a simulated Postgres over a simulated network. */
import { EventEmitter } from 'node:events';
import pg from 'pg';
import { asParty, asSimulator, currentParty, theSchedule, type Party } from './schedule.ts';
import { connectionOf, endSession, lost, theWire } from './simulated-connection.ts';
import type { Client, Connection, Limits } from './simulated-connection.ts';
import type { Query } from './simulated-postgres.ts';

type Options = {
  max?: number;
  options?: string;
  connectionTimeoutMillis?: number;
  idleTimeoutMillis?: number;
  query_timeout?: number;
};

type Waiting = { resolve(client: Client): void; reject(error: Error): void; timer: NodeJS.Timeout | undefined };

type Pool = {
  readonly party: Party;
  readonly most: number;
  /** Settings of Postgres for each session. */
  readonly settings: string;
  readonly limits: Limits;
  readonly connectMs: number;
  readonly idleMs: number;
  readonly emitter: EventEmitter;
  readonly all: Set<Connection>;
  readonly idle: Connection[];
  readonly waiting: Waiting[];
  /** How many connections are being made. */
  opening: number;
  isEnding: boolean;
};

/** The milliseconds of a setting, as Postgres reads its units. 0 if it is not set. */
function settingOf(options: string, name: string): number {
  const [, value = '0', unit = ''] = new RegExp(String.raw`\b${name}=(\d+)(\w*)`).exec(options) ?? [];
  const ms = { '': 1, ms: 1, s: 1_000, min: 60_000 }[unit];
  if (ms === undefined) throw new Error(`${name} has the unit ${unit}`);
  return Number(value) * ms;
}

const refused = (): Error => Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:5432'), { code: 'ECONNREFUSED' });

/** What `pg.Pool` makes in a party. */
function simulatedPool(party: Party, options: Options): object {
  const { max = 10, options: settings = '', connectionTimeoutMillis = 0, idleTimeoutMillis = 10_000 } = options;
  const pool: Pool = {
    party,
    most: max,
    settings,
    limits: {
      lockMs: settingOf(settings, 'lock_timeout'),
      statementMs: settingOf(settings, 'statement_timeout'),
      idleInTransactionMs: settingOf(settings, 'idle_in_transaction_session_timeout'),
      queryMs: options.query_timeout ?? 0,
    },
    connectMs: connectionTimeoutMillis,
    idleMs: idleTimeoutMillis,
    emitter: new EventEmitter(),
    all: new Set(),
    idle: [],
    waiting: [],
    opening: 0,
    isEnding: false,
  };
  const asInPg = Object.assign(pool.emitter, {
    connect: () => connect(pool),
    async query(config: string | Query, values?: unknown[]): Promise<pg.QueryResult> {
      const client = await connect(pool);
      const ignore = (): void => {};
      client.on('error', ignore);
      try {
        const result = await client.query(config, values);
        client.off('error', ignore);
        client.release();
        return result;
      } catch (error) {
        client.off('error', ignore);
        client.release(error as Error);
        throw error;
      }
    },
    async end(): Promise<void> {
      pool.isEnding = true;
      while (pool.idle[0] !== undefined) close(pool, pool.idle[0]);
    },
  });
  return Object.defineProperties(asInPg, {
    idleCount: { get: () => pool.idle.length },
    totalCount: { get: () => pool.all.size },
    waitingCount: { get: () => pool.waiting.length },
  });
}

function connect(pool: Pool): Promise<Client> {
  return new Promise((resolve, reject) => {
    if (pool.isEnding) {
      reject(new Error('Cannot use a pool after calling end on the pool'));
      return;
    }
    const one: Waiting = { resolve, reject, timer: undefined };
    if (pool.connectMs > 0) {
      one.timer = setTimeout(() => {
        const at = pool.waiting.indexOf(one);
        if (at < 0) return;
        pool.waiting.splice(at, 1);
        reject(new Error('timeout exceeded when trying to connect'));
      }, pool.connectMs);
    }
    pool.waiting.push(one);
    serveWaiting(pool);
  });
}

function serveWaiting(pool: Pool): void {
  const { waiting, idle } = pool;
  while (waiting.length > 0 && idle.length > 0) {
    const connection = idle.pop();
    const first = waiting.shift();
    if (connection === undefined || first === undefined) return;
    clearTimeout(connection.idleTimer);
    clearTimeout(first.timer);
    first.resolve(connection.client);
  }
  while (waiting.length > pool.opening && pool.all.size + pool.opening < pool.most) open(pool);
}

function open(pool: Pool): void {
  const { party, limits } = pool;
  const schedule = theSchedule();
  const { faults, postgres } = theWire();
  pool.opening += 1;
  const fate = faults.ofConnect(party);
  if (faults.isCut(party, 'postgres')) {
    // Nothing answers. Those who wait have their own limits.
    schedule.after(3_000, party, () => {
      pool.opening -= 1;
      serveWaiting(pool);
    });
    return;
  }
  if (fate.kind === 'refused' || faults.isDown('postgres', party)) {
    schedule.after(fate.thereMs, party, () => {
      pool.opening -= 1;
      failFirst(pool, refused());
    });
    return;
  }
  schedule.after(fate.thereMs, undefined, async () => {
    const session = await postgres.connect(
      pool.settings.replaceAll(
        /-c (?:lock_timeout|statement_timeout|idle_in_transaction_session_timeout|synchronous_commit)=\S+/g,
        '',
      ),
    );
    if (party.isDead) return session.end();
    const connection = connectionOf(
      { party, session, limits },
      {
        breakOff: (broken, afterMs) => breakOff(pool, broken, afterMs),
        release: (released, error) => takeBack(pool, released, error),
      },
    );
    faults.watch({
      party,
      breakOff: (noticedMs) => asParty(party, () => connection.breakOff(noticedMs)),
      demote: session.demote,
      end: async () => endSession(connection),
    });
    schedule.after(fate.backMs, party, () => {
      pool.opening -= 1;
      if (connection.isBroken) return failFirst(pool, lost());
      pool.all.add(connection);
      pool.emitter.emit('connect', connection.client);
      connection.client.release();
    });
    return undefined;
  });
}

/** Tells the first who waits that there is no connection. */
function failFirst({ waiting }: Pool, error: Error): void {
  const first = waiting.shift();
  clearTimeout(first?.timer);
  first?.reject(error);
}

/** Takes a connection back from its client. */
function takeBack(pool: Pool, connection: Connection, error?: Error | boolean): void {
  if (!pool.all.has(connection)) return serveWaiting(pool);
  if (error !== undefined && error !== false) return close(pool, connection);
  if (pool.isEnding) return close(pool, connection);
  pool.idle.push(connection);
  if (pool.idleMs > 0) {
    connection.idleTimer = setTimeout(() => {
      if (pool.idle.includes(connection)) close(pool, connection);
    }, pool.idleMs);
  }
  serveWaiting(pool);
}

function close(pool: Pool, connection: Connection, afterMs?: number): void {
  connection.isBroken = true;
  clearTimeout(connection.idleTimer);
  pool.all.delete(connection);
  const at = pool.idle.indexOf(connection);
  if (at >= 0) pool.idle.splice(at, 1);
  endSession(connection, afterMs);
  serveWaiting(pool);
}

function breakOff(pool: Pool, connection: Connection, afterMs: number): void {
  if (connection.isBroken) return;
  const [wasIdle, isOpening] = [pool.idle.includes(connection), !pool.all.has(connection)];
  close(pool, connection, afterMs);
  if (isOpening) return;
  connection.fail();
  const error = lost();
  connection.client.emit('error', error);
  if (wasIdle) pool.emitter.emit('error', error, connection.client);
}

/** Makes `new pg.Pool` in a party a simulated pool. */
export function installSimulatedPool(): void {
  pg.Pool = new Proxy(pg.Pool, {
    construct(Real, about: [Options?]) {
      const party = currentParty();
      return party === undefined
        ? asSimulator(() => new Real(about[0] as pg.PoolConfig))
        : simulatedPool(party, about[0] ?? {});
    },
  });
}
