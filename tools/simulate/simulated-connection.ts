/** One connection of a pool to a simulated Postgres, and what happens to a statement on the way there and back. */
import { EventEmitter } from 'node:events';
import type pg from 'pg';
import { pick } from '../chaos/chance.ts';
import type { Fate, Faults, Moment } from './faults.ts';
import { theSchedule, type Party } from './schedule.ts';
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
export function theWire(): Wire {
  if (wire === undefined) throw new Error('there is no wire');
  return wire;
}

export type Client = EventEmitter & {
  query(config: string | Query, values?: unknown[]): Promise<pg.QueryResult>;
  release(error?: Error | boolean): void;
};

/** How long is waited for what, in milliseconds. 0 is for ever. */
export type Limits = { lockMs: number; statementMs: number; idleInTransactionMs: number; queryMs: number };

export type Connection = {
  readonly party: Party;
  readonly session: Session;
  readonly limits: Limits;
  readonly client: Client;
  isBroken: boolean;
  /** The limit for locks of the transaction. */
  lockMs: number;
  /** Ends the transaction of a client that says nothing any more. */
  idling: { cancel(): void } | undefined;
  /** When the client got its last answer. */
  answeredAt: number;
  /** When what was sent last arrives. */
  arrivesAt: number;
  idleTimer: NodeJS.Timeout | undefined;
  /** Lets the statement under way fail. */
  fail(): void;
  /** The client learns that its connection is gone. The server learns it after `afterMs`. */
  breakOff(afterMs: number): void;
};

/** A statement under way. */
type Statement = {
  readonly wire: Wire;
  readonly connection: Connection;
  readonly query: Query;
  readonly label: string;
  /** The orders that it is about. */
  readonly orders: readonly string[];
  readonly fate: Fate;
  /** Gives the client its answer, if it still waits for one. */
  answer(outcome: Outcome): void;
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

export const lost = (): Error => new Error('Connection terminated unexpectedly');

/** Makes a connection. Its pool says what it does when it breaks off, and when its client is released. */
export function connectionOf(
  about: { party: Party; session: Session; limits: Limits },
  ofPool: {
    breakOff(connection: Connection, afterMs: number): void;
    release(connection: Connection, error?: Error | boolean): void;
  },
): Connection {
  let queue: Promise<unknown> = Promise.resolve();
  const client: Client = Object.assign(new EventEmitter(), {
    query(config: string | Query, values?: unknown[]): Promise<pg.QueryResult> {
      const query =
        typeof config === 'string' ? { text: config, values } : { ...config, values: config.values ?? values };
      const answer = queue.then(() => send(connection, query));
      queue = answer.catch(() => {});
      return answer;
    },
    release: (error?: Error | boolean) => ofPool.release(connection, error),
  });
  const connection: Connection = {
    ...about,
    client,
    isBroken: false,
    lockMs: about.limits.lockMs,
    idling: undefined,
    answeredAt: 0,
    arrivesAt: 0,
    idleTimer: undefined,
    fail() {},
    breakOff: (afterMs) => ofPool.breakOff(connection, afterMs),
  };
  return connection;
}

/** Ends its session after `afterMs`. By default, when what was sent has arrived: Postgres learns of the end only then. */
export function endSession(
  { session, arrivesAt }: Connection,
  afterMs = Math.max(0, arrivesAt - theSchedule().now()),
): void {
  theSchedule().after(afterMs, undefined, session.end);
}

function send(connection: Connection, query: Query): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    const { party, session, limits } = connection;
    const schedule = theSchedule();
    const wire = theWire();
    const label = labelOf(query);
    if (connection.isBroken) {
      reject(new Error('Client has encountered a connection error and is not queryable'));
      return;
    }
    const orders = ordersOf(query);
    wire.onSend(party, label, orders.length > 0 ? 'sent about an order' : 'sent');
    const fate = wire.faults.ofStatement(party, label, orders.length > 0);
    // A process that dies here has perhaps sent it.
    if (party.isDead && !fate.arrivesAnyway) return;
    // Code takes no virtual time, so a gap is a wait for something else.
    if (session.isOpen() && schedule.now() > connection.answeredAt)
      wire.onGap(party, label, schedule.now() - connection.answeredAt);
    connection.idling?.cancel();
    let isOver = false;
    const answer = (outcome: Outcome): void => {
      if (isOver) return;
      isOver = true;
      if (reading !== undefined) clearTimeout(reading);
      if ('error' in outcome) reject(outcome.error);
      else resolve(outcome.result);
    };
    connection.fail = () => answer({ error: lost() });
    // Like pg's own: the query fails, and its connection stays as it is.
    const reading =
      limits.queryMs > 0
        ? setTimeout(() => {
            connection.answeredAt = schedule.now();
            answer({ error: new Error('Query read timeout') });
          }, limits.queryMs)
        : undefined;
    const statement: Statement = { wire, connection, query, label, orders, fate, answer };
    if (fate.kind === 'lost before') {
      schedule.after(fate.thereMs, party, () => {
        answer({ error: lost() });
        connection.breakOff(fate.noticedMs);
      });
    } else {
      connection.arrivesAt = schedule.now() + fate.thereMs;
      schedule.after(fate.thereMs, undefined, () => arrive(statement));
    }
  });
}

/** What happens to a statement when it has arrived at Postgres. */
async function arrive(statement: Statement): Promise<void> {
  const { wire, connection, query, label, orders, fate } = statement;
  const { party, session } = connection;
  const schedule = theSchedule();
  if (party.isDead && !fate.arrivesAnyway) return;
  if (wire.faults.isCut(party, 'postgres')) return;
  if (fate.heldMs > 0) await wire.holdRow(pick(orders, schedule.draw(`${label} order`)), fate.heldMs);
  const limit = /SET LOCAL lock_timeout = (\d+)/.exec(query.text)?.[1];
  if (limit !== undefined) connection.lockMs = Number(limit);
  if (/^\s*(COMMIT|ROLLBACK)/i.test(query.text)) connection.lockMs = connection.limits.lockMs;
  const text = query.text.replaceAll(/SET LOCAL lock_timeout = \d+/g, 'SET LOCAL clock.lock_timeout = 0');
  let isAnswered = false;
  let cause: { code: string; message: string } | undefined;
  const became = await session.run(text === query.text ? query : { ...query, text }, (outcome) => {
    isAnswered = true;
    // A real time limit would be one of real time.
    if (cause !== undefined && 'error' in outcome) Object.assign(outcome.error, cause);
    deliver(statement, outcome);
  });
  if (became === 'ended') schedule.after(fate.backMs, party, () => connection.breakOff(0));
  if (became !== 'waits') return;
  schedule.note(`${party.name} waits for a lock: ${label}`);
  const waits = [
    { ms: connection.lockMs, code: '55P03', message: 'canceling statement due to lock timeout' },
    { ms: connection.limits.statementMs, code: '57014', message: 'canceling statement due to statement timeout' },
  ];
  for (const { ms, ...about } of waits) {
    if (ms === 0) continue;
    schedule.after(ms, undefined, async () => {
      if (isAnswered) return;
      cause = about;
      await session.cancel();
    });
  }
}

/** Sends what became of a statement back to its client. */
function deliver({ wire, connection, query, fate, answer }: Statement, outcome: Outcome): void {
  const { party, session, limits } = connection;
  const schedule = theSchedule();
  wire.onResult(party, query, outcome);
  // A transaction whose client says nothing any more ends.
  if (session.isOpen() && limits.idleInTransactionMs > 0) {
    connection.idling = schedule.after(limits.idleInTransactionMs, undefined, async () => {
      await session.end();
      schedule.after(0, party, () => connection.breakOff(0));
    });
  }
  schedule.after(fate.backMs, party, () => {
    if (wire.faults.isCut(party, 'postgres')) return;
    connection.answeredAt = schedule.now();
    if (fate.kind === 'lost after') {
      answer({ error: lost() });
      connection.breakOff(fate.noticedMs);
    } else {
      answer(outcome);
    }
  });
}
