import type { Pool } from 'pg';
import { beforeAll, describe, expect, it } from 'vitest';
import { recordSignal, recordSignals } from '../../../src/core/signals/record-signals.ts';
import { WRITER_CONNECTIONS } from '../../../src/database/open-database.ts';
import { workOf } from '../../support/read-plans.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { servicePools } from '../../support/test-pool.ts';
import { untilLocked } from '../../support/until-locked.ts';

const { pool } = servicePools(WRITER_CONNECTIONS + 6);

/** A pool that counts its statements, and may fail them. */
function counted(fail?: (ids: readonly string[]) => void): { pool: Pool; sent: (readonly string[])[] } {
  const sent: (readonly string[])[] = [];
  const query = async (statement: { values: [readonly string[], number] }): Promise<unknown> => {
    sent.push(statement.values[0]);
    fail?.(statement.values[0]);
    return pool.query(statement as never);
  };
  return { pool: { query } as unknown as Pool, sent };
}
const placementOf = async (id: string) =>
  (await pool.query('SELECT * FROM placements WHERE service_order_id = $1', [id])).rows[0] as
    | Record<string, unknown>
    | undefined;
const refreshed = async (): Promise<string[]> =>
  (await pool.query<{ id: string }>('SELECT service_order_id AS id FROM refreshes ORDER BY 1')).rows.map(
    ({ id }) => id,
  );

describe('signals that wait', () => {
  it('are recorded by one statement, each with the outcome that it would have alone', async () => {
    await seedOrders(pool, ['open', 'ended'], { order: { rank: 10 }, placement: { deadline_at: 'tomorrow' } });
    await pool.query(`UPDATE orders SET ended_at = now() WHERE service_order_id = 'ended'`);
    await pool.query(
      `INSERT INTO placements (service_order_id, deadline_at, state, cause, finished_at, location_id, lease_until, next_attempt_at)
       VALUES ('failed', now(), 'failed', NULL, now(), NULL, NULL, now()),
              ('over', now(), 'withdrawn', '{"code": "order_ended"}', now(), NULL, NULL, now()),
              ('held', now(), 'held', NULL, NULL, NULL, NULL, 'infinity'),
              ('fetching', now(), 'waiting', NULL, NULL, NULL, now() + interval '1 min', now()),
              ('waiting', now(), 'waiting', NULL, NULL, NULL, NULL, now())`,
    );
    const { pool: watched, sent } = counted();
    const record = recordSignals(watched, 60);
    const ids = ['z-new', 'open', 'ended', 'failed', 'over', 'held', 'fetching', 'waiting', 'a-new', '🍕', 'é'];
    const outcomes = await Promise.all(ids.map(async (id) => [id, await record(id)]));
    expect(Object.fromEntries(outcomes)).toEqual({
      'z-new': 'recorded',
      open: 'known',
      ended: 'known',
      failed: 'recorded',
      over: 'known',
      held: 'recorded',
      fetching: 'known',
      waiting: 'known',
      'a-new': 'recorded',
      '🍕': 'recorded',
      é: 'recorded',
    });
    expect(sent).toHaveLength(1);
    expect(await refreshed()).toEqual(['fetching', 'open']);
    expect(await placementOf('failed')).toMatchObject({ state: 'waiting', finished_at: null });
    expect((await placementOf('held'))?.['next_attempt_at']).toBeInstanceOf(Date);
    expect(await placementOf('over')).toMatchObject({ state: 'withdrawn' });
  });

  it('gather while a statement runs', async () => {
    const { pool: watched, sent } = counted();
    const record = recordSignals(watched, 60);
    const first = record('gather-1');
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    await Promise.all([first, ...Array.from({ length: 600 }, (_, nth) => record(`gather-${nth + 2}`))]);
    expect(sent.map((ids) => ids.length)).toEqual([1, 500, 100]);
  });

  it('name an order once, and the later signal is known', async () => {
    const { pool: watched, sent } = counted();
    const record = recordSignals(watched, 60);
    expect(await Promise.all([record('twice'), record('twice')])).toEqual(['recorded', 'known']);
    expect(await record('twice')).toBe('known');
    expect(sent).toEqual([['twice'], ['twice']]);
  });

  it('are recorded alone if Postgres refuses the value of one, which fails alone', async () => {
    const record = recordSignals(pool, 60);
    const done = await Promise.allSettled([record('good-1'), record('bad\0'), record('good-2')]);
    expect(done.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await placementOf('good-2')).toBeDefined();
  });

  it('all fail if the connection fails, and the next signal is recorded', async () => {
    let isAway = true;
    const record = recordSignals(
      counted(() => {
        if (isAway) throw new Error('away');
      }).pool,
      60,
    );
    const done = await Promise.allSettled([record('away-1'), record('away-2')]);
    expect(done.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    isAway = false;
    expect(await record('away-1')).toBe('recorded');
  });

  it('all fail at once if Postgres does not answer, also those of further statements', async () => {
    const [begun, timedOut] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()];
    let statements = 0;
    const query = (): Promise<never> => {
      statements += 1;
      begun.resolve();
      return timedOut.promise;
    };
    const record = recordSignals({ query } as unknown as Pool, 60);
    const first = record('hangs-0');
    await begun.promise;
    const done = Promise.allSettled([first, ...Array.from({ length: 1_200 }, (_, nth) => record(`hangs-${nth + 1}`))]);
    timedOut.reject(new Error('Query read timeout'));
    expect((await done).filter(({ status }) => status === 'rejected')).toHaveLength(1_201);
    expect(statements).toBe(1);
  });

  it('do not wait for a placement that is locked elsewhere; only its own signal waits', async () => {
    await pool.query(
      `INSERT INTO placements (service_order_id, deadline_at, state, finished_at) VALUES ('locked', now(), 'failed', now())`,
    );
    const { pool: watched, sent } = counted();
    const record = recordSignals(watched, 60);
    const client = await pool.connect();
    try {
      await client.query(`BEGIN; SELECT FROM placements WHERE service_order_id = 'locked' FOR UPDATE`);
      const locked = record('locked');
      expect(await record('free')).toBe('recorded');
      await untilLocked(pool);
      expect(await placementOf('locked')).toMatchObject({ state: 'failed' });
      await client.query('COMMIT');
      expect(await locked).toBe('recorded');
      // No statement gave up waiting for the lock.
      expect(sent).toEqual([['locked', 'free'], ['locked']]);
    } finally {
      client.release();
    }
  });

  it('insert rows in the order of their keys, so that two processes never wait for each other', async () => {
    const client = await pool.connect();
    try {
      await client.query(`BEGIN; INSERT INTO placements (service_order_id, deadline_at) VALUES ('key-b', now())`);
      const { pool: watched, sent } = counted();
      const record = recordSignals(watched, 60);
      const both = [record('key-c'), record('key-b')];
      await untilLocked(pool);
      // The first process waits for `key-b`, and has not inserted `key-c` yet.
      expect(await recordSignal(pool, 'key-c', 60)).toBe('recorded');
      await client.query('COMMIT');
      expect(await Promise.all(both)).toEqual(['known', 'known']);
      // The statement did not give up waiting for the lock.
      expect(sent).toEqual([['key-c', 'key-b']]);
    } finally {
      client.release();
    }
  });
});

describe('the plan of the statement', () => {
  beforeAll(async () => {
    await pool.query(`INSERT INTO placements (service_order_id, deadline_at, state, finished_at)
                      SELECT 'many-' || nth, now(), 'failed', now() FROM generate_series(1, 3000) AS nth`);
  });

  it('reads some rows for each signal, however many placements there are', async () => {
    const client = await pool.connect();
    try {
      await client.query('SET plan_cache_mode = force_generic_plan');
      const one = { connect: async () => client, query: client.query.bind(client) } as unknown as Pool;
      for (const id of ['plan-1', 'plan-2']) await recordSignals(one, 60)(id);
      expect(await workOf(one, 'record-signals', `('{many-1,many-2,plan-3}', 60)`)).toBeLessThan(100);
    } finally {
      client.release(true);
    }
  });
});
