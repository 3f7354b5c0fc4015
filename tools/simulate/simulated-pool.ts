/** A pool of connections as `pg` has it, to a simulated Postgres over a simulated network. */
import { EventEmitter } from 'node:events';
import pg from 'pg';
import { pick } from '../chaos/chance.ts';
import { asParty, asSimulator, currentParty, theSchedule, type Party } from './schedule.ts';
import type { Faults, Moment } from './faults.ts';
import type { Outcome, Query, Session, SimulatedPostgres } from './simulated-postgres.ts';

/** What connects the processes of a run with its database. */
export type Wire = {
  postgres: SimulatedPostgres;
  faults: Faults;
  /** Sees each statement before it is sent, in the party that sends it. It may kill the party. */
  onSend(party: Party, label: string, moment: Moment): void;
  /** Sees each result when Postgres has made it. */
  onResult(party: Party, query: Query, outcome: Outcome): void;
  /** Locks the row of an order for some time, if nobody has locked it. */
  holdRow(order: string, forMs: number): Promise<void>;
  /** Sees each statement of a transaction that was not sent at once after the answer to the one before. */
  onGap(party: Party, label: string, ms: number): void;
};

let wire: Wire | undefined;
export const setWire = (to: Wire | undefined): void => {
  wire = to;
};

type Options = {
  max?: number;
  options?: string;
  connectionTimeoutMillis?: number;
  idleTimeoutMillis?: number;
  query_timeout?: number;
};
type Client = EventEmitter & {
  query(config: string | Query, values?: unknown[]): Promise<pg.QueryResult>;
  release(error?: Error | boolean): void;
};
type Connection = {
  client: Client;
  isBroken: boolean;
  /** Lets the statement under way fail. */
  fail(): void;
  /** Ends its session after `afterMs`. By default, when what was sent has arrived: Postgres learns of the end only then. */
  end(afterMs?: number): void;
  idleTimer: NodeJS.Timeout | undefined;
};

/** A label of a statement that is the same in each run: its name, or its first words. */
export function labelOf({ name, text }: Query): string {
  return name ?? text.replaceAll(/\s+/g, ' ').trim().slice(0, 60);
}

/** The orders that a statement is about, by the ids in its values. Arrays are sent as Postgres's binary format. */
const ordersOf = ({ values = [] }: Query): string[] => [
  ...new Set(
    values
      .flat()
      .flatMap((value) =>
        Buffer.isBuffer(value) ? [value.toString('latin1')] : typeof value === 'string' ? [value] : [],
      )
      .flatMap((text) => text.match(/chaos-\d+-\d+/g) ?? []),
  ),
];

/** The milliseconds of a setting, as Postgres reads its units. 0 if it is not set. */
function settingOf(options: string, name: string): number {
  const [, value = '0', unit = ''] = new RegExp(String.raw`\b${name}=(\d+)(\w*)`).exec(options) ?? [];
  const ms = { '': 1, ms: 1, s: 1_000, min: 60_000 }[unit];
  if (ms === undefined) throw new Error(`${name} has the unit ${unit}`);
  return Number(value) * ms;
}

const lost = (): Error => new Error('Connection terminated unexpectedly');
const refused = (): Error => Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:5432'), { code: 'ECONNREFUSED' });

/** What `pg.Pool` makes in a party. */
function simulatedPool(party: Party, options: Options): object {
  const {
    max = 10,
    options: settings = '',
    connectionTimeoutMillis = 0,
    idleTimeoutMillis = 10_000,
    query_timeout = 0,
  } = options;
  const lockMs = settingOf(settings, 'lock_timeout');
  const statementMs = settingOf(settings, 'statement_timeout');
  const idleInTransactionMs = settingOf(settings, 'idle_in_transaction_session_timeout');
  const emitter = new EventEmitter();
  const all = new Set<Connection>();
  const idle: Connection[] = [];
  const waiting: { resolve(client: Client): void; reject(error: Error): void; timer: NodeJS.Timeout | undefined }[] =
    [];
  let isEnding = false;

  const close = (connection: Connection, afterMs?: number): void => {
    connection.isBroken = true;
    clearTimeout(connection.idleTimer);
    all.delete(connection);
    const at = idle.indexOf(connection);
    if (at >= 0) idle.splice(at, 1);
    connection.end(afterMs);
    serveWaiting();
  };
  /** The client learns that its connection is gone. The server learns it after `afterMs`. */
  const breakOff = (connection: Connection, afterMs: number): void => {
    if (connection.isBroken) return;
    const [wasIdle, isOpening] = [idle.includes(connection), !all.has(connection)];
    close(connection, afterMs);
    if (isOpening) return;
    connection.fail();
    const error = lost();
    connection.client.emit('error', error);
    if (wasIdle) emitter.emit('error', error, connection.client);
  };

  const connectionOf = (session: Session): Connection => {
    let queue: Promise<unknown> = Promise.resolve();
    let lockLimit = lockMs;
    let idling: { cancel(): void } | undefined;
    let answeredAt = 0;
    let arrivesAt = 0;
    const send = (query: Query): Promise<pg.QueryResult> =>
      new Promise((resolve, reject) => {
        const schedule = theSchedule();
        if (wire === undefined) throw new Error('there is no wire');
        const { faults, onSend, onResult, onGap, holdRow } = wire;
        const label = labelOf(query);
        if (connection.isBroken) {
          reject(new Error('Client has encountered a connection error and is not queryable'));
          return;
        }
        const orders = ordersOf(query);
        onSend(party, label, orders.length > 0 ? 'sent about an order' : 'sent');
        const fate = faults.ofStatement(party, label, orders.length > 0);
        // A process that dies here has perhaps sent it.
        if (party.isDead && !fate.arrivesAnyway) return;
        // Code takes no virtual time, so a gap is a wait for something else.
        if (session.isOpen() && schedule.now() > answeredAt) onGap(party, label, schedule.now() - answeredAt);
        idling?.cancel();
        let isOver = false;
        const finish = (run: () => void): void => {
          if (isOver) return;
          isOver = true;
          if (reading !== undefined) clearTimeout(reading);
          run();
        };
        connection.fail = () => finish(() => reject(lost()));
        // Like pg's own: the query fails, and its connection stays as it is.
        const reading =
          query_timeout > 0
            ? setTimeout(() => {
                answeredAt = schedule.now();
                finish(() => reject(new Error('Query read timeout')));
              }, query_timeout)
            : undefined;
        const isCut = (): boolean => faults.isCut(party, 'postgres');
        const deliver = (outcome: Outcome): void => {
          onResult(party, query, outcome);
          // A transaction whose client says nothing any more ends.
          if (session.isOpen() && idleInTransactionMs > 0) {
            idling = schedule.after(idleInTransactionMs, undefined, async () => {
              await session.end();
              schedule.after(0, party, () => breakOff(connection, 0));
            });
          }
          schedule.after(fate.backMs, party, () => {
            if (isCut()) return;
            answeredAt = schedule.now();
            if (fate.kind === 'lost after') {
              finish(() => reject(lost()));
              breakOff(connection, fate.noticedMs);
            } else {
              finish(() => ('error' in outcome ? reject(outcome.error) : resolve(outcome.result)));
            }
          });
        };
        const arrive = async (): Promise<void> => {
          if (party.isDead && !fate.arrivesAnyway) return;
          if (isCut()) return;
          if (fate.heldMs > 0) await holdRow(pick(orders, schedule.draw(`${label} order`)), fate.heldMs);
          const limit = /SET LOCAL lock_timeout = (\d+)/.exec(query.text)?.[1];
          if (limit !== undefined) lockLimit = Number(limit);
          if (/^\s*(COMMIT|ROLLBACK)/i.test(query.text)) lockLimit = lockMs;
          const text = query.text.replaceAll(/SET LOCAL lock_timeout = \d+/g, 'SET LOCAL clock.lock_timeout = 0');
          let isAnswered = false;
          let cause: { code: string; message: string } | undefined;
          const became = await session.run(text === query.text ? query : { ...query, text }, (outcome) => {
            isAnswered = true;
            // A real time limit would be one of real time.
            if (cause !== undefined && 'error' in outcome) Object.assign(outcome.error, cause);
            deliver(outcome);
          });
          if (became === 'ended') schedule.after(fate.backMs, party, () => breakOff(connection, 0));
          if (became !== 'waits') return;
          schedule.note(`${party.name} waits for a lock: ${label}`);
          const waits = [
            { ms: lockLimit, code: '55P03', message: 'canceling statement due to lock timeout' },
            { ms: statementMs, code: '57014', message: 'canceling statement due to statement timeout' },
          ];
          for (const { ms, ...about } of waits) {
            if (ms === 0) continue;
            schedule.after(ms, undefined, async () => {
              if (isAnswered) return;
              cause = about;
              await session.cancel();
            });
          }
        };
        if (fate.kind === 'lost before') {
          schedule.after(fate.thereMs, party, () => {
            finish(() => reject(lost()));
            breakOff(connection, fate.noticedMs);
          });
        } else {
          arrivesAt = schedule.now() + fate.thereMs;
          schedule.after(fate.thereMs, undefined, arrive);
        }
      });
    const client: Client = Object.assign(new EventEmitter(), {
      query(config: string | Query, values?: unknown[]): Promise<pg.QueryResult> {
        const query =
          typeof config === 'string' ? { text: config, values } : { ...config, values: config.values ?? values };
        const answer = queue.then(() => send(query));
        queue = answer.catch(() => {});
        return answer;
      },
      release(error?: Error | boolean): void {
        if (!all.has(connection)) return serveWaiting();
        if (error !== undefined && error !== false) return close(connection);
        if (isEnding) return close(connection);
        idle.push(connection);
        if (idleTimeoutMillis > 0) {
          connection.idleTimer = setTimeout(() => {
            if (idle.includes(connection)) close(connection);
          }, idleTimeoutMillis);
        }
        serveWaiting();
      },
    });
    const connection: Connection = {
      client,
      isBroken: false,
      fail() {},
      end: (afterMs = Math.max(0, arrivesAt - theSchedule().now())) =>
        void theSchedule().after(afterMs, undefined, session.end),
      idleTimer: undefined,
    };
    return connection;
  };

  let opening = 0;
  const open = (): void => {
    const schedule = theSchedule();
    if (wire === undefined) throw new Error('there is no wire');
    const { faults, postgres } = wire;
    opening += 1;
    const fate = faults.ofConnect(party);
    if (faults.isCut(party, 'postgres')) {
      // Nothing answers. Those who wait have their own limits.
      schedule.after(3_000, party, () => {
        opening -= 1;
        serveWaiting();
      });
      return;
    }
    if (fate.kind === 'refused' || faults.isDown('postgres', party)) {
      schedule.after(fate.thereMs, party, () => {
        opening -= 1;
        const first = waiting.shift();
        clearTimeout(first?.timer);
        first?.reject(refused());
      });
      return;
    }
    schedule.after(fate.thereMs, undefined, async () => {
      const session = await postgres.connect(
        settings.replaceAll(
          /-c (?:lock_timeout|statement_timeout|idle_in_transaction_session_timeout|synchronous_commit)=\S+/g,
          '',
        ),
      );
      if (party.isDead) return session.end();
      const connection = connectionOf(session);
      faults.watch({
        party,
        breakOff: (noticedMs) => asParty(party, () => breakOff(connection, noticedMs)),
        demote: session.demote,
        end: async () => connection.end(),
      });
      schedule.after(fate.backMs, party, () => {
        opening -= 1;
        if (connection.isBroken) {
          const first = waiting.shift();
          clearTimeout(first?.timer);
          first?.reject(lost());
          return;
        }
        all.add(connection);
        emitter.emit('connect', connection.client);
        connection.client.release();
      });
      return undefined;
    });
  };

  function serveWaiting(): void {
    while (waiting.length > 0 && idle.length > 0) {
      const connection = idle.pop();
      const first = waiting.shift();
      if (connection === undefined || first === undefined) return;
      clearTimeout(connection.idleTimer);
      clearTimeout(first.timer);
      first.resolve(connection.client);
    }
    while (waiting.length > opening && all.size + opening < max) open();
  }

  const connect = (): Promise<Client> =>
    new Promise((resolve, reject) => {
      if (isEnding) {
        reject(new Error('Cannot use a pool after calling end on the pool'));
        return;
      }
      const one = { resolve, reject, timer: undefined as NodeJS.Timeout | undefined };
      if (connectionTimeoutMillis > 0) {
        one.timer = setTimeout(() => {
          const at = waiting.indexOf(one);
          if (at < 0) return;
          waiting.splice(at, 1);
          reject(new Error('timeout exceeded when trying to connect'));
        }, connectionTimeoutMillis);
      }
      waiting.push(one);
      serveWaiting();
    });

  const pool = Object.assign(emitter, {
    connect,
    async query(config: string | Query, values?: unknown[]): Promise<pg.QueryResult> {
      const client = await connect();
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
      isEnding = true;
      while (idle[0] !== undefined) close(idle[0]);
    },
  });
  return Object.defineProperties(pool, {
    idleCount: { get: () => idle.length },
    totalCount: { get: () => all.size },
    waitingCount: { get: () => waiting.length },
  });
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
