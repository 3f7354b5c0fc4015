import { expect, it } from 'vitest';
import { migrate } from '../../../src/migrate.ts';
import { OPERATOR_TOKEN, askOperator } from '../../support/ask-operator.ts';
import { startPostgres } from '../../support/start-postgres.ts';
import { startSystem } from '../../support/start-system.ts';
import { until } from '../../support/until.ts';

it('what waits in the spill is told while Postgres is away', async () => {
  const postgres = await startPostgres();
  await migrate(postgres.url);
  const system = await startSystem({ databaseUrl: postgres.url, env: { OPERATOR_TOKEN } });
  try {
    const operator = await askOperator(system.urls[0] ?? '');
    expect(await operator.get('/spill')).toMatchObject({
      status: 200,
      body: { database: 'up', waiting: 0, oldestAt: null },
    });
    await postgres.kill();
    const { body } = await until(async () => {
      const answer = await operator.get('/spill');
      return answer.body['database'] === 'down' && answer;
    });
    expect(body).toEqual({ database: 'down', waiting: 0, oldestAt: null });
    expect((await operator.get('/locations')).status).toBe(503);
  } finally {
    await system.stop();
    await postgres.stop();
  }
}, 60_000);
