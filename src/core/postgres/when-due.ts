import { hash } from 'node:crypto';
import type { Pool } from 'pg';
import { restAfter } from './loops.ts';

/** Pause between two looks: a multiple of a look's duration within limits, because an old snapshot makes looks slow. */
const PAUSE = { leastMs: 1_000, mostMs: 5_000, times: 20 };
/** After this time work is done unasked, so that what a look does not see is found, too. */
const UNASKED_MS = 60_000;

type Waiting = PromiseWithResolvers<void> & { since: number };
const looks = new WeakMap<Pick<Pool, 'query'>, (sql: string) => Promise<void>>();

/**
 * Resolves when there may be work of some kind: when `sql` is true, after a minute, or when Postgres does not answer, so
 * that the work reports it. All that wait are looked for in one statement a second, because many queries that find nothing
 * are what an idle process spends most of its time on.
 * @param sql a boolean that takes the first row of an index at most, such as `EXISTS (…)`
 */
export function whenDue(pool: Pick<Pool, 'query'>, sql: string): Promise<void> {
  const look = looks.get(pool) ?? lookWith(pool);
  looks.set(pool, look);
  return look(sql);
}

/** Whether there may be work of each kind now. */
export async function areDue(pool: Pick<Pool, 'query'>, kinds: readonly string[]): Promise<boolean[]> {
  const text = `SELECT ARRAY[${kinds.map((sql) => `coalesce((${sql}), false)`).join(',\n')}] AS due`;
  const { rows } = await pool.query<{ due: boolean[] }>({ name: `look ${hash('sha1', text)}`, text });
  return rows[0]?.due ?? [];
}

function lookWith(pool: Pick<Pool, 'query'>): (sql: string) => Promise<void> {
  /** All that were ever waited for, so that the statement stays the same, and is planned once. */
  const known = new Set<string>();
  const waiting = new Map<string, Waiting>();
  let isLooking = false;

  const look = async (): Promise<void> => {
    const began = performance.now();
    const asked = [...known];
    const due = await areDue(pool, asked).catch(() => undefined);
    const ended = performance.now();
    for (const [sql, { resolve, since }] of waiting) {
      const nth = asked.indexOf(sql);
      // guard: unasked-each-minute
      const isUnasked = due === undefined || ended - since >= UNASKED_MS;
      if (nth < 0 || (due?.[nth] !== true && !isUnasked)) continue;
      waiting.delete(sql);
      resolve();
    }
    isLooking = false;
    if (waiting.size > 0) lookLater(restAfter(ended - began, PAUSE));
  };
  const lookLater = (milliseconds: number): void => {
    if (isLooking) return;
    isLooking = true;
    setTimeout(() => void look(), milliseconds).unref();
  };

  return (sql) => {
    known.add(sql);
    const waits = waiting.get(sql) ?? { ...Promise.withResolvers<void>(), since: performance.now() };
    waiting.set(sql, waits);
    lookLater(PAUSE.leastMs);
    return waits.promise;
  };
}
