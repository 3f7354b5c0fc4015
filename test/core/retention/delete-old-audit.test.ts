import { afterAll, beforeAll, expect, it } from 'vitest';
import pg from 'pg';
import { deleteOld } from '../../../src/core/retention/retention-rules.ts';
import { asService } from '../../../world/system/as-service.ts';
import { createDatabase } from '../../../world/postgres/create-database.ts';

const DAY_S = 86_400;
let owner: pg.Pool;
let service: pg.Pool;

beforeAll(async () => {
  const url = await createDatabase();
  [owner, service] = [url, asService(url)].map((connectionString) => new pg.Pool({ connectionString, max: 1 })) as [
    pg.Pool,
    pg.Pool,
  ];
});
afterAll(() => Promise.all([owner?.end(), service?.end()]));

const kept = async (): Promise<unknown> =>
  (
    await owner.query(`SELECT (SELECT json_agg(action ORDER BY action) FROM audit) AS actions,
                              (SELECT count(*)::int FROM audit_outcomes) AS ends`)
  ).rows[0];

it('old audit entries and their outcomes are deleted, however many they are, and nothing else is deleted', async () => {
  await owner.query(
    `WITH acts AS (
       INSERT INTO audit (at, actor_kind, actor_id, actor_name, action)
       SELECT now() - make_interval(days => days), 'person', 'ada', 'ada', 'after ' || days
       FROM (SELECT 401 FROM generate_series(1, 20001) UNION ALL VALUES (399), (0)) AS each (days)
       RETURNING audit_id
     )
     INSERT INTO audit_outcomes (audit_id, outcome) SELECT audit_id, 'done' FROM acts`,
  );
  await deleteOld(service, 'deletion of old audit', 400 * DAY_S);
  expect(await kept()).toEqual({ actions: ['after 0', 'after 399'], ends: 2 });
  await expect(deleteOld(service, 'deletion of old audit', 29 * DAY_S)).rejects.toThrow('30 days at least');
  await deleteOld(service, 'deletion of old audit', 30 * DAY_S);
  expect(await kept()).toEqual({ actions: ['after 0'], ends: 1 });
});
