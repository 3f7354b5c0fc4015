import { beforeAll, expect, it } from 'vitest';
import { dropOldPartitions } from '../../../src/core/retention/retention-rules.ts';
import { migrate } from '../../../src/database/migrate.ts';
import { servicePools } from '../../support/test-pool.ts';

const { pool } = servicePools();

beforeAll(async () => {
  await migrate(pool.options.connectionString ?? '');
  for (const [day, after] of [
    ['20200101', '20200102'],
    ['20200102', '20200103'],
    ['20200103', '20200104'],
  ]) {
    await pool.query(`CREATE TABLE webhooks_${day} PARTITION OF webhooks FOR VALUES FROM ('${day}') TO ('${after}')`);
  }
});

it('a day that cannot be dropped fails the job, but later days are dropped', async () => {
  await pool.query('CREATE VIEW of_an_auditor AS SELECT id FROM webhooks_20200101');
  await expect(dropOldPartitions(pool, 'webhooks', 14)).rejects.toMatchObject({ code: '2BP01' });
  const { rows } = await pool.query(`SELECT relname FROM pg_class WHERE relname ~ '^webhooks_2020\\d+$'`);
  expect(rows).toEqual([{ relname: 'webhooks_20200101' }]);
  await pool.query('DROP VIEW of_an_auditor');
  expect(await dropOldPartitions(pool, 'webhooks', 14)).toEqual(['webhooks_20200101']);
});
