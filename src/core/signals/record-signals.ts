import type { Pool } from 'pg';
import { isAboutStatement } from '../postgres/transactions.ts';
import { IS_UNFINISHED, lockedFirst, restarting } from '../transitions/placement-sql.ts';

/**
 * recorded: there is something to place now. The order is new, or its placement failed or was held before the order was
 * ever read. known: all else.
 */
export type SignalOutcome = 'recorded' | 'known';

/** Signals of one statement. */
const MOST = 500;

/** SQL that is true for a placement that a signal may change: it stopped before its order was ever read. */
const STOPPED = `service_order_id = signal.id AND state IN ('failed', 'withdrawn', 'held')
      AND NOT EXISTS (SELECT FROM orders o WHERE o.service_order_id = placements.service_order_id)`;

/**
 * SQL that records signals. It creates an order's placement at the first signal. A later signal refreshes an order that
 * has not ended, because the platform may have cancelled or changed it. If the order was never read, the signal restarts
 * its failed placement or makes its held placement due now, because the platform may have fixed the order. If the first
 * fetch is under way, the order is refreshed too, because that fetch may return a version older than the signal.
 *
 * Rows are inserted, and then locked, in the order of their keys, so that two statements never wait for each other.
 * `$1` are distinct ids, and `$2` is the number of seconds after which an order is no longer worth placing. Each row has
 * an id and its outcome: ids without a row are known, and NULL is the outcome of an order that is locked elsewhere.
 * @param ifLocked what to do about a placement that is locked elsewhere. By default it is waited for
 */
const recording = (ifLocked: '' | 'SKIP LOCKED'): string => `
  WITH signal AS MATERIALIZED (
    -- In a subquery, the array has no known length, so Postgres makes one plan for all lengths.
    SELECT id FROM unnest((SELECT $1::text[])) AS id
    -- guard: signals-by-key
    ORDER BY id COLLATE "C"
  ), new AS (
    INSERT INTO placements (service_order_id, deadline_at)
    SELECT id, now() + make_interval(secs => $2::int) FROM signal
    ON CONFLICT DO NOTHING
    RETURNING service_order_id
  ), stopped AS MATERIALIZED (
    SELECT id FROM signal CROSS JOIN LATERAL (SELECT FROM placements WHERE ${STOPPED} OFFSET 0) AS p
  ), locked AS MATERIALIZED (
    SELECT id FROM signal
    -- guard: signals-locked
    CROSS JOIN LATERAL (SELECT FROM placements WHERE ${STOPPED} AND ${lockedFirst('new')} FOR UPDATE ${ifLocked}) AS p
  ), again AS (${restarting('= ANY (ARRAY(SELECT id FROM locked))')}
    RETURNING service_order_id
  ), due AS (
    UPDATE placements SET next_attempt_at = now()
    WHERE service_order_id = ANY (ARRAY(SELECT id FROM locked))
      AND state = 'held' AND location_id IS NULL AND ${IS_UNFINISHED}
    RETURNING service_order_id
  ), look AS (
    INSERT INTO refreshes AS l (service_order_id)
    -- guard: signal-refreshes
    SELECT id FROM signal CROSS JOIN LATERAL (
      SELECT FROM placements p LEFT JOIN orders o USING (service_order_id)
      WHERE service_order_id = signal.id
        AND CASE WHEN o.service_order_id IS NULL THEN p.lease_until > now()
                 ELSE o.ended_at IS NULL AND o.erased_at IS NULL END
      OFFSET 0
    ) AS p
    ON CONFLICT (service_order_id) DO UPDATE
      -- After a failure, keep the back-off, because the platform may have requested it.
      SET signalled_at = now(), next_attempt_at = CASE WHEN l.failures = 0 THEN now() ELSE l.next_attempt_at END
  )
  SELECT service_order_id AS id, 'recorded' AS outcome
  FROM (SELECT * FROM new UNION ALL SELECT * FROM again UNION ALL SELECT * FROM due) AS recorded
  UNION ALL SELECT id, NULL FROM stopped WHERE id <> ALL (ARRAY(SELECT id FROM locked))`;

const NOW = { name: 'record-signals', text: recording('SKIP LOCKED') };
const WHEN_FREE = { name: 'record-signal', text: recording('') };

async function record(
  pool: Pool,
  statement: typeof NOW,
  ids: readonly string[],
  deadlineS: number,
): Promise<Map<string, SignalOutcome | null>> {
  const { rows } = await pool.query<{ id: string; outcome: SignalOutcome | null }>({
    ...statement,
    values: [ids, deadlineS],
  });
  return new Map(rows.map(({ id, outcome }) => [id, outcome]));
}

/**
 * Records one signal, and waits if its placement is locked elsewhere.
 * @param deadlineS seconds from now after which the order is no longer worth placing
 */
export async function recordSignal(pool: Pool, serviceOrderId: string, deadlineS: number): Promise<SignalOutcome> {
  return (await record(pool, WHEN_FREE, [serviceOrderId], deadlineS)).get(serviceOrderId) ?? 'known';
}

/**
 * Makes a function that records a signal. While one statement runs, further signals gather, and the next statement
 * records them all. A signal whose placement is locked elsewhere waits alone, so that no other signal waits with it. If
 * Postgres cannot be reached, all signals that wait fail, so that no sender waits for several time-outs.
 * @returns a function that resolves when the signal is committed. Of signals that gathered for one order, the first one
 *   has the outcome, and the others are known
 */
export function recordSignals(pool: Pool, deadlineS: number): (serviceOrderId: string) => Promise<SignalOutcome> {
  const waiting = new Map<string, PromiseWithResolvers<SignalOutcome>>();
  let isRecording = false;

  const takeAll = (): PromiseWithResolvers<SignalOutcome>[] => {
    const all = [...waiting.values()];
    waiting.clear();
    return all;
  };

  const flush = async (batch: ReadonlyMap<string, PromiseWithResolvers<SignalOutcome>>): Promise<void> => {
    const alone = (id: string): void => batch.get(id)?.resolve(recordSignal(pool, id, deadlineS));
    try {
      const outcomes = await record(pool, NOW, [...batch.keys()], deadlineS);
      for (const [id, { resolve }] of batch) {
        const outcome = outcomes.get(id);
        if (outcome === null) alone(id);
        else resolve(outcome ?? 'known');
      }
    } catch (error) {
      // guard: signal-alone
      if (isAboutStatement(error)) for (const id of batch.keys()) alone(id);
      // guard: all-told
      else for (const { reject } of [...batch.values(), ...takeAll()]) reject(error);
    }
  };

  const flushAll = async (): Promise<void> => {
    isRecording = true;
    while (waiting.size > 0) {
      // Lets requests that are ready in this turn of the event loop join the batch.
      await new Promise(setImmediate);
      const batch = new Map([...waiting].slice(0, MOST));
      for (const id of batch.keys()) waiting.delete(id);
      await flush(batch);
    }
    isRecording = false;
  };

  return async (serviceOrderId) => {
    const first = waiting.get(serviceOrderId);
    if (first !== undefined) return first.promise.then(() => 'known');
    const own = Promise.withResolvers<SignalOutcome>();
    waiting.set(serviceOrderId, own);
    if (!isRecording) void flushAll();
    return own.promise;
  };
}
