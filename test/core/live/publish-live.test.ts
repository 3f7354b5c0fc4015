import pg from 'pg';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { outboxClaimer } from '../../../src/core/live/claim-outbox.ts';
import { publishLive } from '../../../src/core/live/publish-live.ts';
import { readPlans } from '../../support/read-plans.ts';
import { testPool } from '../../support/test-pool.ts';
import { until } from '../../../world/processes/until.ts';

const ONLY_TOPIC = { way: 'topic', isOnly: true } as const;

type PlanNode = { 'Index Name'?: string; 'Index Cond'?: string; 'Node Type': string; Plans?: PlanNode[] };

describe('the relay', () => {
  // One connection, which has the plans; as the service's, that forces them to be made once.
  const pool = testPool({ max: 1, options: '-c enable_seqscan=off -c plan_cache_mode=force_generic_plan' });
  beforeAll(() => pool.query('VACUUM (ANALYZE) outbox'));
  const log = { info: () => {}, error: () => {} };

  it('finds each row by its key when thousands wait, even with plans from an empty outbox', async () => {
    await lay(1);
    const publish = () => Promise.resolve(undefined);
    const relay = publishLive({ pool, ...ONLY_TOPIC, publish, log, observe: () => {} });
    while ((await relay.round()) > 0);

    await lay(5_000);
    const plans = [await planOf(`"claim-outbox"(100, '-infinity', '{order-1}', '{3}')`)];
    const byKey = plans.flatMap(nodesOf).filter((node) => node['Index Name'] === 'outbox_pkey');
    expect(byKey).toHaveLength(2);
    for (const node of byKey) expect(node['Index Cond']).toContain('service_order_id =');
    expect(plans.flatMap(nodesOf).map((node) => node['Node Type'])).not.toContain('Seq Scan');
  });

  it('deletes published messages from the outbox before it stops', async () => {
    await pool.query('TRUNCATE outbox, live_messages');
    await lay(3);
    const begun = Promise.withResolvers<void>();
    const published = Promise.withResolvers<undefined>();
    const publish = () => (begun.resolve(), published.promise);
    const relay = publishLive({ pool, ...ONLY_TOPIC, publish, log, observe: () => {} });
    const query = vi.spyOn(pool, 'query');
    relay.start();
    await begun.promise;
    // Its last usual claim is over, and its messages are still under way.
    await until(() => query.mock.calls.length > 1);
    await query.mock.results[1]?.value;
    query.mockRestore();
    const stopped = relay.stop();
    published.resolve(undefined);
    await stopped;
    expect((await pool.query('SELECT FROM outbox')).rowCount).toBe(0);
    expect((await pool.query('SELECT FROM live_messages')).rowCount).toBe(3);
  });

  it('deletes a published message and claims the next message of its order in one query', async () => {
    await pool.query('TRUNCATE outbox, live_messages');
    await lay(1);
    await pool.query(`INSERT INTO outbox (service_order_id, sequence, rank) VALUES ('order-1', 4, 30)`);
    const claim = outboxClaimer(ONLY_TOPIC);
    const first = await claim(pool, [], 1);
    expect(first).toMatchObject([{ sequence: 3 }]);
    // As after an outage of Postgres: the lease has expired.
    await pool.query(`UPDATE outbox SET lease_until = now() - interval '1 s' WHERE sequence = 3`);
    expect(await claim(pool, first, 100)).toMatchObject([{ sequence: 4 }]);
    const { rows } = await pool.query('SELECT sequence FROM outbox');
    expect(rows).toEqual([{ sequence: 4 }]);
    expect((await pool.query('SELECT FROM live_messages')).rowCount).toBe(1);
  });

  it('logs each failed message until the topic counts as down, and then one line', async () => {
    await pool.query('TRUNCATE outbox, live_messages');
    await lay(30);
    const errors: string[] = [];
    const log = { info: () => {}, error: (_about: object, text: string) => void errors.push(text) };
    const publish = async () => {
      await new Promise(setImmediate);
      throw new Error('refused');
    };
    await publishLive({ pool, ...ONLY_TOPIC, publish, log, observe: () => {} }).round();
    const each = Array.from({ length: 19 }, () => 'live message not published; it will be retried');
    expect(errors).toEqual([...each, 'the status topic takes no messages; they wait']);
  });

  it('deletes published messages at its next claim if a claim failed', async () => {
    await pool.query('TRUNCATE outbox, live_messages');
    await lay(1);
    let attempts = 0;
    const publish = async () => {
      attempts += 1;
      await pool.query('ALTER TABLE live_messages RENAME TO away');
      return undefined;
    };
    const relay = publishLive({ pool, ...ONLY_TOPIC, publish, log, observe: () => {} });
    await relay.round();
    await expect(relay.round()).rejects.toThrow('live_messages');
    await pool.query('ALTER TABLE away RENAME TO live_messages');
    await relay.round();
    expect((await pool.query('SELECT FROM outbox')).rowCount).toBe(0);
    expect(attempts).toBe(1);
  });

  it('does not read again the deleted rows that an old snapshot keeps', async () => {
    await pool.query('TRUNCATE outbox');
    const old = new pg.Client(pool.options.connectionString);
    await old.connect();
    try {
      const claim = outboxClaimer(ONLY_TOPIC);
      await claim(pool, [], 100);
      await old.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await old.query('SELECT FROM outbox LIMIT 1');
      await lay(50_000, 600);
      await pool.query('DELETE FROM outbox');
      await lay(1);
      const fresh = await readPlans(pool, (recording) => outboxClaimer(ONLY_TOPIC)(recording, [], 100));
      expect(fresh.pages).toBeGreaterThan(1_000);
      await pool.query('UPDATE outbox SET lease_until = NULL');
      const { pages } = await readPlans(pool, (recording) => claim(recording, [], 100));
      expect(pages).toBeLessThan(100);
    } finally {
      await old.end();
    }
  });

  async function lay(count: number, agoS = 0): Promise<void> {
    await pool.query(
      `WITH o AS (
         INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, rank, sequence)
         SELECT 'order-' || nth, 'K472', 'club', 'pickup', 20, 3 FROM generate_series(1, $1::int) AS nth
         ON CONFLICT DO NOTHING
       )
       INSERT INTO outbox (service_order_id, sequence, rank, applied_at)
       SELECT 'order-' || nth, 3, 20, now() - make_interval(secs => $2) FROM generate_series(1, $1::int) AS nth`,
      [count, agoS],
    );
  }

  async function planOf(call: string): Promise<PlanNode> {
    const { rows } = await pool.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(`EXPLAIN (FORMAT JSON) EXECUTE ${call}`);
    const plan = rows[0]?.['QUERY PLAN'][0].Plan;
    if (plan === undefined) throw new Error('no plan');
    return plan;
  }
});

function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}
