/** A backup of the database, the loss of all that came after it, and the recovery as a person does it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { History } from '../chaos/history.ts';
import type { Served } from '../chaos/serve-orders.ts';
import { orderIdOf } from '../../src/core/signals/find-order-id.ts';
import { LiveMessage } from '../../src/core/domain/live-message.ts';
import { type SettingsRules } from '../../src/core/locations/locations.ts';
import { resumeLocation } from '../../src/core/kitchens/pause-location.ts';
import { knownFrom, recoverOrders } from '../../src/core/orders/recover-orders.ts';
import type { Act } from './faults.ts';
import type { Invariants } from './invariants.ts';
import { asSimulator, inOrder } from './schedule.ts';
import type { Broker } from './simulated-pubsub.ts';

/** What a process that dies has sent arrives within this time. */
const ARRIVES_MS = 5_000;
const AGAIN_MS = 500;
/** The longest time from the loss until the service runs again: the placement deadline and more. */
const LONGEST_MS = 90_000;
/** The share of losses during which the platform moves an order. */
const MOVED = 0.5;
/** The share of recoveries whose first run reads the wrong topic, and the share that read no live messages. */
const WRONG = 0.3;
const UNREAD = 0.3;

/** A statement of the simulator that waits for somebody else's lock gives up after this real time. */
const LOCK = `SET LOCAL lock_timeout = '300ms'`;
const LOCKED = '55P03';

/** SQL that copies all tables and sequences of the service. Only what is committed is copied. */
const BACK_UP = `
  DO $$ DECLARE each record; BEGIN
    CREATE SCHEMA backup;
    CREATE TABLE backup.sequences AS SELECT sequencename AS name, last_value FROM pg_sequences WHERE schemaname = 'expediter';
    FOR each IN SELECT relname AS name FROM pg_class
                WHERE relnamespace = 'expediter'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    LOOP EXECUTE format('CREATE TABLE backup.%I AS TABLE expediter.%1$I', each.name); END LOOP;
  END $$`;
/** SQL that puts back what was copied, and calls no trigger. */
const RESTORE = `
  DO $$ DECLARE each record; BEGIN
    SET LOCAL session_replication_role = replica;
    FOR each IN SELECT relname AS name, (SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
                                         WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS fields
                FROM pg_class c
                WHERE relnamespace = 'expediter'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    LOOP
      EXECUTE format('DELETE FROM expediter.%I', each.name);
      EXECUTE format('INSERT INTO expediter.%I (%s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM backup.%1$I', each.name, each.fields);
    END LOOP;
    PERFORM setval(format('expediter.%I', name)::regclass, coalesce(last_value, 1), last_value IS NOT NULL) FROM backup.sequences;
    DROP SCHEMA backup CASCADE;
  END $$`;

export type Restoring = {
  act(act: Act): Promise<void>;
  /** Continues the recovery, if there is one. @returns how much it has found to do: a person repeats it until that is 0 */
  goOn(): Promise<number>;
  /** True if the recovery did not read where each order was. */
  isBlind(): boolean;
  /** Sequences up to this one may be missing since the loss. 0 if nothing was lost. */
  floor(): number;
};

/** @param about.stop kills all processes, and lets none start until what it returns is called */
export function restorer(about: {
  server: pg.Pool;
  pool: pg.Pool;
  rules: SettingsRules;
  deadlineS: number;
  history: History;
  broker: Broker;
  invariants: Pick<Invariants, 'onRestored'>;
  served: Pick<Served, 'acknowledged'>;
  locations: () => readonly string[];
  /** Moves an order to another location. `by`, from 0 to 1, chooses it. */
  move: (by: number) => void;
  stop: () => () => void;
}): Restoring {
  const { server, pool, rules, deadlineS, history, broker, invariants, served, locations, move, stop } = about;
  let recovery: { lostFrom: Date; began: string | undefined; until: Date; readsLive: boolean } | undefined;
  let floor = 0;

  /** Runs a statement of the simulator, again and again while somebody else's transaction locks a table. */
  const asServer = async (text: string): Promise<void> => {
    for (;;) {
      const isDone = await inOrder(() =>
        asSimulator(async () => {
          const client = await server.connect();
          try {
            await client.query(`BEGIN ISOLATION LEVEL REPEATABLE READ; ${LOCK}; ${text}; COMMIT`);
            return true;
          } catch (error) {
            await client.query('ROLLBACK');
            if ((error as { code?: string }).code !== LOCKED) throw error;
            return false;
          } finally {
            client.release();
          }
        }),
      );
      if (isDone) return;
      await sleep(AGAIN_MS);
    }
  };

  const run = async (topic: 'right' | 'wrong'): Promise<number> => {
    if (recovery === undefined) return 0;
    const { lostFrom, began, until, readsLive } = recovery;
    const signals = broker.published('orders').flatMap(({ data, attributes, publishTime }) => {
      const id = orderIdOf({ data, attributes });
      return id === undefined ? [] : [{ id, publishedAt: publishTime }];
    });
    const live = broker.published('order-status').map(({ data, publishTime }) => ({
      message: LiveMessage.parse(JSON.parse(data.toString())),
      publishedAt: publishTime,
    }));
    const known = topic === 'wrong' ? [] : knownFrom({ signals, live: readsLive ? live : [], until });
    const { left, ...did } = await recoverOrders(pool, known, {
      rules,
      lostFrom,
      began,
      deadlineS,
      running: false,
      by: { kind: 'command_line', id: 'simulation', name: 'simulation' },
    });
    history.note('recovered', { ...did, left: left.orders.length });
    return did.replayed + left.orders.filter(({ forOperator }) => !forOperator).length;
  };

  return {
    async act({ by, forMs }) {
      const lostFrom = new Date();
      await asServer(BACK_UP);
      history.note('backup made');
      const { acknowledged } = served;
      const kept = acknowledged.length;
      await sleep(forMs);
      const start = stop();
      invariants.onRestored(Infinity);
      await sleep(ARRIVES_MS);
      // A webhook that was spilled before the backup may have been read from the spill after it.
      const known = acknowledged.slice(0, kept).filter(({ outcome }) => outcome !== 'accepted');
      acknowledged.splice(0, acknowledged.length, ...known);
      await asServer(RESTORE);
      history.note('database restored');
      if ((by * 17) % 1 < MOVED) move((by * 37) % 1);
      const { rows } = await pool.query<{ now: Date; began: string }>(
        'SELECT clock_timestamp() AS now, clock_timestamp()::text AS began',
      );
      const [{ now, began } = { now: new Date(), began: '' }] = rows;
      recovery = { lostFrom, began: undefined, until: now, readsLive: (by * 7) % 1 > UNREAD };
      for (const topic of (by * 13) % 1 < WRONG ? (['wrong', 'right'] as const) : (['right'] as const)) {
        await run(topic);
        recovery.began = began;
      }
      const floors = await pool.query<{ floor: number }>('SELECT floor FROM sequence_floor');
      floor = floors.rows[0]?.floor ?? 0;
      invariants.onRestored(floor);
      await sleep(LONGEST_MS * ((by * 29) % 1) ** 2);
      start();
    },
    async goOn() {
      if (recovery === undefined) return 0;
      // Who had resumed a location sees that it is paused again.
      for (const locationId of locations()) await resumeLocation(pool, locationId);
      return run('right');
    },
    isBlind: () => recovery?.readsLive === false,
    floor: () => floor,
  };
}
