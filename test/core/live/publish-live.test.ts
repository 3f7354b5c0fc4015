import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publishLive } from '../../../src/core/live/publish-live.ts';
import { createDatabase } from '../../support/create-database.ts';
import { until } from '../../support/until.ts';

type PlanNode = { 'Index Name'?: string; 'Index Cond'?: string; 'Node Type': string; Plans?: PlanNode[] };

describe('the relay, whose statements are planned while the outbox is empty', () => {
  let pool: pg.Pool;

  beforeAll(async () => {
    // One connection, which has the plans; as the service's, that forces them to be made once.
    const options = '-c enable_seqscan=off -c plan_cache_mode=force_generic_plan';
    pool = new pg.Pool({ connectionString: await createDatabase(), max: 1, options });
    await pool.query('VACUUM (ANALYZE) outbox');
  });

  afterAll(() => pool.end());

  it('still finds each row by its key when thousands wait', async () => {
    await lay(1);
    const log = { info: () => {}, error: () => {} };
    const relay = publishLive({ pool, publish: () => Promise.resolve(), log, observe: () => {} });
    relay.start();
    await until(async () => (await pool.query('SELECT FROM outbox')).rowCount === 0);
    await relay.stop();

    await lay(5_000);
    const plans = [await planOf(`"claim-outbox"(100)`), await planOf(`"forget-published"('{order-1}', '{3}')`)];
    const byKey = plans.flatMap(nodesOf).filter((node) => node['Index Name'] === 'outbox_pkey');
    expect(byKey).toHaveLength(2);
    for (const node of byKey) expect(node['Index Cond']).toContain('service_order_id =');
    expect(plans.flatMap(nodesOf).map((node) => node['Node Type'])).not.toContain('Seq Scan');
  });

  async function lay(count: number): Promise<void> {
    await pool.query(
      `WITH o AS (
         INSERT INTO orders (service_order_id, location_id, fulfillment, rank, sequence)
         SELECT 'order-' || nth, 'club', 'pickup', 20, 3 FROM generate_series(1, $1::int) AS nth
         ON CONFLICT DO NOTHING
       )
       INSERT INTO outbox (service_order_id, sequence, rank)
       SELECT 'order-' || nth, 3, 20 FROM generate_series(1, $1::int) AS nth`,
      [count],
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
